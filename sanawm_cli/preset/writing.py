"""Settings back to a table, and to TOML."""

import json
from dataclasses import asdict

from sanawm_cli.preset.settings import Preset


def preset_table(preset: Preset) -> dict[str, object]:
    """All settings, as sections of plain JSON and TOML values; `read_preset` takes it back."""
    table = asdict(preset)
    camera = {key: value for key, value in table["camera"].items() if value is not None}
    whole: dict[str, object] = json.loads(json.dumps(table | {"camera": camera}))
    return whole


def preset_toml(preset: Preset) -> str:
    """All settings as a preset file."""
    lines: list[str] = []
    for name, value in preset_table(preset).items():
        if isinstance(value, dict):
            lines += ["", f"[{name}]", *(_line(key, entry) for key, entry in value.items())]
        else:
            lines.append(_line(name, value))
    return "\n".join(lines) + "\n"


def _line(key: str, value: object) -> str:
    # For printable strings, numbers, booleans and lists, TOML and JSON are spelt the same.
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"
