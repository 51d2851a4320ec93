"""States and latents that do not belong to a session are refused, and named.

All of these once passed `restore` or `replay` and failed later, or rendered wrong numbers.
"""

from dataclasses import replace

import pytest
import torch
from toy import toy_clip, toy_latents, toy_noise, toy_plan, toy_session

from sanawm_cli.errors import NumericsError, SessionError
from sanawm_cli.rollout.noise import FrameNoise
from sanawm_cli.rollout.session import SessionState

PLAN = toy_plan(2, 2, 2, 2)


@pytest.fixture
def state(network) -> SessionState:
    session = toy_session(network)
    session.start(toy_clip(8), PLAN, toy_noise(PLAN))
    session.step()
    session.step()
    return session.state()


def restore(network, state: SessionState) -> None:
    toy_session(network).restore(toy_clip(8), PLAN, toy_noise(PLAN), state)


def test_the_state_itself_is_taken(network, state) -> None:
    restore(network, state)


def test_a_state_without_a_chunk_is_refused(network, state) -> None:
    kept = {n: t for n, t in state.tensors.items() if not n.startswith("chunk.0.")}
    with pytest.raises(SessionError, match=r"holds chunks \(1,\), chunk 2 needs \(0, 1\)"):
        restore(network, replace(state, tensors=kept))


def test_a_state_without_a_tensor_is_refused(network, state) -> None:
    kept = {n: t for n, t in state.tensors.items() if n != "latest.0.norm"}
    with pytest.raises(SessionError, match=r"no tensor latest\.0\.norm"):
        restore(network, replace(state, tensors=kept))


@pytest.mark.parametrize("next_chunk", [-1, 1, 3, 5])
def test_a_state_of_another_chunk_is_refused(network, state, next_chunk: int) -> None:
    with pytest.raises(SessionError, match="chunk"):
        restore(network, replace(state, next_chunk=next_chunk))


@pytest.mark.parametrize("name", ["latest.0.state", "latest.3.ffn_tail", "chunk.0.3.main.key"])
def test_tensors_of_another_shape_or_precision_are_refused(network, state, name: str) -> None:
    for changed in (state.tensors[name][..., :1], state.tensors[name].float()):
        tensors = {**state.tensors, name: changed}
        with pytest.raises(SessionError, match=f"has {name} as"):
            restore(network, replace(state, tensors=tensors))


def test_a_refused_state_leaves_no_session(network, state) -> None:
    session = toy_session(network)
    with pytest.raises(SessionError):
        session.restore(toy_clip(8), PLAN, toy_noise(PLAN), replace(state, tensors={}))
    with pytest.raises(SessionError, match="no clip in progress"):
        session.step()


def test_other_noise_is_refused(network, state) -> None:
    noise = FrameNoise(1, (8, 2, 3), torch.device("cpu"))
    with pytest.raises(SessionError, match="noise given noise, now it is frame noise of seed 1"):
        toy_session(network).restore(toy_clip(8), PLAN, noise, state)


@pytest.mark.parametrize("shape", [(1, 2, (3, 2)), (1, 3, (2, 3)), (2, 2, (2, 3))])
def test_replaying_latents_of_another_shape_is_refused(network, shape) -> None:
    session = toy_session(network)
    session.start(toy_clip(8), PLAN, toy_noise(PLAN))
    with pytest.raises(SessionError, match=r"chunk 0 has latents \(1, 8, 2, 2, 3\)"):
        session.replay(toy_latents(*shape))


def test_replaying_latents_that_are_not_finite_is_refused(network) -> None:
    session = toy_session(network)
    session.start(toy_clip(8), PLAN, toy_noise(PLAN))
    latents = toy_latents(1, 2, (2, 3))
    latents[0, 0, 1, 0, 0] = torch.nan
    with pytest.raises(NumericsError, match="chunk 0 are not finite"):
        session.replay(latents)
