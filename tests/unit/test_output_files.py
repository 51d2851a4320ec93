"""A file is there in full or not at all, and what the system refuses is explained."""

import errno
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.errors import OutputError
from sanawm_cli.output import files


def test_write_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "a b.json"
    files.write_atomically(path, b"old")
    files.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a b.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch, step, error):
    path = tmp_path / "out.json"
    files.write_atomically(path, b"old")

    def fail(*_):
        raise error

    monkeypatch.setattr(files.os, step, fail)
    with pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt):
        files.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.json"]


def test_the_data_is_on_disk_before_the_rename_and_the_folder_after(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace

    def log_fsync(handle):
        is_folder = os.path.isdir(f"/proc/self/fd/{handle}")
        calls.append("sync folder" if is_folder else "sync file")
        fsync(handle)

    def log_replace(source, target):
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(files.os, "fsync", log_fsync)
    monkeypatch.setattr(files.os, "replace", log_replace)
    files.write_atomically(tmp_path / "x", b"1")
    assert calls.index("sync file") < calls.index("rename") < calls.index("sync folder")


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EACCES, "choose another folder"),
        (errno.EROFS, "choose another folder"),
        (errno.ENOENT, "mkdir -p"),
        (errno.ENOTDIR, "mkdir -p"),
        (errno.ENAMETOOLONG, "shorter"),
        (errno.EISDIR, "name a file"),
    ],
)
def test_each_refusal_has_a_way_out(tmp_path, number, hint):
    path = tmp_path / "out.mp4"
    with pytest.raises(OutputError) as caught, files.output_errors(path):
        raise OSError(number, os.strerror(number))
    assert caught.value.message == f"cannot write {path}: {os.strerror(number)}"
    assert hint in caught.value.hint


def test_an_unknown_refusal_has_no_invented_hint(tmp_path):
    with pytest.raises(OutputError) as caught, files.output_errors(tmp_path / "x"):
        raise OSError(errno.EIO, "Input/output error")
    assert caught.value.hint is None


def test_a_missing_folder_can_be_made_by_pasting_the_hint(tmp_path):
    with pytest.raises(OutputError) as caught:
        files.write_json(tmp_path / "it's new" / "x.json", {})
    assert caught.value.hint.endswith(f"""mkdir -p '{tmp_path}/it'"'"'s new'""")


def test_a_file_used_as_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(OutputError, match="Not a directory"):
        files.write_json(tmp_path / "file" / "x.json", {})
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_json_keeps_its_order_and_is_readable(tmp_path):
    files.write_json(tmp_path / "x.json", {"b": 1, "a": ["é×"]})
    want = '{\n  "b": 1,\n  "a": [\n    "é×"\n  ]\n}\n'
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == want


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_refuses_what_is_no_number(tmp_path, value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "x.json", {"x": value})
    assert os.listdir(tmp_path) == []


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_reads_back_lone_surrogates_included(text):
    data = files.json_bytes({"text": text})
    data.decode("utf-8")
    parts = json.loads(data)["text"]
    # A high surrogate before a low one is how JSON spells one character: same text, two spellings.
    assert parts.encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")
