"""Finding reference cases in a folder, and telling what kind each one is.

A case is NAME.json and the safetensors files NAME.….safetensors beside it. The kind is
read off the contents; a name means nothing.
"""

import glob
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from sanawm_cli.errors import InputError
from sanawm_cli.near import nearest
from sanawm_cli.regular import refuse_odd_file

MOST_BYTES = 1 << 26

Kind = Literal["stream", "dense", "camera", "schedule", "vae"]


@dataclass(frozen=True, slots=True)
class Case:
    """A case's json, its folder, and the numbers in NAME.safetensors and NAME.io.safetensors."""

    name: str
    kind: Kind
    facts: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    folder: Path

    def beside(self, suffix: str) -> Path:
        """The file NAME.suffix.safetensors."""
        return self.folder / f"{self.name}.{suffix}.safetensors"

    def named(self, key: str) -> Path:
        """The file in the same folder that the json names under `key`."""
        name = self.facts.get(key)
        if not isinstance(name, str) or Path(name).name != name:
            raise InputError(
                f"case {self.name}: {key} {name!r} is not the name of a file beside it"
            )
        return self.folder / name


def find_cases(folder: Path, names: tuple[str, ...]) -> tuple[Case, ...]:
    """All cases of a folder, or those named. Raises InputError for what is missing or damaged."""
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder of reference cases")
    known = _json_names(folder)
    cases = tuple(sorted(set(known) - set(other_files(folder))))
    for name in names:
        if name not in known:
            near = nearest(name, cases)
            raise InputError(
                f"no case {name!r} in {folder}",
                hint=f"did you mean {near}?" if near else f"cases: {', '.join(cases)}",
            )
    wanted = names or cases
    if not wanted:
        raise InputError(f"{folder}: no case in it (NAME.json with safetensors files beside it)")
    return tuple(read_case(folder, name) for name in wanted)


def other_files(folder: Path) -> tuple[str, ...]:
    """Names of the json files in a folder of cases that are none: no tensors lie beside them,
    and they do not say that they are a case (some share another case's tensors)."""
    return tuple(
        name
        for name in _json_names(folder)
        if not any(folder.glob(f"{glob.escape(name)}.*safetensors"))
        and "case" not in _facts(folder, name)
    )


def read_case(folder: Path, name: str) -> Case:
    """Read one case and recognise its kind."""
    facts = _facts(folder, name)
    tensors: dict[str, Tensor] = {}
    for candidate in (folder / f"{name}.safetensors", folder / f"{name}.io.safetensors"):
        if candidate.exists():
            tensors |= load_tensors(candidate)
    if isinstance(facts.get("io"), str) and Path(facts["io"]).name == facts["io"]:
        tensors |= load_tensors(folder / facts["io"])
    kind = _kind(facts, tensors)
    if kind is None:
        raise InputError(
            f"case {name}: its contents are of no known kind",
            hint=None if tensors else f"no tensors were found beside {name}.json",
        )
    return Case(name, kind, facts, tensors, folder)


def _json_names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.json"))


def _facts(folder: Path, name: str) -> Mapping[str, Any]:
    """What NAME.json holds; nothing where that is no object."""
    path = folder / f"{name}.json"
    refuse_odd_file(path, InputError, most=MOST_BYTES)
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable as JSON ({error})") from error
    return facts if isinstance(facts, dict) else {}


def load_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file. Raises InputError when it is missing or damaged."""
    if not path.is_file():
        raise InputError(f"{path}: the file is missing")
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: not a readable safetensors file ({error})") from error


def _kind(facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Kind | None:
    if "segments" in facts and "in.noise" in tensors:
        return "stream"
    if "in.timestep" in tensors:
        return "dense"
    if "in.latents_normalized" in tensors:
        return "vae"
    if any(name.endswith(".per_token_timesteps") for name in tensors):
        return "schedule"
    if any(name.endswith(".c2w") for name in tensors):
        return "camera"
    return None


def placed(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """On the device, numbers in the precision; masks and counts keep theirs."""
    return tensor.to(device, dtype) if tensor.is_floating_point() else tensor.to(device)
