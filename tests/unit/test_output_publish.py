"""The renames at the end: whatever fails, nobody finds a video beside another one's sidecar."""

import os
from itertools import count

import pytest

from sanawm_cli.errors import OutputError
from sanawm_cli.output import publish as publishing
from sanawm_cli.output.publish import check_target, publish


@pytest.fixture
def folder(tmp_path):
    """New files, ready under temporary names."""
    (tmp_path / "OUT.mp4.tmp").write_text("new video")
    (tmp_path / "OUT.json.tmp").write_text("new sidecar")
    return tmp_path


def publish_in(folder) -> None:
    publish(folder / "OUT.mp4.tmp", folder / "OUT.json.tmp", folder / "OUT.mp4")


def state(folder) -> dict[str, str]:
    return {p.name: p.read_text() for p in folder.iterdir() if not p.name.endswith(".tmp")}


OLDER = [
    {},
    {"OUT.json": "old sidecar"},
    {"OUT.mp4": "old video"},
    {"OUT.mp4": "old video", "OUT.json": "old sidecar"},
]
PUBLISHED = {"OUT.mp4": "new video", "OUT.json": "new sidecar"}


def lay_out(folder, older) -> None:
    for name, text in older.items():
        (folder / name).write_text(text)


@pytest.mark.parametrize("older", OLDER, ids=lambda older: "+".join(older) or "nothing")
def test_both_arrive_and_nothing_else_stays(folder, older):
    lay_out(folder, older)
    publish_in(folder)
    assert state(folder) == PUBLISHED


@pytest.mark.parametrize("older", OLDER, ids=lambda older: "+".join(older) or "nothing")
@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), KeyboardInterrupt()])
def test_a_failure_at_any_rename_restores_what_was_there(folder, monkeypatch, older, error):
    renames = len(older) + 2
    real = os.replace
    for failing in range(renames):
        lay_out(folder, older)
        calls = count()

        def replace(source, target, *, calls=calls, failing=failing):
            if next(calls) == failing:
                raise error
            real(source, target)

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(OutputError if isinstance(error, OSError) else KeyboardInterrupt):
            publish_in(folder)
        monkeypatch.setattr(os, "replace", real)
        assert state(folder) == older, f"rename {failing} of {renames}"
        lay_out(folder, {"OUT.mp4.tmp": "new video", "OUT.json.tmp": "new sidecar"})


@pytest.mark.parametrize("older", OLDER, ids=lambda older: "+".join(older) or "nothing")
def test_cut_off_anywhere_no_video_lies_beside_another_ones_sidecar(folder, monkeypatch, older):
    lay_out(folder, older)
    seen = []
    real = os.replace

    def replace(source, target):
        real(source, target)
        seen.append(state(folder))

    monkeypatch.setattr(os, "replace", replace)
    publish_in(folder)
    for now in seen:
        if "OUT.mp4" in now:
            assert now["OUT.mp4"] == "new video"
            assert now["OUT.json"] == "new sidecar"
    assert len(seen) == len(older) + 2


def test_after_a_cut_the_older_pair_is_found_again_or_given_up(folder, monkeypatch):
    """A power cut between the renames leaves the older pair aside; the next run clears up."""
    stranded = {"OUT.mp4.replaced": "old video", "OUT.json.replaced": "old sidecar"}
    lay_out(folder, stranded)

    def fail(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "replace_durably", fail)
        with pytest.raises(PermissionError):
            publish_in(folder)
    assert state(folder) == {"OUT.mp4": "old video", "OUT.json": "old sidecar"}

    lay_out(folder, stranded)
    publish_in(folder)
    assert state(folder) == PUBLISHED


def test_a_good_target_passes(tmp_path, monkeypatch):
    check_target(tmp_path / "é 'x'.MP4", overwrite=False)
    monkeypatch.chdir(tmp_path)
    check_target(publishing.Path("-x.mp4"), overwrite=False)


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("clip", "clip.mp4"),
        ("clip.mov", "clip.mp4"),
        ("clip.json", "clip.mp4"),
        (".mp4", ".mp4.mp4"),
    ],
)
def test_the_name_has_to_say_mp4(tmp_path, name, better):
    with pytest.raises(OutputError, match=r"does not end in \.mp4") as caught:
        check_target(tmp_path / name, overwrite=False)
    assert caught.value.hint == f"name it {better}"


def test_the_folder_has_to_be_there(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "a b", tmp_path / "file"):
        with pytest.raises(OutputError, match="is not a folder"):
            check_target(folder / "x.mp4", overwrite=False)


def test_a_folder_in_the_way_is_named_even_when_overwriting(tmp_path):
    for name in ("a.mp4", "b.json"):
        (tmp_path / name).mkdir()
    for video in ("a.mp4", "b.mp4"):
        with pytest.raises(OutputError, match="is a folder"):
            check_target(tmp_path / video, overwrite=True)


@pytest.mark.parametrize("existing", ["x.mp4", "x.json"])
def test_what_exists_is_not_overwritten_unasked(tmp_path, existing):
    (tmp_path / existing).touch()
    with pytest.raises(OutputError, match=f"{existing} exists already"):
        check_target(tmp_path / "x.mp4", overwrite=False)
    check_target(tmp_path / "x.mp4", overwrite=True)


def test_a_name_that_is_too_long_for_its_helpers_is_refused(tmp_path):
    with pytest.raises(OutputError, match="too long") as caught:
        check_target(tmp_path / f"{'x' * 250}.mp4", overwrite=False)
    assert caught.value.hint == "choose a shorter file name"
