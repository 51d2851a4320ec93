"""Positions are places in the whole clip, exact at any distance, without a table's end."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from toy import (
    CONFIG,
    SIZE,
    at_timestep,
    contexts,
    error,
    nothing_yet,
    toy_camera,
    toy_clip,
    toy_latents,
    toy_network,
    toy_noise,
    toy_plan,
    toy_session,
    toy_text,
)

from sanawm_cli.cache.window import WindowMemory
from sanawm_cli.model.context import ChunkContext
from sanawm_cli.model.dit import Network
from sanawm_cli.model.rope import Rotation, axis_pairs, rotation

CPU = torch.device("cpu")


def angle(head_dim: int, channels: int, pair: int, place: tuple[int, int, int]) -> float:
    """The angle of one pair, by the formula: which axis it belongs to, and its frequency."""
    space, whole = channels // 6, head_dim // 6
    time = channels // 2 - 2 * space
    if pair < time:
        axis, j, base = 0, pair, head_dim // 2 - 2 * whole
    else:
        axis, j, base = 1 + (pair - time) // space, (pair - time) % space, whole
    return place[axis] * 10000.0 ** (-j / base)


@pytest.mark.parametrize("latents", [range(0, 2), range(3, 6), range(5000, 5003)], ids=str)
@pytest.mark.parametrize(("head_dim", "channels"), [(24, 24), (24, 12), (112, 112), (112, 56)])
def test_tables_by_the_formula(latents: range, head_dim: int, channels: int) -> None:
    rows, columns = 2, 3
    table = rotation(head_dim, channels, latents, (rows, columns), CPU)
    assert table.cos.dtype == table.sin.dtype == torch.float32
    places = [(f, r, c) for f in latents for r in range(rows) for c in range(columns)]
    angles = [
        [angle(head_dim, channels, pair, place) for pair in range(channels // 2)]
        for place in places
    ]
    exact = torch.tensor(angles, dtype=torch.float64)[:, None]
    # Rounding to float32, and nothing more: float32 angles would be off by 1e-4 here.
    assert error(table.cos.double(), exact.cos()) <= 1e-7
    assert error(table.sin.double(), exact.sin()) <= 1e-7


def test_axes_of_the_published_head() -> None:
    assert axis_pairs(112) == (20, 18, 18)
    assert axis_pairs(56) == (10, 9, 9)


def test_pairs_are_neighbours_and_turn_counterclockwise() -> None:
    quarter = Rotation(torch.zeros(1, 1, 2), torch.ones(1, 1, 2))
    x = torch.tensor([1.0, 0.0, 0.0, 2.0]).view(1, 1, 1, 4)
    assert quarter.apply(x).flatten().tolist() == [0, 1, -2, 0]
    assert torch.equal(quarter.inverse().apply(quarter.apply(x)), x)


def test_a_rotation_keeps_lengths() -> None:
    table = rotation(24, 24, range(700, 703), SIZE, CPU)
    x = torch.randn(2, 18, 3, 24, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    turned = table.apply(x)
    assert error(turned.norm(dim=-1), x.norm(dim=-1)) <= 1e-6
    assert error(table.inverse().apply(turned), x) <= 1e-6
    assert error(turned, x) > 0.1


# --- far into a clip ----------------------------------------------------------------------------


def velocity(network: Network, before: int, here: int) -> Tensor:
    """Of a chunk at latent `here` that remembers one at latent `before`."""
    camera, text = toy_camera(1, 5, SIZE), toy_text(5)
    embedded = network.text_context(text.embeds, text.mask)

    def context(own: slice, start: int) -> ChunkContext:
        return network.chunk_context(
            embedded,
            camera.chunk(own.start, own.stop),
            latents=range(start, start + own.stop - own.start),
            size=SIZE,
        )

    memory = WindowMemory(network.empty_memory(1, 6), {})
    x = toy_latents(1, 5, SIZE)
    absorbed = network.absorb(
        x[:, :, :3],
        at_timestep(network, 0, 3),
        context(slice(0, 3), before),
        memory.view(()),
    )
    memory = memory.extend(0, absorbed, keep=(0,))
    return network.velocity(
        x[:, :, 3:],
        at_timestep(network, 500, 2),
        context(slice(3, 5), here),
        memory.view((0,)),
    )


def test_only_distances_count_however_far_into_the_clip(network: Network) -> None:
    """A table that ends at 1024, or angles in float32, would show here."""
    near = velocity(network, 0, 3)
    assert error(velocity(network, 5000, 5003), near) <= 1e-6
    assert error(velocity(network, 1022, 1025), near) <= 1e-6
    assert error(velocity(network, 5000, 5004), near) > 1e-3
    assert error(velocity(network, 0, 1026), velocity(network, 0, 2050)) > 1e-3


def test_a_session_beyond_1024_latents() -> None:
    """The keys it remembers are turned by their absolute places."""
    network = toy_network(replace(CONFIG, width=16, heads=1, blocks=2, softmax_every=2))
    plan = toy_plan(1030, 2, 1)
    clip = toy_clip(1033, size=(1, 1))
    session = toy_session(network, steps=(500, 0))
    session.start(clip, plan, toy_noise(plan, size=(1, 1)))
    session.replay(toy_latents(1, 1030, (1, 1)))
    normed: list[Tensor] = []
    k_norm = network.get_submodule("blocks.1.attn.k_norm")
    handle = k_norm.register_forward_hook(lambda _m, _i, out: normed.append(out))
    session.step()
    handle.remove()
    assert len(normed) == 2  # one noise step, then the clean pass
    keys = session.memory.segments[1][1].main.key  # b h n d
    for token, latent in enumerate((1030, 1031)):
        for pair in range(8):
            a, b = normed[-1][0, token, 0, 2 * pair : 2 * pair + 2].tolist()
            turn = angle(16, 16, pair, (latent, 0, 0))
            want = [
                a * math.cos(turn) - b * math.sin(turn),
                a * math.sin(turn) + b * math.cos(turn),
            ]
            got = keys[0, 0, token, 2 * pair : 2 * pair + 2].tolist()
            assert got == pytest.approx(want, abs=1e-6)
    assert session.memory.segments[0][1].main.key.shape[2] == 1030
    assert session.step().latents.isfinite().all()


def test_context_and_nothing_before(network: Network) -> None:
    """Without memory a chunk looks the same wherever it lies."""
    camera, text, x = toy_camera(1, 2, SIZE), toy_text(5), toy_latents(1, 2, SIZE)
    here = contexts(network, text, camera, range(2))
    far = network.chunk_context(here.text, camera.chunk(0, 2), latents=range(9000, 9002), size=SIZE)
    time = at_timestep(network, 300, 2)
    past = nothing_yet(network, 1, SIZE)
    near, distant = (network.velocity(x, time, context, past) for context in (here, far))
    assert error(near, distant) <= 1e-6
