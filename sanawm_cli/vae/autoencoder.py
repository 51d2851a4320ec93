"""The VAE as the rest of the program sees it; its parameters have the published names."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sanawm_cli.configs import VaeConfig
from sanawm_cli.errors import ChunkPlanError, PlanError, SessionError
from sanawm_cli.grid import FrameGrid
from sanawm_cli.vae.decoder import Decoder
from sanawm_cli.vae.encoder import Encoder
from sanawm_cli.vae.memory import DecoderMemory


class CausalVae(nn.Module):
    """Causal video VAE of the LTX-2 family.

    Casting the module casts the two networks; the statistics never fall below float32.
    """

    latents_mean: Tensor  # c
    latents_std: Tensor  # c

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.register_buffer("latents_mean", torch.zeros(config.latent_channels))
        self.register_buffer("latents_std", torch.ones(config.latent_channels))

    def encode(self, pixels: Tensor) -> Tensor:
        """The posterior's mode, nothing is drawn: b 3 t h w in [-1, 1] → b c t' h' w'.

        t' is 1 + (t - 1)/8 and h', w' are h/32, w/32, or whatever the config's strides are.
        Raises PlanError when the clip is off that grid.
        """
        grid = FrameGrid(
            temporal_stride=self.config.temporal_stride, spatial_stride=self.config.spatial_stride
        )
        grid.latents(pixels.shape[2])
        grid.latent_size(pixels.shape[3], pixels.shape[4])
        posterior = self.encoder(pixels.to(_dtype_of(self.encoder)))
        mode: Tensor = posterior[:, : self.config.latent_channels]
        return mode

    def normalise(self, latents: Tensor) -> Tensor:
        """(z - mean)·scaling / std, as the diffusion network sees z. float32, or float64 as z."""
        mean, std = self._statistics(latents)
        return (latents - mean) * (self.config.scaling_factor / std)

    def denormalise(self, latents: Tensor) -> Tensor:
        """Undoes `normalise`, in the same precision."""
        mean, std = self._statistics(latents)
        return latents * (std / self.config.scaling_factor) + mean

    def empty_memory(self) -> DecoderMemory:
        """The decoder's memory before the first chunk."""
        return DecoderMemory()

    def decode(self, latents: Tensor, memory: DecoderMemory) -> tuple[Tensor, DecoderMemory]:
        """One chunk of normalised latents, b c n h w → frames b 3 f h' w' (about [-1, 1]), memory.

        f is 8(n - 1) + 1 for the clip's first chunk and 8n for later ones (the config's stride).
        Raises ChunkPlanError for an empty chunk, PlanError for a picture of less than 2×2 latents,
        SessionError for a memory of another picture size.
        """
        _check_chunk(latents, memory, smallest=2 * self.config.spatial_stride)
        z = self.denormalise(latents).to(_dtype_of(self.decoder))
        frames, after = self.decoder(z, memory)
        return frames, after

    def _statistics(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        dtype = torch.promote_types(latents.dtype, torch.float32)
        mean, std = self.latents_mean.to(dtype), self.latents_std.to(dtype)
        return mean.view(1, -1, 1, 1, 1), std.view(1, -1, 1, 1, 1)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "CausalVae":
        # `.to`, `.half` and the like all pass here; a statistic rounded to bfloat16 shifts colours.
        mean, std = self.latents_mean, self.latents_std
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.latents_mean.dtype in (torch.bfloat16, torch.float16):
            device = self.latents_mean.device
            self.latents_mean, self.latents_std = mean.to(device), std.to(device)
        return self


def _dtype_of(network: nn.Module) -> torch.dtype:
    return next(network.parameters()).dtype


def _check_chunk(latents: Tensor, memory: DecoderMemory, smallest: int) -> None:
    batch, _, count, height, width = latents.shape
    if count < 1:
        raise ChunkPlanError(
            "a chunk of 0 latents cannot be decoded", hint="use chunks of 1 or more"
        )
    if min(height, width) < 2:
        raise PlanError(
            f"{height}×{width} latents are too few to decode: the picture is mirrored at its edges",
            hint=f"ask for at least {smallest}×{smallest} pixels",
        )
    if memory.started:
        past = memory.tails["conv_in"]
        if (past.shape[0], *past.shape[3:]) != (batch, height, width):
            raise SessionError(
                f"a chunk of {batch} × {height}×{width} latents does not continue a clip of"
                f" {past.shape[0]} × {past.shape[3]}×{past.shape[4]}"
            )
