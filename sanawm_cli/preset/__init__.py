"""Presets: the recipe of a render, read from TOML, checked, and overridden by a run's options."""

from sanawm_cli.preset.finding import list_presets, load_preset, model_folder, presets_folder
from sanawm_cli.preset.overrides import Overrides, merge, option_name, parse_steps, parse_window
from sanawm_cli.preset.reading import read_preset
from sanawm_cli.preset.settings import (
    CameraSettings,
    Preset,
    SamplerSettings,
    StreamSettings,
    VideoSettings,
    Window,
)
from sanawm_cli.preset.writing import preset_table, preset_toml

__all__ = [
    "CameraSettings",
    "Overrides",
    "Preset",
    "SamplerSettings",
    "StreamSettings",
    "VideoSettings",
    "Window",
    "list_presets",
    "load_preset",
    "merge",
    "model_folder",
    "option_name",
    "parse_steps",
    "parse_window",
    "preset_table",
    "preset_toml",
    "presets_folder",
    "read_preset",
]
