"""The network against diffusers' own, run with the same weights on a whole clip at once."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import SanaWMTransformer3DModel
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from toy import error, nothing_yet

from sanawm_cli.configs import NetworkConfig
from sanawm_cli.model.context import CameraInputs
from sanawm_cli.model.dit import Network
from sanawm_cli.model.mixers import SoftmaxMixer
from sanawm_cli.weights.keymaps import is_ignored, to_diffusers

FIXTURES = Path(__file__).parents[1] / "fixtures"
CONFIG = NetworkConfig(latent_channels=8, width=48, heads=2, blocks=4, text_channels=32)
ABOUT = json.loads((FIXTURES / "dense_a.json").read_text())
Tensors = dict[str, Tensor]


class NoBfloat16(TorchFunctionMode):
    """Casts to bfloat16 do nothing: diffusers attends in 16 bits whatever the weights are."""

    casts = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        to_narrow = torch.bfloat16 in given.values() or any(a is torch.bfloat16 for a in args)
        if func is Tensor.bfloat16 or (func is Tensor.to and to_narrow):
            self.casts += 1
            return args[0]
        return func(*args, **given)


@pytest.fixture(scope="module")
def weights() -> Tensors:
    return load_file(FIXTURES / "stream_a.weights.safetensors")


@pytest.fixture(scope="module")
def io() -> Tensors:
    return load_file(FIXTURES / "dense_a.safetensors")


@pytest.fixture(scope="module")
def twin(weights: Tensors) -> nn.Module:
    make: Any = SanaWMTransformer3DModel  # untyped
    model = make(**ABOUT["diffusers_config"]).eval().requires_grad_(False)
    named = {to_diffusers(n): w for n, w in weights.items() if n not in ABOUT["raw_keys_dropped"]}
    model.load_state_dict(named, strict=True)
    return model


@pytest.fixture(scope="module")
def ours(weights: Tensors) -> Network:
    """With diffusers' scales: 1/√d in the main branch, padded in the camera's."""
    network = Network(CONFIG).requires_grad_(False)
    used = {name: w for name, w in weights.items() if not is_ignored(name, CONFIG)}
    network.load_state_dict(used, strict=True)
    for block in network.layers:
        if isinstance(block.attn, SoftmaxMixer):
            block.attn.main_scale = CONFIG.head_dim**-0.5
            block.attn.camera_scale = 128**-0.5
    return network


def their_velocity(
    twin: nn.Module, io: Tensors, timesteps: Tensor, *, camera: bool
) -> tuple[Tensor, int]:
    """And how many casts to bfloat16 were passed over."""
    seen = {}
    if camera:
        seen = {"camera_conditions": io["in.camera_conditions"]}
        seen["chunk_plucker"] = io["in.chunk_plucker"]
    with NoBfloat16() as mode:
        (velocity,) = twin(
            hidden_states=io["in.noise"],
            timestep=timesteps,
            encoder_hidden_states=io["in.embeds"][:, None],
            encoder_attention_mask=io["in.mask"],
            return_dict=False,
            **seen,
        )
    return velocity, mode.casts


def our_velocity(network: Network, io: Tensors, timesteps: Tensor, *, camera: bool) -> Tensor:
    seen = CameraInputs(io["in.camera_conditions"], io["in.chunk_plucker"]) if camera else None
    text = network.text_context(io["in.embeds"], io["in.mask"])
    context = network.chunk_context(text, seen, latents=range(11), size=(2, 3))
    time = network.time_vectors(timesteps[:, 0].long())
    return network.velocity(io["in.noise"], time, context, nothing_yet(network, 1, (2, 3)))


@pytest.mark.parametrize("camera", [True, False], ids=["camera", "no camera"])
@pytest.mark.parametrize("steps", ["published", "low"])
def test_a_whole_clip(
    twin: nn.Module, ours: Network, io: Tensors, steps: str, camera: bool
) -> None:
    """Timesteps near 1000 magnify the last bit of a frequency, rounded as libraries do."""
    timesteps = io["in.timestep"]
    if steps == "low":
        timesteps = torch.arange(11.0)[None, None] * 3
    theirs, casts = their_velocity(twin, io, timesteps, camera=camera)
    assert casts == (6 if camera else 3)  # q, k, v of one softmax block, per branch
    assert error(our_velocity(ours, io, timesteps, camera=camera), theirs) <= 1e-5


def test_a_whole_clip_as_published(ours: Network, io: Tensors) -> None:
    got = our_velocity(ours, io, io["in.timestep"], camera=True)
    assert error(got, io["out.diffusers_fp32sdpa"]) <= 1e-5
    assert error(got, io["out.sglang_dense"]) > 1e-3  # other scales


def test_the_names_of_a_small_model(twin: nn.Module) -> None:
    theirs = {name: w.shape for name, w in twin.state_dict().items()}
    used = {name: shape for name, shape in theirs.items() if not is_ignored(name, CONFIG)}
    assert {to_diffusers(name): w.shape for name, w in Network(CONFIG).state_dict().items()} == used
