"""What a preset holds. Data only: reading, checking and overriding are beside it."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Literal

from sanawm_cli.configs import NetworkConfig, TextConfig, VaeConfig
from sanawm_cli.grid import FrameGrid

Window = int | Literal["all"]
GridRule = Literal["remainder", "uniform"]
NoiseRule = Literal["frame", "horizon"]
Dialect = Literal["v2", "v1", "v1-strafe"]
X264Preset = Literal[
    "ultrafast",
    "superfast",
    "veryfast",
    "faster",
    "fast",
    "medium",
    "slow",
    "slower",
    "veryslow",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoSettings:
    """The picture and its encoding. `default_frames` counts when nothing else says how many."""

    height: int
    width: int
    fps: int
    crf: int
    x264_preset: X264Preset
    encoder_threads: int
    default_frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """How a clip is cut, and how far back a chunk looks.

    `window` counts chunks; with `sink` on, chunk 0 takes one of the window's places once it
    would have left.
    """

    chunk_latents: int
    window: Window
    sink: bool
    grid: GridRule


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerSettings:
    """Noise steps (integers of 1000, ending with 0), guidance (1.0 = off) and noise."""

    steps: tuple[int, ...]
    cfg_scale: float
    noise: NoiseRule
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraSettings:
    """What action keys mean. Speeds are per frame (degrees for the rotation).

    None means the dialect's own speed.
    """

    dialect: Dialect
    translation_speed: float | None = None
    rotation_speed: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A recipe: everything about a render but its inputs.

    `model` is the folder of its model beside the shipped presets; empty when the weights have to
    be named by the run.
    """

    name: str
    title: str
    model: str
    video: VideoSettings
    stream: StreamSettings
    sampler: SamplerSettings
    camera: CameraSettings
    network: NetworkConfig
    vae: VaeConfig
    text: TextConfig

    def fingerprint(self) -> str:
        """sha256 (hex) over all settings that change the video.

        Left out are the names of recipe and model (weights have hashes of their own) and
        `default_frames`, which the plan has settled.
        """
        table = asdict(self)
        for name in ("name", "title", "model"):
            del table[name]
        del table["video"]["default_frames"]
        text = json.dumps(table, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def frame_grid(self) -> FrameGrid:
        """The VAE's strides."""
        return FrameGrid(
            temporal_stride=self.vae.temporal_stride, spatial_stride=self.vae.spatial_stride
        )
