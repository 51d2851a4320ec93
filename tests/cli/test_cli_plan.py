"""`sanawm plan`: how a clip is cut, for people and for scripts, without weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import TINY, copied_model, sanawm, snapshot

from sanawm_cli.camera.trajectory import load_trajectory

SIZE = f"{TINY.video.width}×{TINY.video.height}"


@pytest.fixture(autouse=True)
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_nothing(*_: object, **__: object) -> None:
        raise AssertionError("weights were loaded")

    monkeypatch.setattr("sanawm_cli.weights.load.load_into", load_nothing)
    monkeypatch.setattr("sanawm_cli.weights.folder.file_sha256", load_nothing)


def plan(*arguments: object) -> Any:
    ran = sanawm("plan", *arguments, "--json")
    assert (ran.code, ran.err) == (0, "")
    return ran.json


def shown(*arguments: object) -> list[str]:
    ran = sanawm("plan", *arguments)
    assert (ran.code, ran.err) == (0, "")
    return ran.out.splitlines()


def saved_to(path: Path, *arguments: object) -> str:
    """What is said on stderr of a camera that `plan` saved."""
    ran = sanawm("plan", *arguments, f"--save-camera={path}")
    assert ran.code == 0
    assert ran.out.splitlines() == shown(*arguments)
    return ran.err


def test_the_plan_for_scripts() -> None:
    told = plan("--frames=49")
    assert told.keys() == {"frames", "latents", "fps", "chunks", "memory"}
    assert told["frames"] == {"requested": 49, "rendered": 49}
    assert (told["latents"], told["fps"]) == (7, 16)
    assert told["chunks"] == [
        {"index": 0, "latents": [0, 4], "frames": [0, 25], "context": []},
        {"index": 1, "latents": [4, 7], "frames": [25, 49], "context": [0]},
    ]
    parts = dict(told["memory"])
    assert parts.pop("total") == sum(parts.values())
    assert {"network_weights", "window", "recurrent", "decoder_peak", "frames"} <= parts.keys()


@pytest.mark.parametrize(
    ("arguments", "requested", "rendered"),
    [
        ((), TINY.video.default_frames, TINY.video.default_frames),
        (("--frames=50",), 50, 49),
        (("--frames=50", "--snap=chunk"), 50, 49),
        (("--frames=57", "--snap=chunk"), 57, 49),
        (("--seconds=3",), 48, 49),
        (("--seconds=2", "--fps=24"), 48, 49),
        (("--chunk-plan=1,1,1",), 17, 17),
        (("--action=w-24",), 25, 25),
        (("--action=w-30",), 31, 25),
        (("--action=w-24", "--frames=17", "--camera-fit=truncate"), 17, 17),
    ],
)
def test_who_says_how_long_it_is(arguments: tuple[str, ...], requested: int, rendered: int) -> None:
    assert plan(*arguments)["frames"] == {"requested": requested, "rendered": rendered}


def test_memory_follows_precision_guidance_and_window() -> None:
    plain = plan("--frames=241")["memory"]
    half = plan("--frames=241", "--dtype=bfloat16")["memory"]
    guided = plan("--frames=241", "--cfg-scale=3")["memory"]
    wide = plan("--frames=241", "--kv-window=all")["memory"]
    assert half["network_weights"] * 2 == plain["network_weights"]
    assert guided["window"] == 2 * plain["window"]
    assert wide["window"] > 3 * plain["window"]
    longer = plan("--frames=481")["memory"]
    assert longer == plain  # what is carried does not grow with the clip


def test_published_presets_are_planned_without_their_weights() -> None:
    told = plan("--preset=sana-wm-streaming-720p")
    assert told["memory"]["total"] > 10e9
    first, *_ = shown("--preset=sana-wm-streaming-720p")
    assert first.startswith("sana-wm-streaming-720p (no weights): 161 frames at 16 fps")
    assert "1280×704" in first


def test_every_line_that_names_an_untrained_model_says_so(tmp_path: Path) -> None:
    model = copied_model(tmp_path / "model")
    told = json.loads((model / "model.json").read_text())
    for trained in (False, True):
        (model / "model.json").write_text(json.dumps(told | {"name": "Bonsai", "trained": trained}))
        named = [line for line in shown(f"--model={model}") if "Bonsai" in line]
        assert named
        assert all(("(untrained)" in line) is not trained for line in named)


def test_the_plan_for_people() -> None:
    what, camera, *rest = shown("--frames=50", "--action=w-8", "--camera-fit=hold")
    assert f"49 frames (asked: 50) at 16 fps = 3.06 s, {SIZE}, 7 latents in 2 chunks" in what
    assert camera == "camera: action 'w-8', dialect v2; intrinsics: guess"
    notes = [line for line in rest if line.startswith("note: ")]
    assert len(notes) == 2  # the pose that is held, the guessed focal length
    table = [line.split() for line in rest[len(notes) : len(notes) + 3]]
    assert table[0] == ["chunk", "latents", "frames", "reads", "chunks"]
    assert table[1:] == [["0", "0–3", "0–24", "–"], ["1", "4–6", "25–48", "0"]]
    assert rest[-2].split()[0] == "together"


def chunk_rows(lines: list[str]) -> list[str]:
    head = next(i for i, line in enumerate(lines) if line.startswith("chunk"))
    memory = lines.index("memory, estimated:")
    return lines[head + 1 : memory]


@pytest.mark.parametrize(("chunks", "rows"), [(24, 24), (25, 24), (300, 24)])
def test_a_long_plan_leaves_out_its_middle(chunks: int, rows: int) -> None:
    found = chunk_rows(shown(f"--chunk-plan={','.join('3' * chunks)}"))
    assert len(found) == rows
    assert found[0].split()[0] == "0"
    assert found[-1].split()[0] == str(chunks - 1)
    left_out = [line for line in found if "more)" in line]
    assert len(left_out) == (chunks > 24)
    if left_out:
        assert f"({chunks - rows + 1} more)" in left_out[0]


def test_a_long_context_is_shortened_and_complete_for_scripts() -> None:
    last = chunk_rows(shown("--frames=481", "--kv-window=all"))[-1]
    assert last.split()[3:] == ["0", "1", "2", "…", "16", "17", "18"]
    chunks = plan("--frames=481", "--kv-window=all")["chunks"]
    assert chunks[-1]["context"] == list(range(19))


def test_a_plan_of_eight_hours(tmp_path: Path) -> None:
    """Thousands of chunks are listed for scripts and left out for people."""
    told = plan("--seconds=28800")
    assert told["latents"] == 57_601
    assert len(told["chunks"]) == 19_200
    assert told["chunks"][-1]["frames"][1] == told["frames"]["rendered"] == 460_801
    assert len(shown("--seconds=28800")) < 60


def test_a_path_is_saved_as_it_will_be_rendered(tmp_path: Path) -> None:
    path = tmp_path / "path.npz"
    told = saved_to(path, "--action=w-8", "--frames=17", "--camera-fit=hold")
    assert told.startswith(f"wrote {path}: 17 poses; its intrinsics are for a {SIZE} image")
    assert set(snapshot(tmp_path)) == {"path.npz"}
    saved = load_trajectory(path)
    assert saved.poses.shape == (17, 4, 4)
    assert (saved.poses[8:] == saved.poses[8]).all()
    assert saved.intrinsics is not None
    width, height = TINY.video.width, TINY.video.height
    guess = 0.8 * max(width, height)
    assert (saved.intrinsics == np.array([guess, guess, width / 2, height / 2])).all()
    # Read back, it is the same path.
    again = tmp_path / "again.npz"
    saved_to(again, f"--camera={path}")
    assert again.read_bytes() == path.read_bytes()
