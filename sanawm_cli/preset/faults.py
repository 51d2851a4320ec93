"""Settings that are of the right type and still impossible."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import prod

from sanawm_cli.configs import NetworkConfig, VaeConfig
from sanawm_cli.preset.settings import Preset
from sanawm_cli.preset.steps import steps_fault
from sanawm_cli.preset.typed import shown


@dataclass(frozen=True, slots=True)
class Fault:
    """One impossible setting; `text` starts with its value. The top's section is empty."""

    section: str
    key: str
    text: str
    hint: str | None = None


# Lowest and highest value, by section and key; for lists, of each entry. The upper ends are far
# from any use and keep arithmetic and allocations sane when a digit too many slips in.
_RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "video": {
        "height": (1, 8192),
        "width": (1, 8192),
        "fps": (1, 240),
        "crf": (0, 51),
        "encoder_threads": (1, 64),
        "default_frames": (1, 100_000),
    },
    "stream": {"chunk_latents": (1, 1024), "window": (1, 100_000)},
    "sampler": {"cfg_scale": (1.0, 100.0), "seed": (0, 2**63 - 1)},
    "camera": {"translation_speed": (1e-6, 1000.0), "rotation_speed": (1e-6, 180.0)},
    "network": {
        "latent_channels": (1, 4096),
        "width": (1, 65_536),
        "heads": (1, 1024),
        "blocks": (1, 1024),
        "softmax_every": (1, 1024),
        "ffn_ratio": (0.125, 64.0),
        "text_channels": (1, 65_536),
    },
    "vae": {
        "latent_channels": (1, 4096),
        "encoder_channels": (1, 65_536),
        "encoder_layers": (0, 1024),
        "encoder_strides": (1, 2),
        "decoder_channels": (1, 65_536),
        "decoder_layers": (0, 1024),
        "decoder_strides": (1, 2),
        "decoder_factors": (1, 8),
        "patch": (1, 16),
        "scaling_factor": (1e-6, 1e6),
    },
    "text": {"tokens": (1, 100_000), "channels": (1, 65_536)},
}


def faults(preset: Preset) -> Iterator[Fault]:
    """What is wrong with a preset, the plainest first; empty when it can be rendered with.

    Later checks divide by what earlier ones check: only the first fault is sure to make sense.
    """
    yield from _out_of_range(preset)
    yield from _text_faults(preset)
    if problem := steps_fault(preset.sampler.steps):
        yield Fault("sampler", "steps", problem, "for example 1000, 960, 889, 727, 0")
    yield from _network_faults(preset.network)
    yield from _encoder_faults(preset.vae)
    yield from _decoder_faults(preset.vae)
    yield from _mismatches(preset)
    yield from _video_faults(preset)


def _out_of_range(preset: Preset) -> Iterator[Fault]:
    for section, ranges in _RANGES.items():
        settings = getattr(preset, section)
        for key, (low, high) in ranges.items():
            for value in _numbers(getattr(settings, key)):
                if not low <= value <= high:  # so that NaN is a fault too
                    yield Fault(section, key, f"{shown(value)} is not in {low} … {high}")


def _numbers(value: object) -> Iterator[float]:
    """The numbers in a setting: itself, or those in its (nested) tuples."""
    if isinstance(value, tuple):
        for entry in value:
            yield from _numbers(entry)
    elif isinstance(value, int | float):
        yield value


def _text_faults(preset: Preset) -> Iterator[Fault]:
    for key, value in (("name", preset.name), ("title", preset.title)):
        if not value.strip():
            yield Fault("", key, f"{shown(value)} is empty")
    for field in fields(preset):
        value = getattr(preset, field.name)
        if isinstance(value, str) and not value.isprintable():
            yield Fault("", field.name, f"{shown(value)} must be one line of plain text")


def _network_faults(network: NetworkConfig) -> Iterator[Fault]:
    if network.width % network.heads:
        yield Fault("network", "width", f"{network.width} does not divide by heads {network.heads}")
    # Half a head goes to the rays, in groups of four channels.
    if network.head_dim % 8:
        text = f"{network.width} gives heads of {network.head_dim}, which is no multiple of 8"
        yield Fault("network", "width", text)


def _encoder_faults(vae: VaeConfig) -> Iterator[Fault]:
    yield from _length_faults(vae, "encoder", vae.encoder_channels)
    entering = (vae.latent_channels, *vae.encoder_channels)
    stages = zip(entering, vae.encoder_channels, vae.encoder_strides, strict=False)
    for width, out, stride in stages:
        folded = width * prod(stride)
        if out % prod(stride) or folded % out:
            text = f"{out} must divide by {prod(stride)} (its stride {stride}) and divide {folded}"
            yield Fault("vae", "encoder_channels", text)


def _decoder_faults(vae: VaeConfig) -> Iterator[Fault]:
    yield from _length_faults(vae, "decoder", vae.decoder_channels)
    coarsest_first = vae.decoder_channels[::-1]
    if len(vae.decoder_factors) != len(coarsest_first):
        text = f"{len(vae.decoder_factors)} entries, but {len(coarsest_first)} decoder_channels"
        yield Fault("vae", "decoder_factors", f"{text} need {len(coarsest_first)}")
    steps = zip(coarsest_first, coarsest_first[1:], vae.decoder_factors, strict=False)
    for inner, outer, factor in steps:
        if inner != outer * factor:
            text = f"{inner} is not {factor} (decoder_factors) times {outer}"
            yield Fault("vae", "decoder_channels", text)
    stages = zip(coarsest_first, vae.decoder_strides, vae.decoder_factors, strict=False)
    for width, stride, factor in stages:
        if width % prod(stride) or prod(stride) % factor:
            text = f"{width} must divide by {prod(stride)}, and that by {factor}"
            yield Fault("vae", "decoder_channels", text)


def _length_faults(vae: VaeConfig, half: str, channels: tuple[int, ...]) -> Iterator[Fault]:
    if not channels:
        yield Fault("vae", f"{half}_channels", "[] is empty")
    for key, want in ((f"{half}_layers", len(channels) + 1), (f"{half}_strides", len(channels))):
        found = len(getattr(vae, key))
        if found != want:
            text = f"{found} entries, but {len(channels)} {half}_channels need {want}"
            yield Fault("vae", key, text)


def _mismatches(preset: Preset) -> Iterator[Fault]:
    """Parts that do not fit each other."""
    network, vae, text = preset.network, preset.vae, preset.text
    if vae.latent_channels != network.latent_channels:
        pair = f"{vae.latent_channels}, but the network has {network.latent_channels}"
        yield Fault("vae", "latent_channels", pair)
    if text.channels != network.text_channels:
        pair = f"{text.channels}, but the network's text_channels is {network.text_channels}"
        yield Fault("text", "channels", pair)
    down, up = (
        tuple(prod(s[axis] for s in strides) for axis in range(3))
        for strides in (vae.encoder_strides, vae.decoder_strides)
    )
    if down != up:
        yield Fault("vae", "decoder_strides", f"come to {up}, those of the encoder to {down}")
    elif down[1] != down[2]:
        yield Fault("vae", "encoder_strides", f"come to {down}: height and width must agree")


def _video_faults(preset: Preset) -> Iterator[Fault]:
    grid, video = preset.frame_grid, preset.video
    for key, value in (("height", video.height), ("width", video.width)):
        # The decoder mirrors latents at the edges, so it needs two of them each way.
        stride, least = grid.spatial_stride, 2 * grid.spatial_stride
        if value % stride or value < least:
            below = max(value // stride * stride, least)
            text = f"{value} is not a multiple of {stride} of at least {least}"
            yield Fault("video", key, text, f"use {below} or {below + stride}")
    if not grid.is_whole(video.default_frames):
        below, above = grid.neighbours(video.default_frames, grid.temporal_stride)
        text = f"{video.default_frames} is not {grid.temporal_stride}k + 1"
        yield Fault("video", "default_frames", text, f"use {below} or {above}")
