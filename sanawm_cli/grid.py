"""Frames to latents and back: the one place that rounds.

A *frame* is a picture of the video, a *latent* is one frame of the VAE's latent video. The first
latent holds the first frame alone; each later latent holds `temporal_stride` frames.
"""

from dataclasses import dataclass

from sanawm_cli.errors import PlanError


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameGrid:
    """The VAE's strides: `temporal_stride` frames and `spatial_stride` pixels per latent."""

    temporal_stride: int = 8
    spatial_stride: int = 32

    def frames(self, latents: int) -> int:
        """Number of frames that `latents` latents from the start of a clip decode to."""
        return self.temporal_stride * (latents - 1) + 1 if latents > 0 else 0

    def frame_range(self, start: int, stop: int) -> tuple[int, int]:
        """Frames [a, b) shown by the latents [start, stop) of a clip."""
        return self.frames(start), self.frames(stop)

    def is_whole(self, frames: int) -> bool:
        """Whether `frames` is `temporal_stride`·k + 1."""
        return frames >= 1 and (frames - 1) % self.temporal_stride == 0

    def latents(self, frames: int) -> int:
        """Number of latents for a frame count on the grid.

        Raises PlanError, naming both neighbours, when the count is between two grid points.
        """
        if not self.is_whole(frames):
            below, above = self.neighbours(frames, self.temporal_stride)
            raise PlanError(
                f"{frames} frames do not fit the latent grid ({self.temporal_stride}k + 1)",
                hint=f"ask for {below} or {above} frames, or use --snap vae",
            )
        return (frames - 1) // self.temporal_stride + 1

    def neighbours(self, frames: int, period: int) -> tuple[int, int]:
        """The two `period`·k + 1 around `frames` (k ≥ 0)."""
        below = max(frames - 1, 0) // period * period + 1
        return below, below if below == frames else below + period

    def nearest(self, frames: int, period: int) -> int:
        """The `period`·k + 1 nearest to `frames`; ties go up."""
        below, above = self.neighbours(frames, period)
        return below if frames - below < above - frames else above

    def latent_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of latents for a picture size.

        Raises PlanError, naming the nearest sizes, when a side is not a multiple of the stride.
        """
        for name, value in (("height", height), ("width", width)):
            if value < self.spatial_stride or value % self.spatial_stride:
                below = max(value // self.spatial_stride, 1) * self.spatial_stride
                raise PlanError(
                    f"{name} {value} is not a positive multiple of {self.spatial_stride}",
                    hint=f"use --{name} {below} or --{name} {below + self.spatial_stride}",
                )
        return height // self.spatial_stride, width // self.spatial_stride
