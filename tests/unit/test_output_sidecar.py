"""OUT.json: written with its schema, read back as it was, refused when it is something else."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.errors import InputError
from sanawm_cli.output.sidecar import read_sidecar, sidecar_bytes, sidecar_path

_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("video", "sidecar"),
    [("a/OUT.mp4", "a/OUT.json"), ("OUT.MP4", "OUT.json"), ("v1.2 b.mp4", "v1.2 b.json")],
)
def test_it_is_named_after_its_video(video, sidecar):
    assert sidecar_path(Path(video)) == Path(sidecar)


@settings(deadline=None, max_examples=20)
@given(content=st.dictionaries(st.text().filter(lambda key: key != "schema"), _JSON))
def test_content_reads_back_in_its_order(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "round.json"
    path.write_bytes(sidecar_bytes(content))
    found = read_sidecar(path)
    assert found == content
    assert list(found) == list(content)


def test_schema_comes_first_and_is_not_the_callers():
    assert sidecar_bytes({"a": 1}).startswith(b'{\n  "schema": 1,\n')
    with pytest.raises(ValueError, match="schema"):
        sidecar_bytes({"schema": 1})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "is not JSON"),
        (b"\x00\x00\x00 ftypisom", "is not JSON"),
        (b"\xff\xfe\xff", "is not JSON"),
        (b'{"schema": 1, "fps": NaN}', "NaN is not a JSON number"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1]", "no sidecar"),
        (b'{"fps": 24}', "no sidecar"),
        (b'{"schema": 2}', "has schema 2, expected 1"),
        (b'{"schema": true}', "has schema True, expected 1"),
        (b'{"schema": "1"}', "has schema '1', expected 1"),
    ],
)
def test_other_files_are_refused_with_a_hint(tmp_path, text, reason):
    path = tmp_path / "x.json"
    path.write_bytes(text)
    with pytest.raises(InputError, match=reason) as caught:
        read_sidecar(path)
    assert caught.value.hint


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_sidecar(tmp_path / "x.json")
    with pytest.raises(InputError, match="Is a directory"):
        read_sidecar(tmp_path)
