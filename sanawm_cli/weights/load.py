"""Weights from a safetensors file into a module that was built on the meta device."""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from sanawm_cli.errors import WeightsError
from sanawm_cli.weights.keymaps import keeps_float32

_LISTED = 10


def load_into(
    module: nn.Module,
    path: Path,
    *,
    device: torch.device,
    dtype: torch.dtype,
    rename: Callable[[str], str],
    ignore: Callable[[str], bool],
) -> None:
    """Fill a meta module, one tensor at a time, straight to device and precision.

    Strict: raises WeightsError listing tensors that are missing, unexpected (unless `ignore`d)
    or of another shape. Norms, decays and modulation tables stay at least float32.
    """
    wanted = module.state_dict()
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            names = {rename(name): name for name in file.keys() if not ignore(rename(name))}
            shapes = {name: tuple(file.get_slice(raw).get_shape()) for name, raw in names.items()}
            check_names(path, shapes, {name: tuple(t.shape) for name, t in wanted.items()})
            for name, raw in names.items():
                kept = torch.promote_types(dtype, torch.float32) if keeps_float32(name) else dtype
                tensor = own_storage(file.get_tensor(raw), device, kept)
                module.load_state_dict({name: tensor}, strict=False, assign=True)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path}: not a readable safetensors file: {error}") from error
    module.requires_grad_(False)


def own_storage(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """A copy in aligned storage of its own.

    Readers hand out views into the mapped file at any offset, and products with misaligned
    operands may differ in the last bit.
    """
    return torch.empty(tensor.shape, dtype=dtype, device=device).copy_(tensor)


def check_names(
    path: Path, have: Mapping[str, tuple[int, ...]], want: Mapping[str, tuple[int, ...]]
) -> None:
    """Raise WeightsError unless names and shapes are the same."""
    problems = [f"{name} is missing" for name in want if name not in have]
    problems += [f"{name} is not expected" for name in have if name not in want]
    problems += [
        f"{name} is {have[name]}, the network has {want[name]}"
        for name in want
        if name in have and have[name] != want[name]
    ]
    if problems:
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise WeightsError(
            f"{path} does not fit: {'; '.join(problems[:_LISTED])}{more}",
            hint="these weights belong to another preset or release",
        )
