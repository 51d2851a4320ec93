"""A session can be left, put back and rebuilt between any two chunks, bit for bit."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from toy import (
    CONFIG,
    STEPS,
    assert_same,
    render,
    toy_clip,
    toy_network,
    toy_noise,
    toy_plan,
    toy_session,
    toy_text,
)

from sanawm_cli.cache.window import WindowMemory
from sanawm_cli.conditioning.clip import Clip
from sanawm_cli.errors import ExitCode, SessionError
from sanawm_cli.model.dit import Network
from sanawm_cli.plan.chunks import Plan
from sanawm_cli.preset.settings import Window
from sanawm_cli.rollout.noise import FrameNoise
from sanawm_cli.rollout.session import RolloutSession, SessionState

SIZES = (3, 2, 1, 2)
NOISE = FrameNoise(7, (8, 2, 3), torch.device("cpu"))
WINDOWS: list[tuple[Window, bool]] = [(1, False), (2, True), (2, False), ("all", False)]


@pytest.fixture(scope="module")
def clip() -> Clip:
    return toy_clip(sum(SIZES), dtype=torch.float32, negative=toy_text(3, seed=30))


def tensors(memory: WindowMemory) -> dict[str, torch.Tensor]:
    return dict(memory.named_tensors())


@pytest.mark.parametrize("cfg_scale", [1.0, 3.5], ids=["plain", "guided"])
@pytest.mark.parametrize(("window", "sink"), WINDOWS)
def test_replay_rebuilds_the_memory_and_goes_on(
    network32: Network, clip: Clip, window: Window, sink: bool, cfg_scale: float
) -> None:
    """Resuming from latents alone relies on this."""
    plan = toy_plan(*SIZES, window=window, sink=sink)
    session = toy_session(network32, cfg_scale=cfg_scale)
    session.start(clip, plan, NOISE)
    latents, memories = [], []
    for _ in plan.chunks:
        latents.append(session.step().latents)
        memories.append(session.memory)
    other = toy_session(network32, cfg_scale=cfg_scale)
    other.start(clip, plan, NOISE)
    for done in range(3):
        other.replay(latents[done])
        assert other.next_chunk == done + 1
        assert_same(tensors(other.memory), tensors(memories[done]))
    assert torch.equal(other.step().latents, latents[3])
    assert_same(tensors(other.memory), tensors(memories[3]))


@pytest.mark.parametrize("done", range(5))
def test_a_state_continues_in_another_session(network32: Network, clip: Clip, done: int) -> None:
    plan = toy_plan(*SIZES)
    whole, _ = render(toy_session(network32), clip, plan, NOISE)
    session = toy_session(network32)
    session.start(clip, plan, NOISE)
    for _ in range(done):
        session.step()
    state = session.state()
    session.close()
    copied = {name: tensor.clone() for name, tensor in state.tensors.items()}
    other = toy_session(network32)
    other.restore(clip, plan, NOISE, replace(state, tensors=copied))
    assert other.next_chunk == done
    rest = [other.step() for _ in plan.chunks[done:]]
    assert [chunk.chunk for chunk in rest] == list(plan.chunks[done:])
    for got, want in zip(rest, whole[done:], strict=True):
        assert torch.equal(got.latents, want.latents)


def test_a_state_stays_as_it_was_taken(network32: Network, clip: Clip) -> None:
    session = toy_session(network32)
    session.start(clip, toy_plan(*SIZES), NOISE)
    session.step()
    state = session.state()
    before = {name: tensor.clone() for name, tensor in state.tensors.items()}
    session.step()
    session.step()
    assert_same(dict(state.tensors), before)
    assert state.next_chunk == 1


def test_rendering_again_begins_anew(network32: Network, clip: Clip) -> None:
    """A clip in progress leaves nothing behind for the next one."""
    plan = toy_plan(*SIZES)
    session = toy_session(network32)
    first, _ = render(session, clip, plan, NOISE)
    session.start(clip, plan, NOISE)
    session.step()
    again, _ = render(session, clip, plan, NOISE)
    for got, want in zip(again, first, strict=True):
        assert torch.equal(got.latents, want.latents)


# --- what is refused ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def taken(network32: Network, clip: Clip) -> SessionState:
    """After chunk 0."""
    session = toy_session(network32, steps=(700, 0))
    session.start(clip, toy_plan(*SIZES), NOISE)
    session.step()
    return session.state()


Change = tuple[str, Callable[[Network], RolloutSession], Callable[[Clip], Clip], Plan]


def changes() -> dict[str, Change]:
    """What differs → the fact that must be named, session, clip, plan."""

    def session(network: Network) -> RolloutSession:
        return toy_session(network, steps=(700, 0))

    def same(clip: Clip) -> Clip:
        return clip

    def nudged(clip: Clip) -> Clip:
        first = clip.first_latent.clone()
        first[0, 0, 0, 0, 0] += 1e-6
        return replace(clip, first_latent=first)

    def half_masked(clip: Clip) -> Clip:
        mask = clip.text.mask.clone()
        mask[0, 0] = False
        return replace(clip, text=replace(clip.text, mask=mask))

    other_network = toy_network(replace(CONFIG, blocks=3), dtype=torch.float32)
    head_scale = toy_network(replace(CONFIG, attention_scale="head"), dtype=torch.float32)
    plan = toy_plan(*SIZES)
    return {
        "weights": (
            "weights",
            lambda n: toy_session(n, steps=(700, 0), weights="others"),
            same,
            plan,
        ),
        "steps": ("steps", lambda n: toy_session(n, steps=(701, 0)), same, plan),
        "step count": ("steps", lambda n: toy_session(n, steps=STEPS), same, plan),
        "guidance": (
            "cfg scale",
            lambda n: toy_session(n, steps=(700, 0), cfg_scale=2.0),
            same,
            plan,
        ),
        "blocks": ("network", lambda _: session(other_network), same, plan),
        "attention scale": ("network", lambda _: session(head_scale), same, plan),
        "precision": (
            "dtype",
            lambda _: session(toy_network(dtype=torch.float64)),
            same,
            plan,
        ),
        "first frame": ("conditioning", session, nudged, plan),
        "prompt": (
            "conditioning",
            session,
            lambda clip: replace(clip, text=toy_text(5, seed=99)),
            plan,
        ),
        "mask": ("conditioning", session, half_masked, plan),
        "negative prompt": (
            "conditioning",
            session,
            lambda clip: replace(clip, negative=toy_text(2, seed=99)),
            plan,
        ),
        "no camera": ("camera branch", session, lambda clip: replace(clip, camera=None), plan),
        "sizes": ("chunk plan", session, same, toy_plan(3, 2, 2, 1)),
        "window": ("chunk plan", session, same, toy_plan(*SIZES, window=1)),
        "sink": ("chunk plan", session, same, toy_plan(*SIZES, sink=False)),
    }


CHANGES = changes()


@pytest.mark.parametrize("what", CHANGES)
def test_a_state_is_refused_where_something_differs(
    network32: Network, clip: Clip, taken: SessionState, what: str
) -> None:
    fact, session_of, clip_of, plan = CHANGES[what]
    session = session_of(network32)
    with pytest.raises(SessionError, match=f"was started with {fact} .*, now it is ") as caught:
        session.restore(clip_of(clip), plan, NOISE, taken)
    assert caught.value.exit_code == ExitCode.SESSION
    with pytest.raises(SessionError, match="no clip in progress"):
        session.step()


def test_a_state_of_another_version_is_refused(
    network32: Network, clip: Clip, taken: SessionState
) -> None:
    old = replace(taken, facts={**taken.facts, "state version": "0"})
    session = toy_session(network32, steps=(700, 0))
    with pytest.raises(SessionError, match="state version 0, now it is 1"):
        session.restore(clip, toy_plan(*SIZES), NOISE, old)


def test_a_fact_that_one_side_lacks_is_refused(
    network32: Network, clip: Clip, taken: SessionState
) -> None:
    session = toy_session(network32, steps=(700, 0))
    more = replace(taken, facts={**taken.facts, "moon": "full"})
    less = replace(taken, facts={k: v for k, v in taken.facts.items() if k != "weights"})
    with pytest.raises(SessionError, match="with moon full, now it is nothing"):
        session.restore(clip, toy_plan(*SIZES), NOISE, more)
    with pytest.raises(SessionError, match="with weights nothing, now it is toy"):
        session.restore(clip, toy_plan(*SIZES), NOISE, less)


def test_every_tensor_of_a_state_is_needed(
    network32: Network, clip: Clip, taken: SessionState
) -> None:
    session = toy_session(network32, steps=(700, 0))
    for name in taken.tensors:
        rest = {other: t for other, t in taken.tensors.items() if other != name}
        with pytest.raises(SessionError, match=f"has no tensor {re.escape(name)}$"):
            session.restore(clip, toy_plan(*SIZES), NOISE, replace(taken, tensors=rest))


# --- out of order -------------------------------------------------------------------------------


def verbs(latents: torch.Tensor) -> dict[str, Callable[[RolloutSession], object]]:
    return {
        "step": lambda session: session.step(),
        "replay": lambda session: session.replay(latents),
        "state": lambda session: session.state(),
        "memory": lambda session: session.memory,
        "next_chunk": lambda session: session.next_chunk,
    }


@pytest.mark.parametrize("verb", verbs(torch.empty(0)))
def test_nothing_works_before_start_or_after_close(
    network32: Network, clip: Clip, verb: str
) -> None:
    call = verbs(torch.zeros(1, 8, 3, 2, 3))[verb]
    session = toy_session(network32)
    with pytest.raises(SessionError, match=r"call start\(\) first"):
        call(session)
    session.start(clip, toy_plan(*SIZES), NOISE)
    call(session)
    session.close()
    with pytest.raises(SessionError, match=r"call start\(\) first"):
        call(session)


def test_there_is_nothing_after_the_last_chunk(network32: Network, clip: Clip) -> None:
    session = toy_session(network32, steps=(700, 0))
    plan = toy_plan(3, 2)
    latents = render(session, clip, plan, NOISE)[0][1].latents
    assert session.next_chunk == 2
    for call in (session.step, lambda: session.replay(latents)):
        with pytest.raises(SessionError, match="all 2 chunks of the plan are rendered"):
            call()


def test_replay_takes_whole_chunks(network32: Network, clip: Clip) -> None:
    session = toy_session(network32)
    session.start(clip, toy_plan(*SIZES), NOISE)
    with pytest.raises(SessionError, match=r"chunk 0 has latents .*3\), .* were given"):
        session.replay(torch.zeros(1, 8, 2, 2, 3))
    assert session.next_chunk == 0


def test_a_clip_for_another_network_is_refused(network32: Network, clip: Clip) -> None:
    session = toy_session(network32)
    wide = replace(clip, first_latent=torch.zeros(1, 9, 1, 2, 3))
    session.start(clip, toy_plan(3), NOISE)
    with pytest.raises(SessionError, match="the first latent's channels: 9, the network has 8"):
        session.start(wide, toy_plan(3), NOISE)
    with pytest.raises(SessionError, match="no clip in progress"):
        session.step()  # the clip before was dropped all the same
    embeds = torch.zeros(1, 6, 21)
    foreign = replace(clip, text=replace(clip.text, embeds=embeds))
    with pytest.raises(SessionError, match="the prompt's channels: 21, the network has 20"):
        session.start(foreign, toy_plan(3), NOISE)


def test_noise_is_only_asked_for_what_is_rendered(network32: Network, clip: Clip) -> None:
    """A replay draws none, and a chunk draws its own: a resumed clip has no catching up to do."""
    asked: list[tuple[int, int]] = []

    class Watched:
        label = "watched"

        def latents(self, start: int, stop: int) -> torch.Tensor:
            asked.append((start, stop))
            return toy_noise(toy_plan(*SIZES), dtype=torch.float32).latents(start, stop)

    session = toy_session(network32)
    session.start(clip, toy_plan(*SIZES), Watched())
    session.replay(torch.zeros(1, 8, 3, 2, 3))
    session.step()
    assert asked == [(3, 5)]
