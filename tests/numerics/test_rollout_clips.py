"""What holds for whole clips: prefixes, bounded memory, the pinned first latent."""

import copy
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from toy import (
    CONFIG,
    SIZE,
    STEPS,
    all_tensors,
    at_timestep,
    error,
    nothing_yet,
    render,
    toy_clip,
    toy_latents,
    toy_noise,
    toy_plan,
    toy_session,
)

from sanawm_cli.conditioning.clip import TensorCamera
from sanawm_cli.model.dit import Network
from sanawm_cli.plan.chunks import Chunk
from sanawm_cli.preset.settings import Window
from sanawm_cli.rollout.loop import pinned_frames
from sanawm_cli.rollout.noise import FrameNoise


@pytest.mark.parametrize(("window", "sink"), [(2, True), (1, False), ("all", False)])
def test_a_longer_render_starts_with_the_shorter_one(
    network32: Network, window: Window, sink: bool
) -> None:
    clip = toy_clip(10, dtype=torch.float32)
    noise = FrameNoise(3, (8, *SIZE), torch.device("cpu"))
    renders = []
    for sizes in ((4, 2), (4, 2, 2, 2)):
        plan = toy_plan(*sizes, window=window, sink=sink)
        renders.append(render(toy_session(network32), clip, plan, noise)[0])
    for short, long in zip(*renders, strict=False):
        assert short.chunk == long.chunk
        assert torch.equal(short.latents, long.latents)


@pytest.mark.parametrize("sink", [True, False], ids=["sink", "no sink"])
@pytest.mark.parametrize("window", [1, 2, 3])
def test_memory_stops_growing(network32: Network, window: int, sink: bool) -> None:
    plan = toy_plan(*[2] * 8, window=window, sink=sink)
    session = toy_session(network32)
    session.start(toy_clip(plan.latents, dtype=torch.float32), plan, toy_noise(plan))
    held = []
    for chunk in plan.chunks:
        session.replay(toy_latents(1, 2, SIZE, seed=chunk.index).float())
        assert tuple(session.memory.segments) == plan.kept_after(chunk.index)
        held.append(session.memory.resident_bytes())
    # From the first full window until nothing is left to look back.
    assert len(set(held[window - 1 : -1])) == 1
    assert held[-1] < held[-2]
    grown = [b - a for a, b in pairwise(held[:window])]
    keys = 2 * 2 * (2 * 6) * CONFIG.width * 4  # key and value, two branches, tokens, float32
    assert grown == [keys] * (window - 1)


def test_a_chunk_sees_the_camera_of_its_own_latents(network32: Network) -> None:
    """Another camera from latent 3 on: chunk 0 is the same, chunk 1 is not."""
    plan, clip = toy_plan(3, 2), toy_clip(5, dtype=torch.float32)
    noise = toy_noise(plan, dtype=torch.float32)
    assert isinstance(clip.camera, TensorCamera)
    first = render(toy_session(network32), clip, plan, noise)[0]
    for part in ("raymap", "plucker"):
        numbers = getattr(clip.camera, part).clone()
        axis = 1 if part == "raymap" else 2
        numbers.narrow(axis, 3, 2).mul_(1.5)
        camera = replace(clip.camera, **{part: numbers})
        other = render(toy_session(network32), replace(clip, camera=camera), plan, noise)[0]
        assert torch.equal(other[0].latents, first[0].latents)
        assert error(other[1].latents, first[1].latents) > 1e-3


def test_an_unbounded_memory_grows(network32: Network) -> None:
    plan = toy_plan(*[2] * 5, window="all")
    session = toy_session(network32)
    session.start(toy_clip(plan.latents, dtype=torch.float32), plan, toy_noise(plan))
    for chunk in plan.chunks[:-1]:
        session.replay(toy_latents(1, 2, SIZE).float())
        assert tuple(session.memory.segments) == tuple(range(chunk.index + 1))


def test_a_render_and_its_clip_share_no_memory(network32: Network) -> None:
    """Latents a caller was given are his: what he does to them does not reach the next chunk."""
    plan = toy_plan(3, 2)
    clip, noise = toy_clip(5, dtype=torch.float32), toy_noise(plan, dtype=torch.float32)
    want = render(toy_session(network32), clip, plan, noise)[0][1]
    session = toy_session(network32)
    session.start(clip, plan, noise)
    with torch.inference_mode():
        session.step().latents.zero_()
    assert torch.equal(session.step().latents, want.latents)


@pytest.mark.parametrize("first_chunk", [1, 3])
def test_the_first_latent_never_moves(network32: Network, first_chunk: int) -> None:
    plan = toy_plan(first_chunk, 2)
    clip = toy_clip(plan.latents, dtype=torch.float32)
    chunks, steps = render(toy_session(network32), clip, plan, toy_noise(plan, dtype=torch.float32))
    of_first = [done for done in steps if done.chunk.index == 0]
    assert len(of_first) == len(STEPS) - 1
    for done in of_first:
        assert torch.equal(done.latents[:, :, :1], clip.first_latent)
        assert bool(done.output[:, :, :1].any())  # the network did speak about it
    assert torch.equal(chunks[0].latents[:, :, :1], clip.first_latent)


def test_the_first_latent_is_put_back_and_not_just_left_alone(network32: Network) -> None:
    """x + 0·v is not x where x is −0, or where the network's output is not finite."""
    plan, clip = toy_plan(3), toy_clip(3, dtype=torch.float32)
    first = clip.first_latent.clone()
    first[0, :4] = -0.0
    network = copy.deepcopy(network32)

    def spoil(_module: object, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        return output.index_fill(1, torch.tensor([0]), torch.inf)

    network.final_layer.register_forward_hook(spoil)
    noise = toy_noise(plan, dtype=torch.float32)
    for one in (network32, network):
        (chunk,), _ = render(toy_session(one), replace(clip, first_latent=first), plan, noise)
        got = chunk.latents[:, :, :1]
        assert torch.equal(got, first)
        assert torch.equal(got.signbit(), first.signbit())


def test_only_the_clips_first_latent_is_pinned() -> None:
    assert pinned_frames(Chunk(0, 0, 3, 0, 17, ())) == (True, False, False)
    assert pinned_frames(Chunk(1, 3, 5, 17, 33, (0,))) == (False, False)


def test_steps_are_told_in_order(network32: Network) -> None:
    plan = toy_plan(3, 2)
    clip = toy_clip(5, dtype=torch.float32)
    chunks, steps = render(toy_session(network32), clip, plan, toy_noise(plan, dtype=torch.float32))
    told = [(done.chunk.index, done.step, done.steps) for done in steps]
    assert told == [(0, 0, 2), (0, 1, 2), (1, 0, 2), (1, 1, 2)]
    for chunk, last in zip(chunks, steps[1::2], strict=True):
        assert torch.equal(chunk.latents, last.latents)


def test_the_network_is_told_zero_for_the_pinned_latent_and_then_the_steps(
    network: Network,
) -> None:
    """The first step, word for word: timesteps per frame, then Euler with both levels zero."""
    plan = toy_plan(3, 2)
    clip, noise = toy_clip(5), toy_noise(plan)
    _, steps = render(toy_session(network), clip, plan, noise)
    assert clip.camera is not None
    for done, timesteps in ((steps[0], [0, 1000, 1000]), (steps[1], [0, 727, 727])):
        x = torch.cat((clip.first_latent, noise.noise[:, :, 1:3]), 2)
        if done.step == 1:
            x = steps[0].latents
        context = network.chunk_context(
            network.text_context(clip.text.embeds, clip.text.mask),
            clip.camera.chunk(0, 3),
            latents=range(3),
            size=SIZE,
        )
        past = nothing_yet(network, 1, SIZE)
        v = network.velocity(x, network.time_vectors(torch.tensor([timesteps])), context, past)
        assert error(done.output, v) <= 1e-9
        fall = torch.tensor([t / 1000 for t in timesteps], dtype=torch.float32).double()
        after = torch.tensor([0, 0.727, 0.727] if done.step == 0 else [0, 0, 0]).double()
        assert error(done.latents, x + (after - fall)[:, None, None] * v) <= 1e-9


def test_the_clean_pass_is_at_timestep_zero(network: Network) -> None:
    plan, clip = toy_plan(3), toy_clip(3)
    (chunk,), _ = render(toy_session(network), clip, plan, toy_noise(plan))
    assert clip.camera is not None
    text = network.text_context(clip.text.embeds, clip.text.mask)
    camera = clip.camera.chunk(0, 3)
    context = network.chunk_context(text, camera, latents=range(3), size=SIZE)
    past = nothing_yet(network, 1, SIZE)
    for timestep, near in ((0, True), (1, False)):
        time = at_timestep(network, timestep, 3)
        want = all_tensors(network.absorb(chunk.latents, time, context, past))
        got = all_tensors(chunk.absorbed)
        assert got.keys() == want.keys()
        assert (max(error(got[name], want[name]) for name in want) <= 1e-9) == near
