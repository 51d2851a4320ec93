"""The tensors a clip is conditioned on, made from a resolved request."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sanawm_cli.camera.intrinsics import CoverCrop, to_latent_units
from sanawm_cli.conditioning.camera import PathCamera
from sanawm_cli.conditioning.clip import Clip, TextEmbeds
from sanawm_cli.conditioning.text import ByteTextEncoder, SavedPrompts, load_text_embeds
from sanawm_cli.errors import UsageError
from sanawm_cli.jobs.events import OnEvent, Remark, StageBegan
from sanawm_cli.jobs.machine import Machine
from sanawm_cli.jobs.models import load_text_encoder
from sanawm_cli.jobs.resolve import ResolvedClip, ResolvedPlan
from sanawm_cli.vae.autoencoder import CausalVae


def encode_prompts(
    clip: ResolvedClip, machine: Machine, on_event: OnEvent
) -> tuple[TextEmbeds, TextEmbeds | None]:
    """Prompt and, under guidance, negative prompt. The encoder is gone when this returns."""
    on_event(StageBegan("encode prompt"))
    guided = clip.resolved.preset.sampler.cfg_scale > 1.0
    saved = saved_prompts(clip)
    if saved is not None:
        text, negative = saved.text, saved.negative
    else:
        encoder = load_text_encoder(clip.model)
        text = _encode(encoder, clip.prompt or "", "prompt", on_event)
        negative = None
        if guided:
            negative = _encode(encoder, clip.negative_prompt or "", "negative prompt", on_event)
    return _placed(text, machine), _placed(negative, machine) if guided and negative else None


def saved_prompts(clip: ResolvedClip) -> SavedPrompts | None:
    """What the clip's embeddings file holds; None when the prompt comes as text.

    Raises InputError for a file that does not fit, UsageError when guidance lacks its part.
    """
    if clip.text_embeds is None:
        return None
    saved = load_text_embeds(clip.text_embeds, clip.model.text.channels)
    if clip.resolved.preset.sampler.cfg_scale > 1.0 and saved.negative is None:
        raise UsageError(
            f"guidance needs a negative prompt, and {clip.text_embeds} has no negative_embeds",
            hint="add negative_embeds to the file, or use --cfg-scale 1",
        )
    return saved


def encode_first_frame(vae: CausalVae, frame: NDArray[np.uint8], machine: Machine) -> Tensor:
    """The normalised latent of a picture (h, w, 3): 1 c 1 h' w' float32."""
    pixels = torch.from_numpy(np.array(frame)).to(machine.device)
    picture = pixels.permute(2, 0, 1)[None, :, None].float() / 127.5 - 1
    with torch.inference_mode():
        return vae.normalise(vae.encode(picture).float())


def make_clip(
    clip: ResolvedClip,
    first_latent: Tensor,
    prompts: tuple[TextEmbeds, TextEmbeds | None],
    machine: Machine,
) -> Clip:
    """Everything the rollout is conditioned on."""
    text, negative = prompts
    return Clip(first_latent, text, negative, _path_camera(clip.resolved, machine))


def _path_camera(resolved: ResolvedPlan, machine: Machine) -> PathCamera | None:
    if resolved.camera is None:
        return None
    rows, columns = resolved.preset.frame_grid.latent_size(*reversed(resolved.target))
    crop = CoverCrop(source=resolved.image_size, target=resolved.target)
    return PathCamera(
        poses=resolved.camera.poses,
        intrinsics=to_latent_units(
            resolved.camera.intrinsics.follow(crop),
            target=resolved.target,
            latent=(columns, rows),
        ),
        size=(rows, columns),
        temporal_stride=resolved.preset.frame_grid.temporal_stride,
        device=machine.device,
    )


def _encode(encoder: ByteTextEncoder, prompt: str, what: str, on_event: OnEvent) -> TextEmbeds:
    with torch.inference_mode():
        encoded = encoder.encode(prompt)
    if encoded.dropped_tokens:
        kept = encoded.text.embeds.shape[1]
        on_event(
            Remark(f"the {what} is cut: {kept} tokens fit, {encoded.dropped_tokens} are left out")
        )
    return encoded.text


def _placed(text: TextEmbeds, machine: Machine) -> TextEmbeds:
    return TextEmbeds(text.embeds.to(machine.device), text.mask.to(machine.device))
