"""Model folders that are missing, damaged, or made for another preset; and numbers that are bad."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import (
    TINY,
    change_tensor,
    copied_model,
    hashes,
    record,
    render_flags,
    sanawm,
    snapshot,
)
from conftest import Refuse
from torch import Tensor

WEIGHTS, DEVICE = 6, 7
NETWORK, VAE, TEXT = "dit.safetensors", "vae.safetensors", "text.safetensors"


@pytest.fixture
def model(here: Path) -> Path:
    return copied_model(here / "model")


def test_a_copy_of_the_model_renders_the_same(model: Path) -> None:
    assert hashes(model=model) == hashes()


def test_a_folder_that_is_none(refuse: Refuse, here: Path) -> None:
    (here / "empty").mkdir()
    for folder, said in {
        "none": "none: no such model folder; give a folder with a model.json to --model",
        "first.png": "first.png: no such model folder",
        "empty": "empty: no model.json in it, so no model folder",
    }.items():
        assert refuse(WEIGHTS, render_flags(model=folder)).startswith(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told | {"schema": 2}, "its schema is not 1"),
        (lambda told: {k: v for k, v in told.items() if k != "trained"}, "trained is missing"),
        (lambda told: told | {"network": {}}, "network: missing key 'latent_channels'"),
        (lambda told: told | {"files": {"../x": {}}}, "'../x' is not the name of a file"),
        (lambda told: [told], "its schema is not 1"),
    ],
)
def test_a_model_json_that_makes_no_sense(
    refuse: Refuse, model: Path, change: Callable[[Any], Any], said: str
) -> None:
    path = model / "model.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    assert said in refuse(WEIGHTS, render_flags(model=model))


def test_a_model_json_that_is_no_json(refuse: Refuse, model: Path) -> None:
    (model / "model.json").write_text('{"schema": 1,')
    assert "model.json: cannot be read as JSON" in refuse(WEIGHTS, render_flags(model=model))


def test_the_first_difference_from_the_preset_is_named(refuse: Refuse, model: Path) -> None:
    line = refuse(WEIGHTS, render_flags(model=model, preset="sana-wm-streaming-720p"))
    assert line == (
        f"{model} does not fit preset sana-wm-streaming-720p: network.width is "
        f"{TINY.network.width}, the preset has 2240; use the preset that belongs to these weights"
    )
    path = model / "model.json"
    told = json.loads(path.read_text())
    told["text"]["tokens"] = 7
    path.write_text(json.dumps(told))
    line = refuse(WEIGHTS, ["plan", f"--model={model}"])
    assert f"text.tokens is 7, the preset has {TINY.text.tokens}" in line


def test_damaged_weights(refuse: Refuse, model: Path) -> None:
    """Told apart from a model that is whole before any of its tensors is read."""
    path = model / NETWORK
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    for data, said in (
        (whole[:-1], f"has {len(whole) - 1} bytes, model.json says {len(whole)}"),
        (whole + b"\0", f"has {len(whole) + 1} bytes"),
        (bytes(flipped), "has another sha256 than model.json says"),
    ):
        path.write_bytes(data)
        line = refuse(WEIGHTS, render_flags(model=model, quiet=True))
        assert line.startswith(f"{path} {said}")
    path.unlink()
    line = refuse(WEIGHTS, render_flags(model=model, quiet=True))
    assert line.startswith(f"{path}: the file is missing")


@pytest.mark.parametrize("file", [NETWORK, VAE, TEXT])
def test_a_file_that_the_model_does_not_list(refuse: Refuse, model: Path, file: str) -> None:
    path = model / "model.json"
    told = json.loads(path.read_text())
    del told["files"][file]
    path.write_text(json.dumps(told))
    assert f"lists no {file}" in refuse(WEIGHTS, render_flags(model=model))


def fails(code: int, here: Path, **options: object) -> str:
    """A render that gets as far as its weights, and no further; returns the last line."""
    before = snapshot(here)
    ran = sanawm(*render_flags(overwrite=True, **options))
    assert (ran.code, ran.out) == (code, "")
    assert snapshot(here) == before
    *talk, line = ran.err.splitlines()
    assert not any(text.startswith("error") for text in talk)
    return line.removeprefix("error: ")


@pytest.mark.parametrize("file", [NETWORK, VAE, TEXT])
def test_a_file_that_is_no_safetensors(here: Path, model: Path, file: str) -> None:
    (model / file).write_bytes(b"not tensors at all")
    record(model, file)
    (here / "clip.mp4").write_bytes(b"an older video")
    assert "not a readable safetensors file" in fails(WEIGHTS, here, model=model)


def test_a_tensor_of_another_shape(here: Path, model: Path) -> None:
    change_tensor(model, NETWORK, "final_layer.linear.bias", lambda bias: bias[1:])
    line = fails(WEIGHTS, here, model=model)
    assert "final_layer.linear.bias is (127,), the network has (128,)" in line


@pytest.mark.parametrize("plan", ["3", "1,1,1"])
def test_a_network_with_a_bad_number(here: Path, model: Path, plan: str) -> None:
    """Nothing is left behind, and an older video stays."""
    (here / "clip.mp4").write_bytes(b"an older video")
    (here / "clip.json").write_text("{}")

    def spoil(bias: Tensor) -> Tensor:
        return bias.index_fill(0, bias.new_tensor([3]).long(), math.nan)

    change_tensor(model, NETWORK, "final_layer.linear.bias", spoil)
    chunk = 0 if plan == "3" else 1  # a first chunk of one latent is all given
    assert fails(DEVICE, here, model=model, chunk_plan=plan).startswith(
        f"latents of chunk {chunk} are not finite after step 1 of 4 (timestep 1000); "
    )


def test_a_decoder_with_a_bad_number(here: Path, model: Path) -> None:
    def spoil(bias: Tensor) -> Tensor:
        return bias.fill_(math.inf)

    change_tensor(model, VAE, "decoder.conv_out.conv.bias", spoil)
    line = fails(DEVICE, here, model=model, chunk_plan="2,1")
    assert line.startswith("chunk 0: ")
    assert "decoded values are NaN or Inf" in line


def test_other_weights_give_another_video_and_fingerprint(here: Path, model: Path) -> None:
    plain = hashes(model=model)
    first = json.loads((here / "clip.json").read_text())["model"]["fingerprint"]
    change_tensor(model, NETWORK, "final_layer.linear.bias", lambda bias: bias + 1)
    assert hashes(model=model) != plain
    second = json.loads((here / "clip.json").read_text())["model"]["fingerprint"]
    assert first != second
