"""Numbers that are not finite end a render at once, with chunk and step."""

import copy
import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from toy import toy_clip, toy_noise, toy_plan, toy_session

from sanawm_cli.errors import ExitCode, NumericsError
from sanawm_cli.model.dit import Network
from sanawm_cli.rollout.noise import TensorNoise

PLAN = toy_plan(3, 2)
CLIP = toy_clip(5, dtype=torch.float32)
NOISE = toy_noise(PLAN, dtype=torch.float32)


def message(chunk: int, step: int, timestep: int) -> str:
    return re.escape(
        f"latents of chunk {chunk} are not finite after step {step} of 2 (timestep {timestep})"
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "name", ["final_layer.linear.bias", "blocks.0.attn.qkv.weight", "blocks.2.mlp.t_conv.weight"]
)
def test_weights(network32: Network, name: str, bad: float) -> None:
    network = copy.deepcopy(network32)
    network.get_parameter(name).view(-1)[0] = bad
    session = toy_session(network)
    session.start(CLIP, PLAN, NOISE)
    with pytest.raises(NumericsError, match=message(0, 1, 1000)) as caught:
        session.step()
    assert caught.value.exit_code == ExitCode.DEVICE
    assert caught.value.hint is not None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_noise_of_a_later_chunk(network32: Network, bad: float) -> None:
    noise = NOISE.noise.clone()
    noise[0, 3, 4, 1, 2] = bad
    session = toy_session(network32)
    session.start(CLIP, PLAN, TensorNoise(noise))
    session.step()
    with pytest.raises(NumericsError, match=message(1, 1, 1000)):
        session.step()
    assert session.next_chunk == 1  # where it was: the chunk was not absorbed


def test_a_later_step(network32: Network) -> None:
    """One bad number, in the second step of the second chunk."""
    network, calls = copy.deepcopy(network32), [0]

    def spoil(_module: object, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return output.index_fill(-1, torch.tensor([2]), math.nan) if calls[0] == 4 else output

    network.final_layer.register_forward_hook(spoil)
    session = toy_session(network)
    session.start(CLIP, PLAN, NOISE)
    session.step()
    told: list[int] = []
    with pytest.raises(NumericsError, match=message(1, 2, 727)):
        session.step(lambda done: told.append(done.step))
    assert told == [0]


def test_the_first_frame(network32: Network) -> None:
    first = CLIP.first_latent.clone()
    first[0, 0, 0, 0, 0] = math.nan
    session = toy_session(network32)
    session.start(replace(CLIP, first_latent=first), PLAN, NOISE)
    with pytest.raises(NumericsError, match=message(0, 1, 1000)):
        session.step()


@pytest.mark.parametrize("change", [lambda x: x, lambda x: x * 1e3], ids=["plain", "large"])
def test_finite_numbers_pass(
    network32: Network, change: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    session = toy_session(network32)
    session.start(CLIP, PLAN, TensorNoise(change(NOISE.noise)))
    assert session.step().latents.isfinite().all()
    assert session.step().latents.isfinite().all()
