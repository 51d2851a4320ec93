"""`verify` takes any folder in its format: guidance, batches, no camera, weight overrides.

The expected numbers here are our own, written into a case: what is tested is that every part of
a case is read, used and compared, so that a change of any of them shows.
"""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from toy import CONFIG, SIZE, toy_camera, toy_latents, toy_network, toy_text

from sanawm_cli.conditioning.clip import Clip, TensorCamera, TextEmbeds
from sanawm_cli.errors import InputError
from sanawm_cli.grid import FrameGrid
from sanawm_cli.plan.chunks import Plan, cut
from sanawm_cli.preset.settings import StreamSettings
from sanawm_cli.rollout.loop import Sampler
from sanawm_cli.rollout.noise import TensorNoise
from sanawm_cli.rollout.schedule import schedule
from sanawm_cli.rollout.session import RolloutSession
from sanawm_cli.verify.report import CaseReport
from sanawm_cli.verify.run import verify_folder

SEGMENTS = (0, 3, 5, 7)
STEPS = (1000, 727, 0)


def write_case(
    folder: Path,
    *,
    cfg_scale: float = 1.0,
    batch: int = 1,
    camera: bool = True,
    overrides: bool = False,
    guided_output: bool = False,
) -> dict[str, Tensor]:
    """A case named `made` rendered by ourselves; returns its tensors."""
    network = toy_network(dtype=torch.float32)
    weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    save_file(weights, folder / "made.weights.safetensors")
    if overrides:
        name = "blocks.0.attn.proj.bias"
        save_file({name: weights[name] + 1}, folder / "made.overrides.safetensors")
        network.load_state_dict({**weights, name: weights[name] + 1})
    noise = toy_latents(batch, SEGMENTS[-1], SIZE).float()
    path = toy_camera(batch, SEGMENTS[-1], SIZE)
    text, negative = toy_text(*(5,) * batch), toy_text(*(2,) * batch, tokens=4, seed=9)
    tensors = {
        "in.noise": noise,
        "in.embeds": text.embeds.float(),
        "in.mask": text.mask.long(),
    }
    if camera:
        tensors["in.camera_conditions"] = path.raymap.float()
        tensors["in.chunk_plucker"] = path.plucker.float()
    if cfg_scale != 1.0:
        tensors["in.neg_embeds"] = negative.embeds.float()
        tensors["in.neg_mask"] = negative.mask.long()
    sampler = Sampler(schedule(STEPS), cfg_scale)
    tensors |= render(network, tensors, sampler, guided_output=guided_output)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "made.io.safetensors")
    facts = {
        "arch": {
            "in_channels": CONFIG.latent_channels,
            "hidden_size": CONFIG.width,
            "num_attention_heads": CONFIG.heads,
            "num_layers": CONFIG.blocks,
            "softmax_every_n": CONFIG.softmax_every,
            "mlp_ratio": CONFIG.ffn_ratio,
            "caption_channels": CONFIG.text_channels,
        },
        "sampler": {
            "num_frame_per_block": 2,
            "num_cached_blocks": 1,
            "sink_token": False,
            "denoising_step_list": STEPS,
            "cfg_scale": cfg_scale,
        },
        "segments": SEGMENTS,
        "io": "made.io.safetensors",
        "weights": "made.weights.safetensors",
        "weight_overrides": "made.overrides.safetensors" if overrides else None,
    }
    (folder / "made.json").write_text(json.dumps(facts))
    return tensors


def render(network, given, sampler, *, guided_output):
    """Outputs of every step, memory of one block, final latents."""
    stream = StreamSettings(chunk_latents=2, window=1, sink=False, grid="remainder")
    sizes = tuple(b - a for a, b in pairwise(SEGMENTS))
    plan = Plan(
        source="chunk plan",
        requested=0,
        frames=0,
        latents=SEGMENTS[-1],
        fps=16,
        grid="by hand",
        chunks=cut(sizes, stream=stream, frame_grid=FrameGrid()),
    )
    camera = None
    if "in.camera_conditions" in given:
        camera = TensorCamera(given["in.camera_conditions"], given["in.chunk_plucker"])
    negative = None
    if "in.neg_embeds" in given:
        negative = TextEmbeds(given["in.neg_embeds"], given["in.neg_mask"])
    text = TextEmbeds(given["in.embeds"], given["in.mask"])
    session = RolloutSession(network, sampler, weights="")
    session.start(
        Clip(given["in.noise"][:, :, :1], text, negative, camera),
        plan,
        TensorNoise(given["in.noise"]),
    )
    found, latents = {}, []
    for chunk in plan.chunks:

        def keep(done, chunk=chunk):
            output = sampler.guide(done.output) if guided_output else done.output
            found[f"c{chunk.index}.s{done.step}.model_out"] = output.clone()
            found[f"c{chunk.index}.s{done.step}.latents"] = done.latents.clone()

        done = session.step(keep)
        found[f"c{chunk.index}.cache.b0.slot0"] = done.absorbed[0].state
        latents.append(done.latents)
    return {**found, "out.latents": torch.cat(latents, 2)}


def verify(folder: Path) -> CaseReport:
    return verify_folder(folder, (), torch.device("cpu"), torch.float32)[0]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"cfg_scale": 2.5},
        {"cfg_scale": 2.5, "guided_output": True},
        {"cfg_scale": 0.5, "camera": False},
        {"batch": 2},
        {"batch": 2, "cfg_scale": 3.0},
        {"camera": False},
        {"overrides": True},
    ],
    ids=str,
)
def test_a_case_of_any_shape_holds(tmp_path: Path, settings) -> None:
    write_case(tmp_path, **settings)
    found = verify(tmp_path)
    assert found.largest < 2e-6
    assert {q.name for q in found.quantities} == {
        "velocity",
        "latents",
        "memory: state",
        "final latents",
    }


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "in.embeds"),
        ({}, "in.mask"),
        ({}, "in.camera_conditions"),
        ({}, "in.chunk_plucker"),
        ({}, "in.noise"),
        ({"cfg_scale": 2.5}, "in.neg_embeds"),
        ({"cfg_scale": 2.5}, "in.neg_mask"),
        ({}, "c1.s0.model_out"),
        ({}, "c2.cache.b0.slot0"),
        ({}, "out.latents"),
    ],
)
def test_every_tensor_of_a_case_counts(tmp_path: Path, settings, name: str) -> None:
    tensors = write_case(tmp_path, **settings)
    changed = tensors[name].clone()
    if name.endswith("mask"):
        changed[:, 0] = 0
    else:
        changed[..., -1] += 0.5
    save_file(
        {k: v.contiguous() for k, v in {**tensors, name: changed}.items()},
        tmp_path / "made.io.safetensors",
    )
    assert verify(tmp_path).largest > 1e-3


def test_weight_overrides_count(tmp_path: Path) -> None:
    write_case(tmp_path, overrides=True)
    facts = json.loads((tmp_path / "made.json").read_text())
    (tmp_path / "made.json").write_text(json.dumps({**facts, "weight_overrides": None}))
    assert verify(tmp_path).largest > 1e-3


@pytest.mark.parametrize("key", ["weights", "weight_overrides"])
def test_a_file_name_cannot_leave_the_folder(tmp_path: Path, key: str) -> None:
    write_case(tmp_path, overrides=True)
    facts = json.loads((tmp_path / "made.json").read_text())
    (tmp_path / "made.json").write_text(json.dumps({**facts, key: "../made.weights.safetensors"}))
    with pytest.raises(InputError, match="not the name of a file beside it"):
        verify(tmp_path)


def test_guidance_without_a_negative_prompt_is_an_error(tmp_path: Path) -> None:
    write_case(tmp_path)
    facts = json.loads((tmp_path / "made.json").read_text())
    facts["sampler"]["cfg_scale"] = 2.0
    (tmp_path / "made.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match=r"in\.neg_embeds"):
        verify(tmp_path)


@pytest.mark.parametrize("value", [-1, 0, 7, 10**9, 10**30, "x", None])
@pytest.mark.parametrize("key", ["hidden_size", "num_attention_heads"])
def test_sizes_that_no_network_has_are_an_error(tmp_path: Path, key: str, value: object) -> None:
    write_case(tmp_path)
    facts = json.loads((tmp_path / "made.json").read_text())
    facts["arch"][key] = value
    (tmp_path / "made.json").write_text(json.dumps(facts))
    with pytest.raises(InputError):
        verify(tmp_path)
