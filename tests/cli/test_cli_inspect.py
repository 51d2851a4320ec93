"""`sanawm inspect`: what a video is and how it was made."""

import json
import shutil
from pathlib import Path

import pytest
from command import Ran, picture, render, sanawm

INPUT = 4


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    picture(96, 64).save(folder / "first.png")
    render(
        image=folder / "first.png",
        output=folder / "clip.mp4",
        prompt="a [red] courtyard",
        action="w-16",
        seed=7,
    )
    return folder


@pytest.fixture
def video(original: Path, tmp_path: Path) -> Path:
    for name in ("clip.mp4", "clip.json"):
        shutil.copy(original / name, tmp_path)
    return tmp_path / "clip.mp4"


def refused(ran: Ran, said: str) -> None:
    assert (ran.code, ran.out) == (INPUT, "")
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert said in ran.err


def test_a_video_for_people(video: Path) -> None:
    ran = sanawm("inspect", video)
    assert (ran.code, ran.err) == (0, "")
    name, *lines = ran.out.splitlines()
    assert name == str(video)
    told = {line[2:18].strip(): line[18:] for line in lines}
    assert told["video"] == "64×64, 17 frames at 16 fps, h264 yuv420p (tv, bt709)"
    assert told["prompt"] == "a [red] courtyard"
    assert told["camera"] == "action 'w-16', dialect v2"
    assert (told["seed"], told["chunks"], told["preset"]) == ("7", "1", "tiny")
    sidecar = json.loads(video.with_suffix(".json").read_text())
    assert ("(untrained)" in told["model"]) is not sidecar["model"]["trained"]
    assert sidecar["model"]["fingerprint"][:12] in told["model"]


def test_a_video_for_scripts(video: Path) -> None:
    ran = sanawm("inspect", video, "--json")
    assert (ran.code, ran.err) == (0, "")
    sidecar = json.loads(video.with_suffix(".json").read_text())
    assert ran.json["sidecar"] == sidecar
    assert ran.json["video"] == {
        "width": 64,
        "height": 64,
        "fps": 16.0,
        "frames": 17,
        "codec": "h264",
        "pixel_format": "yuv420p",
        "colour": "tv, bt709",
    }


def test_a_video_that_is_none(video: Path) -> None:
    refused(sanawm("inspect", video.with_name("none.mp4")), "there is no video")
    refused(sanawm("inspect", video.with_suffix(".json")), "is not a whole MP4")
    whole = video.read_bytes()
    video.write_bytes(whole[: len(whole) // 2])
    refused(sanawm("inspect", video), "is not a whole MP4")
    video.write_bytes(b"")
    refused(sanawm("inspect", video), "is not a whole MP4")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[1]", "has no schema version"),
        ('{"frames": 17}', "has no schema version"),
        ('{"schema": 99}', "has schema 99, expected 1"),
        ('{"schema": 1, "fps": NaN}', "NaN is not a JSON number"),
    ],
)
def test_a_broken_sidecar(video: Path, content: str, said: str) -> None:
    video.with_suffix(".json").write_text(content)
    refused(sanawm("inspect", video), said)


def test_a_missing_sidecar(video: Path) -> None:
    video.with_suffix(".json").unlink()
    refused(sanawm("inspect", video), "clip.json: No such file or directory")


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"model": "tiny", "inputs": [], "machine": None, "notes": 3},
        {"inputs": {"image": "first.png"}, "settings": {"sampler": 4}, "peak_memory_bytes": "much"},
    ],
)
def test_a_sidecar_edited_by_hand_is_shown_as_far_as_it_goes(
    video: Path, content: dict[str, object]
) -> None:
    video.with_suffix(".json").write_text(json.dumps({"schema": 1} | content))
    ran = sanawm("inspect", video)
    assert (ran.code, ran.err) == (0, "")
    assert "17 frames at 16 fps" in ran.out


def test_another_videos_sidecar_is_refused(video: Path) -> None:
    """It once showed the video's size beside the other render's prompt and chunks."""
    path = video.with_suffix(".json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "frames": 49}))
    ran = sanawm("inspect", video)
    assert ran.code == 4
    assert "is not the sidecar of" in ran.err
    assert "it says frames 49, the video has 17" in ran.err
