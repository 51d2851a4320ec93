"""Noise levels of a chunk, and the Euler step between them."""

import pytest
import torch
from toy import error, toy_latents

from sanawm_cli.rollout.schedule import euler, levels, schedule


def test_the_distilled_steps() -> None:
    made = schedule((1000, 960, 889, 727, 0))
    assert made.timesteps == (1000, 960, 889, 727)
    assert made.sigmas == (1.0, 0.96, 0.889, 0.727, 0.0)


def test_the_network_is_told_whole_steps_and_the_update_the_exact_ones() -> None:
    made = schedule((1000, 937.5, 833.9999, 0))
    assert made.timesteps == (1000, 937, 833)
    assert all(type(step) is int for step in made.timesteps)
    assert made.sigmas == (1.0, 0.9375, 833.9999 / 1000, 0.0)


@pytest.mark.parametrize("step", [251, 253, 502, 506, 511])
def test_no_step_loses_one_on_the_way(step: int) -> None:
    """In float32, k/1000·1000 truncates these to one less."""
    assert schedule((step, 0)).timesteps == (step,)


def test_euler_moves_by_the_levels_difference() -> None:
    x, v = toy_latents(2, 3, (2, 3)), toy_latents(2, 3, (2, 3), seed=8)
    now, then = torch.tensor([0.0, 1.0, 0.5]).double(), torch.tensor([0.0, 0.25, 0.0]).double()
    moved = euler(x, v, now, then)
    for frame, by in enumerate((0.0, -0.75, -0.5)):
        assert error(moved[:, :, frame], x[:, :, frame] + by * v[:, :, frame]) <= 1e-15


def test_euler_in_one_step_or_two_with_the_same_velocity() -> None:
    x, v = toy_latents(1, 2, (2, 3)), toy_latents(1, 2, (2, 3), seed=8)
    high, mid, low = (torch.full((2,), level).double() for level in (1.0, 0.4, 0.0))
    assert error(euler(euler(x, v, high, mid), v, mid, low), euler(x, v, high, low)) <= 1e-12


def test_levels_are_zero_where_a_latent_is_pinned() -> None:
    x = toy_latents(1, 3, (2, 3)).float()
    assert torch.equal(levels(0.727, (True, False, False), x), torch.tensor([0, 0.727, 0.727]))


def test_levels_are_float32_numbers_in_any_precision() -> None:
    x = toy_latents(1, 1, (2, 3))
    level = levels(0.889, (False,), x)
    assert level.dtype == torch.float64
    assert torch.equal(level, torch.tensor([0.889], dtype=torch.float32).double())
    assert not torch.equal(level, torch.tensor([0.889], dtype=torch.float64))
