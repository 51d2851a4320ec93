"""In 16 bits: what stays float32, and that the result is near."""

import pytest
import torch
from torch import Tensor
from toy import (
    SIZE,
    at_timestep,
    contexts,
    nothing_yet,
    render,
    toy_camera,
    toy_clip,
    toy_latents,
    toy_network,
    toy_noise,
    toy_plan,
    toy_session,
    toy_text,
)

from sanawm_cli.conditioning.clip import TensorCamera
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import BlockMemory, DeltaMemory
from sanawm_cli.weights.keymaps import keeps_float32


@pytest.fixture(scope="module")
def narrow() -> Network:
    """The toy network as weights are loaded in 16 bits."""
    network = toy_network(dtype=torch.float32)
    for name, weight in network.named_parameters():
        if not keeps_float32(name):
            weight.data = weight.data.bfloat16()
    return network


def chunk(network: Network) -> tuple[Tensor, tuple[BlockMemory, ...]]:
    """Velocity and memory of one chunk, from float32 inputs."""
    full = toy_camera(1, 3, SIZE)
    camera = TensorCamera(full.raymap.float(), full.plucker.float())
    context = contexts(network, toy_text(5), camera, range(3))
    x = toy_latents(1, 3, SIZE).float()
    past = nothing_yet(network, 1, SIZE)
    velocity = network.velocity(x, at_timestep(network, 500, 3), context, past)
    return velocity, network.absorb(x, at_timestep(network, 0, 3), context, past)


def relative(got: Tensor, want: Tensor) -> float:
    return float((got.float() - want).norm() / want.norm())


def test_products_are_narrow_and_the_rest_is_not(narrow: Network) -> None:
    kinds = {name: weight.dtype for name, weight in narrow.named_parameters()}
    assert narrow.dtype == torch.bfloat16
    assert kinds["blocks.0.attn.qkv.weight"] == torch.bfloat16
    assert kinds["blocks.0.attn.q_norm.weight"] == torch.float32


def test_states_are_float32_and_keys_narrow(narrow: Network) -> None:
    velocity, absorbed = chunk(narrow)
    assert velocity.dtype == torch.float32  # as the latents are
    for memories in (absorbed, narrow.empty_memory(1, 6)):
        for memory in memories:
            assert memory.ffn_tail.dtype == torch.bfloat16
            if isinstance(memory, DeltaMemory):
                for state in (memory.state, memory.norm, memory.camera):
                    assert state.dtype == torch.float32
                assert memory.key_tail.dtype == torch.bfloat16
            else:
                for tokens in (memory.main, memory.camera):
                    assert tokens.key.dtype == tokens.value.dtype == torch.bfloat16


def test_a_chunk_is_near_the_one_in_float32(narrow: Network, network32: Network) -> None:
    got, memories = chunk(narrow)
    want, others = chunk(network32)
    assert 1e-4 < relative(got, want) < 0.05
    for memory, other in zip(memories, others, strict=True):
        assert relative(memory.ffn_tail, other.ffn_tail) < 0.05
        if isinstance(memory, DeltaMemory) and isinstance(other, DeltaMemory):
            assert relative(memory.state, other.state) < 0.05


def test_conditioning_keeps_its_precision(narrow: Network) -> None:
    """Ray matrices and positions hold distances: 8 bits would move the camera."""
    camera = toy_camera(1, 3, SIZE)
    inputs = TensorCamera(camera.raymap.float(), camera.plucker.float())
    context = contexts(narrow, toy_text(5), inputs, range(3))
    assert context.camera is not None
    assert context.camera.rays.into.dtype == torch.float32
    assert context.rotation.cos.dtype == torch.float32
    assert context.text.blocks[0].key.dtype == torch.bfloat16


@pytest.mark.parametrize("guided", [False, True], ids=["plain", "guided"])
def test_a_clip_renders(narrow: Network, network32: Network, guided: bool) -> None:
    plan = toy_plan(3, 2, 2)
    negative = toy_text(3, seed=30) if guided else None
    clip = toy_clip(7, dtype=torch.float32, negative=negative)
    noise = toy_noise(plan, dtype=torch.float32)
    scale = 2.0 if guided else 1.0
    got, _ = render(toy_session(narrow, cfg_scale=scale), clip, plan, noise)
    want, _ = render(toy_session(network32, cfg_scale=scale), clip, plan, noise)
    for one, other in zip(got, want, strict=True):
        assert one.latents.dtype == torch.float32
        assert relative(one.latents, other.latents) < 0.05
    assert torch.equal(got[0].latents[:, :, :1], clip.first_latent)  # not rounded to 16 bits
