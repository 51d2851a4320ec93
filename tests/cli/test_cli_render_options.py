"""What each option does to the pixels: told by the frame hashes, one per chunk."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import ROOT, hashes, picture, render, sanawm
from PIL import Image
from safetensors.torch import save_file

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.kinematics import DIALECTS, roll_out
from sanawm_cli.conditioning.camera import PathCamera
from sanawm_cli.conditioning.clip import TextEmbeds
from sanawm_cli.jobs.conditions import make_clip
from sanawm_cli.jobs.machine import choose_machine
from sanawm_cli.jobs.models import load_text_encoder
from sanawm_cli.jobs.request import ClipRequest, MachineRequest
from sanawm_cli.jobs.resolve import resolve_clip
from sanawm_cli.output.ffmpeg import bundled_ffmpeg
from sanawm_cli.output.verify import read_facts
from sanawm_cli.preset.overrides import Overrides
from sanawm_cli.weights.folder import open_model_folder

# Four chunks: the last one's context tells all windows and sinks apart.
FOUR = {"frames": None, "chunk_plan": "2,1,1,1"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Hashes of a render with the defaults."""
    folder = tmp_path_factory.mktemp("plain")
    picture(96, 64).save(folder / "first.png")
    return hashes(image=folder / "first.png", output=folder / "clip.mp4")


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Hashes of four chunks."""
    folder = tmp_path_factory.mktemp("four")
    picture(96, 64).save(folder / "first.png")
    return hashes(image=folder / "first.png", output=folder / "clip.mp4", **FOUR)


def sidecar(folder: Path) -> Any:
    return json.loads((folder / "clip.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 1},
        {"noise": "horizon"},
        {"steps": "1000,500,0"},
        {"prompt": "a forest"},
        {"action": "w-16"},
        {"dtype": "bfloat16"},
        {"cfg_scale": 2, "negative_prompt": ""},
        {"chunk_plan": "2,1"},
    ],
)
def test_options_that_change_the_pixels(
    here: Path, plain: list[str], options: dict[str, Any]
) -> None:
    assert hashes(**options)[0] != plain[0]


def test_options_that_change_the_file_only(here: Path, plain: list[str]) -> None:
    assert hashes(fps=24, crf=40, negative_prompt="has no part without guidance") == plain
    assert read_facts(here / "clip.mp4", ffmpeg=bundled_ffmpeg()).fps == 24


def test_seconds_count_in_frames_of_the_file(here: Path, plain: list[str]) -> None:
    assert hashes(frames=None, seconds=1.06) == plain


def test_a_longer_clip_begins_with_the_chunks_of_a_shorter_one(here: Path) -> None:
    """Both are cut as 4, 3, …, so that seed, camera and window agree as far as both go."""
    path = {"action": "w-40,d-32"}
    short = hashes(frames=49, camera_fit="truncate", **path)
    long = hashes(frames=73, **path)
    assert (len(short), len(long)) == (2, 3)
    assert long[:2] == short


@pytest.mark.parametrize(
    ("options", "context"),
    [
        ({"kv_window": "all"}, [0, 1, 2]),
        ({"kv_window": 1}, [0]),
        ({"no_sink": True}, [1, 2]),
        ({"sink": True, "kv_window": 2}, [0, 2]),
    ],
)
def test_windows_change_the_chunks_that_read_less_or_more(
    here: Path, four: list[str], options: dict[str, Any], context: list[int]
) -> None:
    found = hashes(**FOUR, **options)
    assert sidecar(here)["plan"]["chunks"][3]["context"] == context
    assert found[:2] == four[:2]
    assert (found == four) == (context == [0, 2])


def test_chunks_of_one_latent(here: Path) -> None:
    assert len(hashes(chunk_plan="1,1,1")) == 3
    first, *rest = (chunk["frames"] for chunk in sidecar(here)["plan"]["chunks"])
    assert (first, rest) == ([0, 1], [[1, 9], [9, 17]])


def test_bfloat16(here: Path) -> None:
    render(dtype="bfloat16")
    assert sidecar(here)["machine"]["dtype"] == "bfloat16"


# --- the prompt -------------------------------------------------------------------------------


def encoded(prompt: str) -> TextEmbeds:
    encoder = load_text_encoder(open_model_folder(ROOT / "presets" / "tiny"))
    with torch.inference_mode():
        return encoder.encode(prompt).text


def test_a_prompt_from_a_file_is_the_same_prompt(here: Path, plain: list[str]) -> None:
    (here / "prompt.txt").write_text("a courtyard\n", encoding="utf-8")
    assert hashes(prompt=None, prompt_file="prompt.txt") == plain


def test_embeddings_are_the_prompt_they_were_made_from(here: Path, plain: list[str]) -> None:
    text, path = encoded("a courtyard"), here / "prompt.safetensors"
    save_file({"embeds": text.embeds, "mask": text.mask}, path)
    assert hashes(prompt=None, text_embeds=path) == plain
    save_file({"embeds": text.embeds[0].clone()}, path)
    assert hashes(prompt=None, text_embeds=path) == plain
    assert sidecar(here)["inputs"]["text_embeds"]["path"] == str(path)


def test_masked_tokens_have_no_part(here: Path) -> None:
    text, path, found = encoded("a courtyard"), here / "prompt.safetensors", []
    mask = torch.arange(text.embeds.shape[1]) < 6
    for junk in (0.0, 9.0):
        embeds = torch.where(mask[None, :, None], text.embeds, junk)
        save_file({"embeds": embeds, "mask": mask}, path)
        found.append(hashes(prompt=None, text_embeds=path))
    assert found[0] == found[1]


def test_guidance_from_embeddings_is_guidance(here: Path) -> None:
    prompt, negative, path = encoded("a courtyard"), encoded("fog"), here / "prompt.safetensors"
    save_file({"embeds": prompt.embeds, "negative_embeds": negative.embeds}, path)
    told = hashes(cfg_scale=2, negative_prompt="fog")
    assert hashes(cfg_scale=2, prompt=None, text_embeds=path) == told
    assert hashes(cfg_scale=2, negative_prompt="rain") != told
    assert hashes(cfg_scale=3, negative_prompt="fog") != told


# --- the camera -------------------------------------------------------------------------------


def test_a_saved_path_renders_as_the_action_it_came_from(here: Path) -> None:
    same = {"image": "first.png", "action": "w-8,dw-8"}
    given = [f"--{name}={value}" for name, value in same.items()]
    assert sanawm("plan", *given, "--save-camera=path.npz").code == 0
    assert hashes(camera="path.npz") == hashes(**same)
    inputs = sidecar(here)["inputs"]
    assert (inputs["intrinsics_source"], inputs["action"]) == ("guess", "w-8,dw-8")


def test_actions_dialects_and_speeds_make_other_paths(here: Path) -> None:
    found = [
        hashes(action=action, **more)
        for action, more in (
            ("w-16", {}),
            ("s-16", {}),
            ("wd-16", {}),
            ("wd-16", {"action_dialect": "v1"}),
            ("w-16", {"translation_speed": 0.5}),
        )
    ]
    assert len({tuple(each) for each in found}) == len(found)


def test_one_camera_in_four_spellings(here: Path) -> None:
    np.save(here / "row.npy", np.array([60.0, 60, 48, 32]))
    np.save(here / "matrix.npy", np.array([[60.0, 0, 48], [0, 60, 32], [0, 0, 1]]))
    (here / "rows.txt").write_text("60 60 48 32\n" * 17)
    spelt = ["60,60,48,32", "row.npy", "matrix.npy", "rows.txt"]
    found = [hashes(action="w-16", intrinsics=text) for text in spelt]
    assert found == [found[0]] * 4
    assert sidecar(here)["inputs"]["intrinsics_source"] == "flag"
    assert hashes(action="w-16", intrinsics="fov=70") != found[0]


def test_a_camera_follows_its_picture_through_resize_and_crop(here: Path) -> None:
    """Its numbers are pixels of the picture as given, be that the video's size or larger."""
    large = picture(192, 128)
    large.save(here / "large.png")
    middle = large.resize((96, 64), Image.Resampling.LANCZOS).crop((16, 0, 80, 64))
    middle.save(here / "middle.png")
    found = hashes(image="large.png", action="w-16", intrinsics="120,120,100,60")
    assert found == hashes(image="middle.png", action="w-16", intrinsics="60,60,34,30")
    assert found != hashes(image="middle.png", action="w-16", intrinsics="60,60,50,30")


def test_the_network_gets_the_camera_in_latent_units(here: Path) -> None:
    resolved = resolve_clip(
        ClipRequest(
            overrides=Overrides(height=64, width=96),
            image=here / "first.png",
            prompt="a courtyard",
            action="w-8,d-8",
            intrinsics="60,70,50,30",
        )
    )
    machine = choose_machine(MachineRequest(device="cpu"))
    clip = make_clip(resolved, torch.zeros(1), (encoded("a courtyard"), None), machine)
    assert isinstance(clip.camera, PathCamera)
    assert clip.camera.intrinsics.tolist() == [[60 / 32, 70 / 32, 50 / 32, 30 / 32]]
    assert (clip.camera.size, clip.camera.temporal_stride) == ((2, 3), 8)
    action = roll_out(parse_action("w-8,d-8"), DIALECTS["v2"])
    assert (clip.camera.poses == action.poses).all()


def test_a_path_is_fitted_as_asked(here: Path) -> None:
    def notes() -> str:
        return " ".join(sidecar(here)["notes"])

    held = hashes(action="w-8", camera_fit="hold")
    assert "the last of 9 poses is held for 8 more frames" in notes()
    repeated = hashes(action="w-8", camera_fit="repeat")
    assert "the motion of 9 poses is repeated for 8 more frames" in notes()
    cut = hashes(action="w-40", camera_fit="truncate")
    assert "the last 24 of 41 poses are not used" in notes()
    assert held != repeated
    assert cut == hashes(action="w-16")


def test_the_path_says_how_long_the_clip_is(here: Path) -> None:
    render(action="w-24", frames=None)
    plan = sidecar(here)["plan"]
    assert plan["frames"] == {"requested": 25, "rendered": 25}


# --- the picture ------------------------------------------------------------------------------


def test_a_turned_photo_is_the_upright_one(here: Path, plain: list[str]) -> None:
    """Cameras store what the sensor saw, and in EXIF how it was held: 6 is a quarter turn."""
    turned = picture(96, 64).transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(here / "turned.png", exif=exif)
    with Image.open(here / "turned.png") as stored:
        assert stored.size == (64, 96)
    assert hashes(image="turned.png") == plain


def test_a_portrait_picture_fills_a_wide_video(here: Path) -> None:
    """It is scaled up to the width; of its height the middle is left."""
    portrait = picture(64, 96)
    portrait.save(here / "portrait.png")
    told = render(image="portrait.png", width=96, json=True).json
    assert (told["width"], told["height"]) == (96, 64)
    assert any("scaled up" in note for note in sidecar(here)["notes"])
    portrait.paste((0, 255, 0), (0, 0, 64, 20))
    portrait.paste((0, 255, 0), (0, 76, 64, 96))
    portrait.save(here / "portrait.png")
    assert hashes(image="portrait.png", width=96) == told["frame_hashes"]


def test_what_is_cut_off_has_no_part(here: Path, plain: list[str]) -> None:
    wide = picture(96, 64)
    wide.paste((0, 255, 0), (0, 0, 16, 64))
    wide.paste((0, 255, 0), (80, 0, 96, 64))
    wide.save(here / "wide.png")
    assert hashes(image="wide.png") == plain
    wide.paste((0, 255, 0), (0, 0, 17, 64))
    wide.save(here / "wide.png")
    assert hashes(image="wide.png") != plain
