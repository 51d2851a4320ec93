"""One chunk with nothing before it is the network as its definition reads."""

from dataclasses import replace

import pytest
import torch
from toy import (
    CONFIG,
    Size,
    all_tensors,
    assert_same,
    at_timestep,
    contexts,
    error,
    generator,
    nothing_yet,
    tensors_of,
    toy_camera,
    toy_latents,
    toy_network,
    toy_text,
)

from sanawm_cli.configs import AttentionScale
from sanawm_cli.model.context import CameraInputs
from sanawm_cli.model.dit import Network
from sanawm_cli.model.reference import bidirectional


def difference(network: Network, latents: int, size: Size, *, camera: bool) -> float:
    """Between the two, for two videos with prompts, cameras and noise levels of their own."""
    x = toy_latents(2, latents, size)
    timesteps = torch.randint(0, 1001, (2, latents), generator=generator(7))
    text = toy_text(5, 3)
    seen = toy_camera(2, latents, size) if camera else None
    context = contexts(network, text, seen, range(latents), size)
    past = nothing_yet(network, 2, size)
    got = network.velocity(x, network.time_vectors(timesteps), context, past)
    inputs = None if seen is None else CameraInputs(seen.raymap, seen.plucker)
    return error(got, bidirectional(network, x, timesteps, text.embeds, text.mask, inputs))


@pytest.mark.parametrize("camera", [True, False], ids=["camera", "no camera"])
@pytest.mark.parametrize(
    ("latents", "size"), [(1, (2, 3)), (2, (3, 2)), (3, (1, 5)), (4, (3, 1)), (5, (2, 3))]
)
def test_one_chunk_is_the_reference(
    network: Network, latents: int, size: Size, camera: bool
) -> None:
    assert difference(network, latents, size, camera=camera) <= 1e-9


@pytest.mark.parametrize("scale", ["padded", "head"])
def test_both_attention_scales(scale: AttentionScale) -> None:
    network = toy_network(replace(CONFIG, attention_scale=scale))
    assert difference(network, 3, (2, 3), camera=True) <= 1e-9


def test_the_attention_scales_differ() -> None:
    x, text = toy_latents(1, 2, (2, 3)), toy_text(6)
    outputs = []
    for scale in ("padded", "head"):
        network = toy_network(replace(CONFIG, attention_scale=scale))
        context = contexts(network, text, None, range(2))
        time = at_timestep(network, 500, 2)
        outputs.append(network.velocity(x, time, context, nothing_yet(network, 1, (2, 3))))
    assert error(outputs[0], outputs[1]) > 1e-3


def test_other_sizes_and_orders_of_blocks() -> None:
    config = replace(CONFIG, width=96, heads=3, blocks=3, softmax_every=2, ffn_ratio=1.0)
    assert difference(toy_network(config), 3, (2, 2), camera=True) <= 1e-9


@pytest.mark.parametrize("kind", ["softmax", "delta"])
def test_the_last_block_remembers_what_a_whole_pass_would(kind: str) -> None:
    """`absorb` leaves out what the last block's output alone needs, and nothing more."""
    network = toy_network(replace(CONFIG, blocks=4 if kind == "softmax" else 3))
    assert network.config.kinds[-1] == kind
    camera, text, x = toy_camera(1, 3, (2, 3)), toy_text(4), toy_latents(1, 3, (2, 3))
    context = contexts(network, text, camera, range(3))
    time = at_timestep(network, 0, 3)
    past = nothing_yet(network, 1, (2, 3))
    absorbed = network.absorb(x, time, context, past)
    tokens = network.x_embedder(network.tokens(x))
    memories = []
    for index, block in enumerate(network.layers):
        tokens, memory = block(tokens, time, context, context.text.blocks[index], past.block(index))
        memories.append(memory)
    assert_same(all_tensors(absorbed[:-1]), all_tensors(tuple(memories[:-1])))
    got, want = tensors_of(absorbed[-1]), tensors_of(memories[-1])
    assert got.keys() == want.keys()
    assert max(error(got[name], want[name]) for name in want) <= 1e-12
