"""Noise as a function of seed and place in the clip."""

import pytest
import torch

from sanawm_cli.rollout.noise import FrameNoise, TensorNoise, horizon_noise

SHAPE = (8, 2, 3)
CPU = torch.device("cpu")


def frame_noise(seed: int) -> FrameNoise:
    return FrameNoise(seed, SHAPE, CPU)


def test_a_latents_noise_does_not_depend_on_the_range_asked() -> None:
    noise = frame_noise(5)
    whole = noise.latents(0, 6)
    assert whole.shape == (1, 8, 6, 2, 3)
    assert whole.dtype == torch.float32
    assert torch.equal(whole[:, :, 3:6], noise.latents(3, 6))
    assert torch.equal(whole[:, :, :3], noise.latents(0, 3))
    assert torch.equal(whole, torch.cat([noise.latents(i, i + 1) for i in range(6)], 2))


def test_it_depends_on_nothing_else() -> None:
    """Not on the global generator, nor on what was drawn before."""
    torch.manual_seed(1)
    first = frame_noise(5).latents(0, 2)
    before = torch.get_rng_state()
    torch.manual_seed(2)
    assert torch.equal(frame_noise(5).latents(0, 2), first)
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("seed", "index", "derived", "numbers"),
    [
        (0, 0, 6213027144842677344, [0.0279298, 1.3619695, -1.1850269, 0.3303456]),
        (42, 0, 3042642129590909369, [-3.0653076, 0.6031300, -0.0933459, 0.4187831]),
        (42, 1100, 3973218961065907277, [1.6070532, -0.7387658, -0.0069098, 0.5056277]),
        (2**40, 7, 1499161043274291167, [0.8224066, 2.1903660, -0.4821060, -0.0663986]),
    ],
)
def test_numbers_as_they_have_always_been(
    seed: int, index: int, derived: int, numbers: list[float]
) -> None:
    """`derived`: printf seed:index | sha256sum, the first 16 digits, halved.

    A change here makes another video of every seed.
    """
    drawn = frame_noise(seed).latents(index, index + 1)
    assert drawn.flatten()[:4].tolist() == pytest.approx(numbers, abs=1e-6)
    torch_itself = torch.randn(SHAPE, generator=torch.Generator().manual_seed(derived))
    assert torch.equal(drawn[0, :, 0], torch_itself)


def test_seeds_and_latents_differ() -> None:
    drawn = [frame_noise(seed).latents(i, i + 1) for seed in (0, 1, 2**31) for i in range(3)]
    for i, one in enumerate(drawn):
        for other in drawn[:i]:
            assert not torch.isclose(one, other, atol=1e-3).all()
            assert not (one == other).any()


def test_noise_is_standard_normal() -> None:
    noise = FrameNoise(1, (16, 20, 20), CPU).latents(0, 10)
    assert abs(float(noise.mean())) < 0.02
    assert abs(float(noise.std()) - 1) < 0.02


def test_horizon_noise_is_one_draw() -> None:
    """The well-known first normal numbers of seed 42, and all latents from one generator."""
    noise = horizon_noise(42, (8, 5, 2, 3), CPU, torch.float32)
    assert noise.noise.flatten()[:4].tolist() == pytest.approx(
        [1.9269153, 1.4872841, 0.9007172, -2.1055210], abs=1e-6
    )
    want = torch.randn((1, 8, 5, 2, 3), generator=torch.Generator().manual_seed(42))
    assert torch.equal(noise.latents(0, 5), want)
    assert torch.equal(noise.latents(2, 4), want[:, :, 2:4])
    other = horizon_noise(43, (8, 5, 2, 3), CPU, torch.float32)
    assert not (other.noise == noise.noise).any()


def test_horizon_noise_depends_on_the_length() -> None:
    """Which is why it is not the default."""
    short = horizon_noise(42, (8, 3, 2, 3), CPU, torch.float32)
    long = horizon_noise(42, (8, 5, 2, 3), CPU, torch.float32)
    assert not torch.equal(short.latents(0, 3), long.latents(0, 3))


def test_horizon_noise_is_drawn_in_the_compute_precision() -> None:
    noise = horizon_noise(42, (8, 5, 2, 3), CPU, torch.bfloat16).latents(0, 5)
    assert noise.dtype == torch.float32
    assert torch.equal(noise.bfloat16().float(), noise)


def test_tensor_noise_is_its_tensor() -> None:
    drawn = torch.randn(2, 8, 5, 2, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(TensorNoise(drawn).latents(1, 4), drawn[:, :, 1:4])
