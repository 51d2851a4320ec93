"""Which noise levels a chunk passes, and the step from one to the next."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

TIMESTEPS = 1000


@dataclass(frozen=True, slots=True)
class Schedule:
    """The noise levels of a chunk, high to low.

    timesteps: integers that the network is told, one per step.
    sigmas:    exact noise levels, one more than there are steps; the last is 0.
    """

    timesteps: tuple[int, ...]
    sigmas: tuple[float, ...]


def schedule(steps: Sequence[float]) -> Schedule:
    """Schedule of a step list such as (1000, 960, 889, 727, 0), which is validated elsewhere.

    A step with a fraction is truncated for the network and exact in the update, as upstream
    has it; presets and options refuse fractions.
    """
    return Schedule(
        tuple(int(step) for step in steps[:-1]), tuple(step / TIMESTEPS for step in steps)
    )


def euler(x: Tensor, velocity: Tensor, now: Tensor, then: Tensor) -> Tensor:
    """x + (σ' − σ)·v per frame; x and velocity b c t h w, now and then (t,) noise levels."""
    return x + (then - now)[:, None, None] * velocity


def levels(sigma: float, pinned: Sequence[bool], like: Tensor) -> Tensor:
    """Noise level of each frame of a chunk, (t,): 0 where the frame is pinned.

    Rounded to float32, the precision of the update, whatever `like` is.
    """
    values = [0.0 if fixed else sigma for fixed in pinned]
    return torch.tensor(values, dtype=torch.float32, device=like.device).to(like.dtype)
