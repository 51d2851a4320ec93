"""A run's options on top of a preset."""

import re
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from sanawm_cli.errors import PresetError, UsageError
from sanawm_cli.preset.faults import faults
from sanawm_cli.preset.settings import (
    CameraSettings,
    Dialect,
    GridRule,
    NoiseRule,
    Preset,
    Window,
)
from sanawm_cli.preset.typed import shown

Value = TypeVar("Value")

# Options whose name is not their setting's.
_SPELT = {"dialect": "--action-dialect", "window": "--kv-window"}
_OVERRIDABLE = ("video", "stream", "sampler", "camera")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Settings that a run may change; None: not given."""

    height: int | None = None
    width: int | None = None
    fps: int | None = None
    crf: int | None = None
    chunk_latents: int | None = None
    window: Window | None = None
    sink: bool | None = None
    grid: GridRule | None = None
    steps: tuple[int, ...] | None = None
    cfg_scale: float | None = None
    noise: NoiseRule | None = None
    seed: int | None = None
    dialect: Dialect | None = None
    translation_speed: float | None = None
    rotation_speed: float | None = None


def option_name(setting: str) -> str:
    """How a setting is spelt on the command line."""
    return _SPELT.get(setting, f"--{setting.replace('_', '-')}")


def merge(preset: Preset, overrides: Overrides) -> Preset:
    """The preset with the given options in place of its own settings, checked again.

    Another dialect brings its own speeds. Raises UsageError, naming the option, for an impossible
    value.
    """
    o = overrides
    merged = replace(
        preset,
        video=replace(
            preset.video,
            height=_pick(o.height, preset.video.height),
            width=_pick(o.width, preset.video.width),
            fps=_pick(o.fps, preset.video.fps),
            crf=_pick(o.crf, preset.video.crf),
        ),
        stream=replace(
            preset.stream,
            chunk_latents=_pick(o.chunk_latents, preset.stream.chunk_latents),
            window=_pick(o.window, preset.stream.window),
            sink=_pick(o.sink, preset.stream.sink),
            grid=_pick(o.grid, preset.stream.grid),
        ),
        sampler=replace(
            preset.sampler,
            steps=_pick(o.steps, preset.sampler.steps),
            cfg_scale=_pick(o.cfg_scale, preset.sampler.cfg_scale),
            noise=_pick(o.noise, preset.sampler.noise),
            seed=_pick(o.seed, preset.sampler.seed),
        ),
        camera=_merge_camera(preset.camera, o),
    )
    _refuse_faults(merged, overrides)
    return merged


def parse_steps(text: str) -> tuple[int, ...]:
    """Noise steps from "1000,960,889,727,0". Raises UsageError for anything but integers."""
    entries = [entry.strip() for entry in text.split(",")]
    for entry in entries:
        if not re.fullmatch(r"[0-9]{1,6}", entry):
            raise UsageError(
                f"--steps {shown(text)}: {shown(entry)} is not a whole number of 0 … 1000",
                hint="for example --steps 1000,960,889,727,0",
            )
    return tuple(int(entry) for entry in entries)


def parse_window(text: str) -> Window:
    """A number of chunks, or "all". Raises UsageError."""
    if text == "all":
        return "all"
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise UsageError(
            f"{option_name('window')} {shown(text)} is neither a number of chunks nor all"
        )
    return int(text)


def _merge_camera(camera: CameraSettings, o: Overrides) -> CameraSettings:
    dialect = _pick(o.dialect, camera.dialect)
    base = camera if dialect == camera.dialect else CameraSettings(dialect=dialect)
    return replace(
        base,
        translation_speed=_pick(o.translation_speed, base.translation_speed),
        rotation_speed=_pick(o.rotation_speed, base.rotation_speed),
    )


def _refuse_faults(preset: Preset, overrides: Overrides) -> None:
    given = {key for key, value in asdict(overrides).items() if value is not None}
    for fault in faults(preset):
        if fault.section in _OVERRIDABLE and fault.key in given:
            raise UsageError(f"{option_name(fault.key)}: {fault.text}", hint=fault.hint)
        raise PresetError(
            f"{preset.name}: [{fault.section}] {fault.key}: {fault.text}", hint=fault.hint
        )


def _pick(new: Value | None, old: Value) -> Value:
    return old if new is None else new
