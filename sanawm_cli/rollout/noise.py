"""The Gaussian noise a render starts from, as a function of seed and place in the clip."""

import hashlib
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Noise(Protocol):
    """Where a rollout gets its noise."""

    @property
    def label(self) -> str:
        """What it is, in words: a session goes on only with the same."""
        ...

    def latents(self, start: int, stop: int) -> Tensor:
        """Noise of latents [start, stop), b c t h w."""
        ...


@dataclass(frozen=True, slots=True)
class FrameNoise:
    """Each latent from a generator of its own: independent of device, length and interruptions.

    shape: (c, h, w). Latent f is drawn on the CPU in float32 with the first 63 bits of
    sha256("seed:f") as seed.
    """

    seed: int
    shape: tuple[int, int, int]
    device: torch.device

    @property
    def label(self) -> str:
        """Mode and seed."""
        return f"frame noise of seed {self.seed}"

    def latents(self, start: int, stop: int) -> Tensor:
        """Noise of latents [start, stop), 1 c t h w float32."""
        drawn = [self._latent(index) for index in range(start, stop)]
        return torch.stack(drawn, 1)[None].to(self.device)

    def _latent(self, index: int) -> Tensor:
        digest = hashlib.sha256(f"{self.seed}:{index}".encode()).digest()
        seed = int.from_bytes(digest[:8], "big") >> 1
        return torch.randn(self.shape, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True, slots=True)
class TensorNoise:
    """Noise drawn beforehand, b c t h w: reference runs, and the "horizon" mode."""

    noise: Tensor
    label: str = "given noise"

    def latents(self, start: int, stop: int) -> Tensor:
        """Noise of latents [start, stop), b c t h w."""
        return self.noise[:, :, start:stop]


def horizon_noise(
    seed: int, shape: tuple[int, int, int, int], device: torch.device, dtype: torch.dtype
) -> TensorNoise:
    """All latents of a clip (c, t, h, w) at once, on the compute device in its precision.

    What upstream does; the same seed gives another video on another device, length or precision.
    """
    generator = torch.Generator(device).manual_seed(seed)
    drawn = torch.randn((1, *shape), generator=generator, device=device, dtype=dtype)
    return TensorNoise(drawn.float(), f"horizon noise of seed {seed}")
