"""VAE cases: encoding an image and a clip, decoding chunk by chunk, and the decoder's memory."""

from itertools import pairwise
from typing import Any

import torch

from sanawm_cli.configs import VaeConfig
from sanawm_cli.errors import InputError
from sanawm_cli.vae.autoencoder import CausalVae
from sanawm_cli.verify.cases import Case, load_tensors, placed
from sanawm_cli.verify.networks import refuse_absurd
from sanawm_cli.verify.report import CaseReport, Comparison


def verify_vae(case: Case, device: torch.device, dtype: torch.dtype) -> CaseReport:
    """Compare both directions with the case's numbers."""
    vae = case_vae(case, device, dtype)
    wide = torch.promote_types(dtype, torch.float32)
    want = {name: placed(tensor, device, wide) for name, tensor in case.tensors.items()}
    comparison = Comparison(case.name, case.kind)
    with torch.inference_mode():
        mode = vae.encode(want["in.image"]).to(wide)
        comparison.add("encoded image", "out.posterior_mode", mode, want["out.posterior_mode"])
        normalised = vae.normalise(mode)
        name = "out.latent_normalized"
        comparison.add("encoded image, normalised", name, normalised, want[name])
        if "in.video17" in want:
            video = vae.encode(want["in.video17"]).to(wide)
            comparison.add("encoded clip", "out.video17_mode", video, want["out.video17_mode"])
        latents = want["in.latents_normalized"]
        name = "mid.latents_denormalized"
        if name in want:
            plain = vae.denormalise(latents)
            comparison.add("denormalised latents", name, plain, want[name])
        _compare_decoding(comparison, case, vae, latents)
    return comparison.report()


def _compare_decoding(
    comparison: Comparison, case: Case, vae: CausalVae, latents: torch.Tensor
) -> None:
    memory = vae.empty_memory()
    for index, (start, stop) in enumerate(pairwise(case.facts["grid"])):
        frames, memory = vae.decode(latents[:, :, start:stop], memory)
        path = case.beside(f"pixels{index}")
        if path.exists():
            want = load_tensors(path)["out.pixels"]
            comparison.add("decoded frames", f"chunk {index}", frames, want)
        path = case.beside(f"cache_after_chunk{index}")
        if path.exists():
            for name, tail in load_tensors(path).items():
                if name in memory.tails:
                    comparison.add("decoder memory", name, memory.tails[name], tail)
                elif not name.endswith(".trim_applied"):
                    raise InputError(f"case {case.name}: the decoder has no tail {name}")


def case_vae(case: Case, device: torch.device, dtype: torch.dtype) -> CausalVae:
    """The VAE of a case's sizes and weights."""
    with torch.device("meta"):
        vae = CausalVae(case_vae_config(case.facts["arch"]))
    tensors = load_tensors(case.beside("weights"))
    placed_weights = {
        name: tensor.to(device, torch.float32 if name.startswith("latents_") else dtype)
        for name, tensor in tensors.items()
    }
    try:
        vae.load_state_dict(placed_weights, strict=True, assign=True)
    except RuntimeError as error:
        first = str(error).splitlines()[1:2]
        raise InputError(f"case {case.name}: weights do not fit: {' '.join(first)}") from error
    return vae.requires_grad_(False)


def case_vae_config(arch: dict[str, Any]) -> VaeConfig:
    """The sizes in a case's `arch` (diffusers' names)."""
    try:
        refuse_absurd(arch)
        return VaeConfig(
            latent_channels=int(arch["latent_channels"]),
            encoder_channels=tuple(arch["block_out_channels"]),
            encoder_layers=tuple(arch["layers_per_block"]),
            decoder_channels=tuple(arch["decoder_block_out_channels"]),
            decoder_layers=tuple(arch["decoder_layers_per_block"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the case's sizes cannot be read: {error!r}") from error
