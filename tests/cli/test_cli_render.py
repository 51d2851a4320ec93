"""A render end to end: the video, its sidecar, and what is told of it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from command import hashes, picture, render, render_flags, sanawm, snapshot

from sanawm_cli import __version__
from sanawm_cli.output.ffmpeg import bundled_ffmpeg
from sanawm_cli.output.verify import read_facts
from sanawm_cli.preset.finding import load_preset
from sanawm_cli.preset.reading import read_preset
from sanawm_cli.weights.folder import open_model_folder

OPTIONS = {"action": "w-8,d-8", "chunk_plan": "2,1", "seed": 7, "crf": 30, "kv_window": "all"}


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a first frame, the video made from it, and what was printed."""
    folder = tmp_path_factory.mktemp("rendered")
    picture(96, 64).save(folder / "first.png")
    options = OPTIONS | {"image": folder / "first.png", "output": folder / "clip.mp4"}
    ran = render(json=True, **options)
    (folder / "printed.json").write_text(ran.out)
    return folder


@pytest.fixture
def sidecar(rendered: Path) -> Any:
    return json.loads((rendered / "clip.json").read_text(encoding="utf-8"))


def test_a_video_its_sidecar_and_nothing_else(rendered: Path) -> None:
    assert set(snapshot(rendered)) == {"first.png", "clip.mp4", "clip.json", "printed.json"}
    facts = read_facts(rendered / "clip.mp4", ffmpeg=bundled_ffmpeg())
    assert (facts.width, facts.height, facts.frames, facts.fps) == (64, 64, 17, 16)
    assert (facts.codec, facts.pixel_format, facts.colour) == ("h264", "yuv420p", "tv, bt709")


def test_what_json_prints(rendered: Path, sidecar: Any) -> None:
    told = json.loads((rendered / "printed.json").read_text())
    assert list(told) == [
        *("output", "frames", "width", "height", "fps", "chunks", "wall_seconds", "render_fps"),
        *("peak_memory_bytes", "frame_hashes"),
    ]
    assert told["output"] == str(rendered / "clip.mp4")
    assert [told[name] for name in ("frames", "width", "height", "fps", "chunks")] == [
        *(17, 64, 64, 16, 2)
    ]
    assert 0 < told["render_fps"] == pytest.approx(17 / told["wall_seconds"], rel=0.01)
    # The video is checked after the sidecar is written, so its time is in one of them only.
    same = told.keys() - {"output", "wall_seconds", "render_fps"}
    assert {name: told[name] for name in same} == {name: sidecar[name] for name in same}
    assert sidecar["wall_seconds"] <= told["wall_seconds"]


def test_hashes_are_of_each_chunks_pixels(sidecar: Any) -> None:
    first, second = sidecar["frame_hashes"]
    assert len(first) == len(second) == 64
    assert first != second


def test_the_sidecar_tells_the_merged_settings(sidecar: Any) -> None:
    preset = read_preset(sidecar["settings"], where="sidecar")
    assert preset.fingerprint() == sidecar["settings_fingerprint"]
    plain = load_preset("tiny")
    assert preset.network == plain.network
    assert (preset.video.crf, preset.video.height, preset.video.fps) == (30, 64, plain.video.fps)
    assert (preset.sampler.seed, preset.stream.window) == (7, "all")


def test_the_sidecar_tells_inputs_and_weights(rendered: Path, sidecar: Any) -> None:
    inputs = sidecar["inputs"]
    path = rendered / "first.png"
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert inputs["image"] == {"path": str(path), "sha256": sha256}
    assert (inputs["preset"], inputs["prompt"]) == ("tiny", "a courtyard")
    assert (inputs["action"], inputs["chunk_plan"]) == ("w-8,d-8", "2,1")
    assert inputs["camera_source"] == "action 'w-8,d-8', dialect v2"
    assert inputs["intrinsics_source"] == "guess"
    assert inputs["intrinsics_of_first_frame"] == pytest.approx([76.8, 76.8, 48, 32])
    model = open_model_folder(Path(sidecar["model"]["folder"]))
    assert sidecar["model"]["fingerprint"] == model.fingerprint
    assert sidecar["model"]["trained"] is model.trained
    assert sidecar["model"]["files"].keys() == model.files.keys()


def test_the_sidecar_tells_plan_time_and_machine(sidecar: Any) -> None:
    plan = sidecar["plan"]
    assert plan["latents"] == 3
    assert [chunk["frames"] for chunk in plan["chunks"]] == [[0, 9], [9, 17]]
    assert [chunk["context"] for chunk in plan["chunks"]] == [[], [0]]
    assert len(sidecar["chunk_seconds"]) == 2
    for seconds in sidecar["chunk_seconds"]:
        assert seconds.keys() == {"network", "decode", "encode"}
        assert min(seconds.values()) > 0
    peak = sidecar["peak_memory_bytes"]
    assert peak is None or peak > 10_000_000
    machine = sidecar["machine"]
    assert (machine["device"], machine["dtype"], machine["threads"]) == ("cpu", "float32", 1)
    assert machine["sanawm"] == __version__
    assert {"python", "torch", "platform", "cpu", "ffmpeg"} <= machine.keys()


def test_the_same_command_gives_the_same_files(here: Path, rendered: Path) -> None:
    """Bit for bit; of the sidecar, all but time, place and memory."""
    (here / "printed.json").write_text(render(json=True, **OPTIONS).out)
    assert (here / "clip.mp4").read_bytes() == (rendered / "clip.mp4").read_bytes()
    first, second = (json.loads((folder / "clip.json").read_text()) for folder in (rendered, here))
    own = {"wall_seconds", "render_fps", "peak_memory_bytes", "chunk_seconds", "inputs"}
    assert {k: v for k, v in first.items() if k not in own} == {
        k: v for k, v in second.items() if k not in own
    }
    assert first["inputs"] | {"image": None} == second["inputs"] | {"image": None}


def test_two_runs_on_all_cores_agree(here: Path) -> None:
    assert hashes(threads=None) == hashes(threads=None)


def test_the_name_follows_the_first_frame(here: Path) -> None:
    (here / "photos").mkdir()
    (here / "first.png").rename(here / "photos" / "my house.png")
    render(image="photos/my house.png", output=None)
    assert {"my house.mp4", "my house.json"} <= snapshot(here).keys()


def test_overwrite_replaces_video_and_sidecar(here: Path) -> None:
    for name in ("clip.mp4", "clip.json"):
        (here / name).write_bytes(b"an older one")
    render(overwrite=True)
    assert read_facts(here / "clip.mp4", ffmpeg=bundled_ffmpeg()).frames == 17
    assert json.loads((here / "clip.json").read_text())["frames"] == 17
    assert set(snapshot(here)) == {"first.png", "clip.mp4", "clip.json"}


def test_a_dry_run_shows_the_plan_and_writes_nothing(here: Path) -> None:
    before = snapshot(here)
    shown = render(dry_run=True)
    told = render(dry_run=True, json=True)
    said = render(dry_run=True, quiet=True)
    assert snapshot(here) == before
    assert "17 frames at 16 fps" in shown.out
    assert told.json == sanawm("plan", "--frames=17", "--height=64", "--width=64", "--json").json
    assert (shown.err, told.err, said.out + said.err) == ("", "", "")


def test_a_failing_encoder_leaves_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies in the second chunk, when a beginning of the new video lies there already."""
    from sanawm_cli.output import mp4

    (here / "clip.mp4").write_bytes(b"an older video")
    before, encode, seen = snapshot(here), mp4.encode_segment, []

    def fail_later(frames: Any, segment: Any, **others: Any) -> None:
        if segment.index == 1:
            seen.extend(snapshot(here).keys() - before.keys())
            others["ffmpeg"] = str(here / "no-ffmpeg")
        encode(frames, segment, **others)

    monkeypatch.setattr(mp4, "encode_segment", fail_later)
    ran = sanawm(*render_flags(chunk_plan="2,1", overwrite=True))
    assert (ran.code, ran.out) == (9, "")
    assert ran.err.splitlines()[-1].startswith("error: cannot start ")
    assert "clip.mp4.part" in seen
    assert snapshot(here) == before
