"""A model folder: `model.json` and the weights beside it. Torch-free, so that plans can name it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from sanawm_cli.configs import NetworkConfig, TextConfig, VaeConfig
from sanawm_cli.errors import PresetError, WeightsError
from sanawm_cli.preset.reading import read_section
from sanawm_cli.preset.settings import Preset
from sanawm_cli.regular import refuse_odd_file

SCHEMA = 1
_READ = 1 << 20

Settings = TypeVar("Settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """Size and sha256 (hex) of one weights file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """What `model.json` says. `trained` is False for random weights; `note` says more."""

    path: Path
    name: str
    trained: bool
    note: str
    network: NetworkConfig
    vae: VaeConfig
    text: TextConfig
    files: Mapping[str, FileFacts]

    @property
    def fingerprint(self) -> str:
        """sha256 (hex) over the recorded hashes of all files."""
        lines = [f"{name} {facts.sha256}\n" for name, facts in sorted(self.files.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def label(self) -> str:
        """The name for people, saying so when the weights are random."""
        return self.name if self.trained else f"{self.name} (untrained)"

    def file(self, name: str) -> Path:
        """The path of a weights file. Raises WeightsError when model.json does not list it."""
        if name not in self.files:
            raise WeightsError(f"{self.path}: model.json lists no {name}")
        return self.path / name

    def check_fits(self, preset: Preset) -> None:
        """Raise WeightsError naming the first size in which preset and model differ."""
        for part in ("network", "vae", "text"):
            mine, wanted = getattr(self, part), getattr(preset, part)
            for field in fields(mine):
                have, want = getattr(mine, field.name), getattr(wanted, field.name)
                if have != want:
                    raise WeightsError(
                        f"{self.path} does not fit preset {preset.name}: "
                        f"{part}.{field.name} is {have}, the preset has {want}",
                        hint="use the preset that belongs to these weights",
                    )

    def check_files(self) -> None:
        """Raise WeightsError for a file that is missing or not the one model.json was made for."""
        for name, facts in self.files.items():
            path = self.path / name
            try:
                _check_file(path, facts)
            except OSError as error:
                reason = error.strerror or str(error)
                raise WeightsError(f"{path}: cannot be read: {reason}") from error


def open_model_folder(path: Path) -> ModelFolder:
    """Read a folder's `model.json`. Raises WeightsError when it is missing or makes no sense."""
    source = path / "model.json"
    try:
        if not path.is_dir():
            raise WeightsError(
                f"{path}: no such model folder", hint="give a folder with a model.json to --model"
            )
        refuse_odd_file(source, WeightsError, most=_READ)
        table = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise WeightsError(f"{path}: no model.json in it, so no model folder") from error
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{source}: cannot be read as JSON: {error}") from error
    if not isinstance(table, dict) or table.get("schema") != SCHEMA:
        raise WeightsError(f"{source}: its schema is not {SCHEMA}, the one this version reads")
    return ModelFolder(
        path=path,
        name=_typed(table, "name", str, source),
        trained=_typed(table, "trained", bool, source),
        note=_typed(table, "note", str, source),
        network=_section(table, "network", NetworkConfig, source),
        vae=_section(table, "vae", VaeConfig, source),
        text=_section(table, "text", TextConfig, source),
        files=_files(table, source),
    )


def file_sha256(path: Path) -> str:
    """sha256 (hex) of a file's contents."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ):
            digest.update(block)
    return digest.hexdigest()


def _check_file(path: Path, facts: FileFacts) -> None:
    if not path.is_file():
        raise WeightsError(f"{path}: the file is missing", hint="get the folder again")
    size = path.stat().st_size
    if size != facts.bytes:
        raise WeightsError(
            f"{path} has {size} bytes, model.json says {facts.bytes}",
            hint="the file is incomplete or another version; get it again",
        )
    if file_sha256(path) != facts.sha256:
        raise WeightsError(
            f"{path} has another sha256 than model.json says",
            hint="the file is damaged or another version; get it again",
        )


def _typed(table: Mapping[str, Any], key: str, kind: type[Settings], source: Path) -> Settings:
    value = table.get(key)
    if not isinstance(value, kind):
        raise WeightsError(f"{source}: {key} is missing or no {kind.__name__}")
    return value


def _section(table: Mapping[str, Any], key: str, kind: type[Settings], source: Path) -> Settings:
    try:
        return read_section(kind, _typed(table, key, dict, source), at=f"{source}: {key}:")
    except PresetError as error:
        raise WeightsError(error.message, hint=error.hint) from error


def _files(table: Mapping[str, Any], source: Path) -> dict[str, FileFacts]:
    files = {}
    for name, facts in _typed(table, "files", dict, source).items():
        # A name that leaves the folder could make us read anything.
        if Path(name).name != name or name in ("", ".", "..") or "\\" in name:
            raise WeightsError(f"{source}: {name!r} is not the name of a file in the folder")
        if not isinstance(facts, dict):
            raise WeightsError(f"{source}: the facts of {name} are missing")
        size, sha256 = facts.get("bytes"), facts.get("sha256")
        if type(size) is not int or not isinstance(sha256, str):
            raise WeightsError(f"{source}: bytes or sha256 of {name} are missing")
        files[name] = FileFacts(bytes=size, sha256=sha256)
    return files
