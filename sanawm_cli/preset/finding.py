"""Presets by name or by path."""

from pathlib import Path

from sanawm_cli.errors import PresetError
from sanawm_cli.near import suggestion
from sanawm_cli.preset.reading import read_preset_file
from sanawm_cli.preset.settings import Preset
from sanawm_cli.preset.typed import shown


def presets_folder() -> Path:
    """Where the shipped presets lie: inside an installed package, beside it in a checkout.

    Raises PresetError where neither is there.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "presets", package.parent / "presets"):
        if folder.is_dir():
            return folder
    raise PresetError(f"no presets beside {package}", hint="reinstall sanawm")


def list_presets() -> tuple[str, ...]:
    """Names of the shipped presets, sorted."""
    return tuple(sorted(path.stem for path in presets_folder().glob("*.toml")))


def load_preset(name_or_path: str | Path) -> Preset:
    """A shipped preset by name, or any file: a value with a path separator or ending in .toml.

    Raises PresetError: unknown name, unreadable file, unknown or missing key, impossible value.
    """
    return read_preset_file(preset_file(name_or_path))


def preset_file(name_or_path: str | Path) -> Path:
    """Where a preset lies, see `load_preset`. Raises PresetError for an unknown name."""
    if isinstance(name_or_path, Path):
        return name_or_path
    name = name_or_path
    if name.endswith(".toml") or "/" in name or "\\" in name:
        return Path(name)
    names = list_presets()
    if name not in names:
        hint = suggestion(name, names, listing="available")
        raise PresetError(f"unknown preset {shown(name)}", hint=hint)
    return presets_folder() / f"{name}.toml"


def model_folder(name_or_path: str | Path) -> Path | None:
    """The folder of a preset's own model: beside the preset's file, else beside the shipped ones.

    So a copy of a shipped preset finds its model from anywhere. None where the weights have to
    be named by the run.
    """
    path = preset_file(name_or_path)
    model = read_preset_file(path).model
    if not model:
        return None
    beside, shipped = path.parent / model, presets_folder() / model
    return shipped if shipped.is_dir() and not beside.is_dir() else beside
