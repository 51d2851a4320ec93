"""TOML tables to settings, strictly: no key too many, none missing, each of its type."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

from sanawm_cli.configs import NetworkConfig, TextConfig, VaeConfig
from sanawm_cli.errors import PresetError
from sanawm_cli.near import suggestion
from sanawm_cli.preset.faults import Fault, faults
from sanawm_cli.preset.settings import (
    CameraSettings,
    Preset,
    SamplerSettings,
    StreamSettings,
    VideoSettings,
)
from sanawm_cli.preset.steps import shifted_steps
from sanawm_cli.preset.typed import expected, fits, freeze, shown
from sanawm_cli.regular import refuse_odd_file

Settings = TypeVar("Settings")
Table = Mapping[str, object]

_SECTIONS: dict[str, type[Any]] = {
    "video": VideoSettings,
    "stream": StreamSettings,
    "sampler": SamplerSettings,
    "camera": CameraSettings,
    "network": NetworkConfig,
    "vae": VaeConfig,
    "text": TextConfig,
}
_TOP = ("name", "title", "model")
_MAX_BYTES = 1 << 20


def read_preset_file(path: Path) -> Preset:
    """The preset in a TOML file. Raises PresetError, naming file, section and key."""
    refuse_odd_file(path, PresetError, most=_MAX_BYTES)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PresetError(f"{path}: cannot be read: {error.strerror or error}") from error
    # Bad UTF-8, bad syntax and integers of thousands of digits are ValueErrors.
    except (ValueError, RecursionError) as error:
        raise PresetError(f"{path}: not a TOML file: {error}") from error
    return read_preset(table, where=str(path))


def read_preset(table: Table, *, where: str) -> Preset:
    """The preset that a table of sections describes, every value checked.

    `where` names the source in errors. Raises PresetError.
    """
    at = f"{where}:"
    _refuse_unknown(table, (*_TOP, *_SECTIONS), at=at, what="key or section")
    top = {key: _read_value(table, key, str, at=at) for key in _TOP}
    sections = {
        name: read_section(kind, _section(table, name, at=at), at=f"{at} [{name}]")
        for name, kind in _SECTIONS.items()
    }
    preset = cast("Callable[..., Preset]", Preset)(**top, **sections)
    for fault in faults(preset):
        raise PresetError(f"{at} {_place(fault)}: {fault.text}", hint=fault.hint)
    return preset


def _section(table: Table, name: str, *, at: str) -> Table:
    if name not in table:
        raise PresetError(f"{at} missing section [{name}]")
    section = table[name]
    if not isinstance(section, Mapping):
        raise PresetError(f"{at} {name} must be a section, not {shown(section)}")
    return _with_steps(section, at=f"{at} [{name}]") if name == "sampler" else section


def read_section(kind: type[Settings], table: Table, *, at: str) -> Settings:
    """One dataclass from one table. A key is optional only where None is its default.

    `at` names file and section in errors. Raises PresetError.
    """
    hints = get_type_hints(kind)
    optional = {f.name for f in fields(cast("Any", kind)) if f.default is None}
    _refuse_unknown(table, hints, at=at, what="key")
    values = {
        key: _read_value(table, key, hint, at=at)
        for key, hint in hints.items()
        if key in table or key not in optional
    }
    return cast("Callable[..., Settings]", kind)(**values)


def _read_value(table: Table, key: str, hint: Any, *, at: str) -> object:
    value = table.get(key, MISSING)
    if value is MISSING:
        raise PresetError(f"{at} missing key {key!r}", hint=f"{key} is {expected(hint)}")
    if not fits(value, hint):
        raise PresetError(f"{at} {key} must be {expected(hint)}, not {shown(value)}")
    return freeze(value, hint)


def _refuse_unknown(
    table: Table, known: Mapping[str, object] | tuple[str, ...], *, at: str, what: str
) -> None:
    for key in table:
        if key not in known:
            hint = suggestion(key, known, listing="known keys")
            raise PresetError(f"{at} unknown {what} {shown(key)}", hint=hint)


def _with_steps(table: Table, *, at: str) -> Table:
    """The sampler's table with `count` and `shift` worked out to `steps`."""
    if "count" not in table and "shift" not in table:
        return table
    if "steps" in table:
        raise PresetError(f"{at} steps and count + shift exclude each other")
    count = _read_value(table, "count", int, at=at)
    shift = _read_value(table, "shift", float, at=at)
    steps = shifted_steps(cast("int", count), cast("float", shift))
    if steps is None:
        raise PresetError(
            f"{at} count {shown(count)} with shift {shown(shift)} gives no steps",
            hint="count is 1 … 1000, shift 0.01 … 100",
        )
    return {k: v for k, v in table.items() if k not in ("count", "shift")} | {"steps": list(steps)}


def _place(fault: Fault) -> str:
    return f"[{fault.section}] {fault.key}" if fault.section else fault.key
