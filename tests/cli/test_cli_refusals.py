"""What cannot be rendered is refused with one line and an exit code, before weights are loaded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import TINY, flags, picture, render_flags, sanawm
from conftest import Refuse
from safetensors.torch import save_file

USAGE, PRESET, INPUT, PLAN, WEIGHTS, DEVICE, OUTPUT = 2, 3, 4, 5, 6, 7, 9


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"image": None}, "no first frame; add --image FILE"),
        ({"no_camera": False}, "no camera: one of --action, --camera, --no-camera is needed"),
        ({"action": "w-16", "no_camera": True}, "--action and --no-camera exclude each other"),
        ({"action": "w-16", "camera": "a.npz"}, "--action and --camera exclude each other"),
        ({"camera": "a.npz", "no_camera": True}, "--camera and --no-camera exclude each other"),
        (
            {"no_camera": True, "intrinsics": "fov=70"},
            "--no-camera and --intrinsics exclude each other",
        ),
        ({"prompt": None}, "no prompt: one of --prompt, --prompt-file, --text-embeds is needed"),
        ({"prompt_file": "a.txt"}, "--prompt and --prompt-file exclude each other"),
        ({"text_embeds": "a.safetensors"}, "--prompt and --text-embeds exclude each other"),
        (
            {"prompt": None, "text_embeds": "a.safetensors", "negative_prompt": "fog"},
            "--negative-prompt and --text-embeds exclude each other",
        ),
        ({"seconds": 1}, "--frames and --seconds exclude each other"),
        ({"cfg_scale": 3}, "--cfg-scale 3 needs a negative prompt"),
        ({"cfg_scale": "nan"}, "--cfg-scale: nan is not in 1.0 … 100.0"),
        ({"cfg_scale": 0.5}, "--cfg-scale: 0.5 is not in 1.0 … 100.0"),
        ({"steps": "1000,x,0"}, "--steps '1000,x,0': 'x' is not a whole number of 0 … 1000"),
        ({"steps": "1000,960"}, "--steps: [1000, 960] does not end with 0"),
        ({"steps": "900,1000,0"}, "--steps: [900, 1000, 0] is not strictly decreasing"),
        ({"steps": ""}, "--steps '': '' is not a whole number of 0 … 1000"),
        ({"kv_window": "some"}, "--kv-window 'some' is neither a number of chunks nor all"),
        ({"kv_window": 0}, "--kv-window: 0 is not in 1 … 100000"),
        ({"height": 70}, "--height: 70 is not a multiple of 32 of at least 64; use 64 or 96"),
        ({"width": 32}, "--width: 32 is not a multiple of 32 of at least 64; use 64 or 96"),
        ({"fps": 0}, "--fps: 0 is not in 1 … 240"),
        ({"crf": 52}, "--crf: 52 is not in 0 … 51"),
        ({"seed": -1}, "--seed: -1 is not in 0 … 9223372036854775807"),
        ({"translation_speed": "nan"}, "--translation-speed: nan is not in 1e-06 … 1000.0"),
        ({"rotation_speed": 0}, "--rotation-speed: 0.0 is not in 1e-06 … 180.0"),
        ({"device": "gpu"}, "--device 'gpu' is not known; use auto, cpu, cuda or cuda:N"),
        ({"device": "cuda:x"}, "--device 'cuda:x' is not known"),
        ({"dtype": "float16"}, "--dtype 'float16' is not known; use auto, float32, bfloat16"),
        ({"threads": 0}, "--threads 0 is not in 1 … 1024"),
        ({"threads": 10**9}, "--threads 1000000000 is not in 1 … 1024"),
        (
            {"preset": "sana-wm-streaming-384p"},
            "preset sana-wm-streaming-384p has no weights of its own; name a model folder with "
            "--model DIR",
        ),
    ],
)
def test_options_that_make_no_render(refuse: Refuse, options: dict[str, Any], said: str) -> None:
    assert said in refuse(USAGE, render_flags(**options))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["render", "--bogus"], "No such option: --bogus"),
        (["render", "--frame", "17"], "No such option: --frame"),
        (["render", "--frames", "many"], "'--frames'"),
        (["render", "--frames"], "'--frames'"),
        (["render", "--snap", "chonk"], "'--snap'"),
        (["render", "extra"], "extra"),
        (["rendr"], "No such command 'rendr'"),
        (["presets"], "Missing command"),
        (["presets", "show"], "'name'"),
        (["verify"], "'DIR'"),
    ],
)
def test_words_that_are_no_command_line(refuse: Refuse, arguments: list[str], said: str) -> None:
    line = refuse(USAGE, arguments)
    assert said in line
    assert line.endswith("; --help shows what can be given")


def test_nothing_given_shows_the_help() -> None:
    ran = sanawm()
    assert (ran.code, ran.err) == (USAGE, "")
    assert "render" in ran.out


@pytest.mark.parametrize(
    ("options", "code"),
    [({"image": "none.png"}, INPUT), ({"frames": 9}, PLAN), ({"bogus": 1}, USAGE)],
)
def test_scripts_get_the_refusal_as_json(here: Path, options: dict[str, Any], code: int) -> None:
    ran = sanawm(*render_flags(json=True, **options))
    assert ran.code == code
    assert ran.json.keys() == {"error", "hint", "exit_code"}
    assert ran.json["exit_code"] == code
    assert ran.err == f"error: {ran.json['error']}; {ran.json['hint']}\n" or not ran.json["hint"]


def test_quiet_still_tells_what_is_wrong(refuse: Refuse) -> None:
    assert "none.png" in refuse(INPUT, render_flags(quiet=True, image="none.png"))


@pytest.mark.parametrize("near", ["tinny", "Tiny", "tiny2"])
def test_an_unknown_preset(refuse: Refuse, near: str) -> None:
    line = refuse(PRESET, render_flags(preset=near))
    assert line.startswith(f"unknown preset '{near}'; did you mean tiny? available: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "not a TOML file"),
        ('name = "x"\nbogus = 1', "unknown key or section 'bogus'"),
    ],
)
def test_a_broken_preset_file(refuse: Refuse, here: Path, text: str, said: str) -> None:
    (here / "mine.toml").write_text(text)
    line = refuse(PRESET, render_flags(preset="mine.toml"))
    assert "mine.toml" in line
    assert said in line


def test_an_image_that_is_none(refuse: Refuse, here: Path) -> None:
    whole = (here / "first.png").read_bytes()
    (here / "cut.png").write_bytes(whole[: len(whole) // 2])
    (here / "notes.png").write_text("a note")
    (here / "empty.png").touch()
    (here / "folder.png").mkdir()
    for name, said in {
        "none.png": "no such image file",
        "folder.png": "no such image file",
        "notes.png": "not an image that can be read",
        "empty.png": "not an image that can be read",
        "cut.png": "the image cannot be read",
    }.items():
        assert refuse(INPUT, render_flags(image=name)).startswith(f"{name}: {said}")


def test_a_prompt_that_is_none(refuse: Refuse, here: Path) -> None:
    (here / "empty.txt").write_text(" \n")
    (here / "latin.txt").write_bytes(b"caf\xe9")
    for options, said in (
        ({"prompt": "  "}, "the prompt is empty"),
        ({"prompt": None, "prompt_file": "empty.txt"}, "the prompt is empty"),
        ({"prompt": None, "prompt_file": "none.txt"}, "none.txt: no such prompt file"),
        ({"prompt": None, "prompt_file": "latin.txt"}, "latin.txt: not readable as UTF-8"),
        ({"prompt": None, "text_embeds": "none.safetensors"}, "no such embeddings file"),
        ({"prompt": None, "text_embeds": "latin.txt"}, "not a readable safetensors file"),
    ):
        assert said in refuse(INPUT, render_flags(**options))


def test_embeddings_that_do_not_fit_the_model(refuse: Refuse, here: Path) -> None:
    wide = TINY.text.channels
    good, path = torch.zeros(5, wide), here / "prompt.safetensors"
    cases: tuple[tuple[dict[str, torch.Tensor], str], ...] = (
        ({"embeds": torch.zeros(5, 3)}, f"embeds is (5, 3), expected (tokens, {wide})"),
        ({"embeds": torch.zeros(2, 5, wide)}, f"embeds is (2, 5, {wide}), expected"),
        ({"embeds": torch.zeros(wide)}, f"embeds is ({wide},), expected"),
        ({"embeds": good, "mask": torch.ones(4)}, "mask is (4,), expected (5,)"),
        ({"embeds": good, "mask": torch.zeros(5)}, "mask leaves no token"),
        ({"embeds": good / 0}, "not finite"),
        ({"prompt": good}, "no tensor named embeds"),
    )
    for tensors, said in cases:
        save_file(tensors, path)
        line = refuse(INPUT, render_flags(prompt=None, text_embeds=path))
        assert said in line
    save_file({"embeds": good}, path)
    line = refuse(USAGE, render_flags(prompt=None, text_embeds=path, cfg_scale=2))
    assert "has no negative_embeds" in line


def test_an_action_with_an_unknown_key_shows_where(refuse: Refuse) -> None:
    said = refuse(INPUT, render_flags(action="w-8,q-8"), lines=4)
    problem, text, carets, hint = said.splitlines()
    assert problem == "unknown key 'q'"
    assert text[carets.index("^") : carets.rindex("^") + 1] == "q-8"
    assert hint == "keys are w a s d i j k l, or none"


def test_a_camera_that_is_none(refuse: Refuse, here: Path) -> None:
    (here / "notes.txt").write_text("a note")
    np.save(here / "bad.npy", np.zeros((17, 4, 4)))
    for options, said in (
        ({"camera": "none.npz"}, "none.npz: no such file"),
        ({"camera": "notes.txt"}, "notes.txt: not a trajectory"),
        ({"camera": "bad.npy"}, "bad.npy"),
        ({"action": "w-16", "intrinsics": "1,2"}, "--intrinsics 1,2: 2 numbers, expected 4"),
        ({"action": "w-16", "intrinsics": "fov=170"}, "170° is outside 25°–120°"),
        ({"action": "w-16", "intrinsics": "none.npy"}, "none.npy: no such file"),
        ({"action": "w-16", "frames": 33}, "17 poses, the clip has 33 frames"),
        ({"action": "w-40"}, "41 poses, the clip has 17 frames"),
    ):
        assert said in refuse(INPUT, render_flags(**options))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"frames": 9},
            "9 frames are 2 latents, too few for chunks of 3; the smallest frame count that "
            "works is 17; an action needs 16 frames",
        ),
        ({"frames": 0}, "0 frames: at least 1 is needed"),
        (
            {"frames": 20, "snap": "none"},
            "20 frames do not fit the latent grid (8k + 1); ask for 17 or 25 frames, or use "
            "--snap vae",
        ),
        (
            {"frames": 49, "chunk_plan": "4,4"},
            "chunk plan [4, 4] covers 8 latent frames, the request has 7; change the plan, or "
            "leave the frame count out: the plan then sets it",
        ),
        (
            {"chunk_plan": "3,x"},
            "chunk plan entry 'x' is not a positive number of latent frames; write the latents "
            "of each chunk, for example --chunk-plan 4,3,3",
        ),
        ({"frames": None, "seconds": "nan"}, "nan seconds are no length for a clip"),
        (
            {"frames": 10**9},
            "1000000000 frames are more than one render takes (799993); render a shorter clip, "
            "then extend it",
        ),
    ],
)
def test_lengths_that_cannot_be_rendered(
    refuse: Refuse, options: dict[str, Any], said: str
) -> None:
    assert refuse(PLAN, render_flags(**options)) == said


def test_an_absent_gpu(refuse: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert refuse(DEVICE, render_flags(device="cuda")) == (
        "no CUDA device on this machine; use --device cpu"
    )


def test_a_gpu_with_too_high_a_number(refuse: Refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    line = refuse(DEVICE, render_flags(device="cuda:2"))
    assert line == "no device cuda:2: there are 2; use cuda:0 … 1"


def test_places_where_no_video_can_go(refuse: Refuse, here: Path) -> None:
    (here / "folder.mp4").mkdir()
    (here / "half.json").write_text("{}")
    for output, said in {
        "clip.avi": "clip.avi does not end in .mp4; name it clip.mp4",
        "clip": "clip does not end in .mp4; name it clip.mp4",
        "no/where.mp4": "mkdir -p",
        "first.png/clip.mp4": "is not a folder",
        "folder.mp4": "folder.mp4 is a folder",
        "half.mp4": "half.json exists already",
        f"{'x' * 300}.mp4": "choose a shorter file name",
    }.items():
        assert said in refuse(OUTPUT, render_flags(output=output))


def test_an_older_video_stays(refuse: Refuse, here: Path) -> None:
    (here / "clip.mp4").write_bytes(b"an older video")  # `refuse` compares every byte
    line = refuse(OUTPUT, render_flags())
    assert line == "clip.mp4 exists already; choose another name, or pass --overwrite"


def test_a_render_never_replaces_what_it_reads(refuse: Refuse, here: Path) -> None:
    """With --overwrite a first frame named clip.mp4 was gone after the render."""
    picture(96, 64).save(here / "clip.mp4", "PNG")
    (here / "clip.json").write_text("a prompt")
    for options in (
        {"image": "clip.mp4"},
        {"image": here / "clip.mp4"},
        {"prompt": None, "prompt_file": "clip.json"},
    ):
        line = refuse(OUTPUT, render_flags(overwrite=True, **options))
        assert "is an input of this render and would be replaced" in line


def test_the_default_name_is_refused_like_any_other(refuse: Refuse, here: Path) -> None:
    (here / "first.mp4").touch()
    assert "first.mp4 exists already" in refuse(OUTPUT, render_flags(output=None))


def test_a_dry_run_refuses_what_a_render_refuses(refuse: Refuse, here: Path) -> None:
    (here / "clip.mp4").touch()
    refuse(OUTPUT, render_flags(dry_run=True))
    refuse(INPUT, render_flags(dry_run=True, image="none.png"))
    refuse(USAGE, render_flags(dry_run=True, device="gpu"))


@pytest.mark.parametrize(
    ("code", "options"),
    [
        (PRESET, {"preset": "tinny"}),
        (USAGE, {"action": "w-8", "camera": "a.npz"}),
        (USAGE, {"dtype": "float16"}),
        (USAGE, {"save_camera": "path.npz"}),
        (USAGE, {"prompt": "plans have none"}),
        (INPUT, {"image": "none.png"}),
        (PLAN, {"frames": 9}),
        (WEIGHTS, {"model": "none"}),
        (OUTPUT, {"action": "w-16", "save_camera": "no/where.npz"}),
    ],
)
def test_plans_are_refused_alike(refuse: Refuse, code: int, options: dict[str, Any]) -> None:
    refuse(code, ["plan", *flags(**options)])
