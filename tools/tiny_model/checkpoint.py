"""Training state on disk: the file is either the old one or the new one, never half of one."""

import os
from pathlib import Path

import torch

State = dict[str, object]


def save_checkpoint(path: Path, state: State) -> None:
    """Write `state` (tensors, numbers, dicts and lists of them) to `path` in one move."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def load_checkpoint(path: Path) -> State | None:
    """What was saved last; None if nothing was."""
    if not path.exists():
        return None
    state: State = torch.load(path, map_location="cpu", weights_only=True)
    return state
