"""Weights from a safetensors file into a module that was built on the meta device."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from sanawm_cli.errors import WeightsError
from sanawm_cli.weights.keymaps import Shape, keeps_float32

_LISTED = 10

# What a file may hold weights as; quantised ones would need scales that nobody here reads.
_STORED = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a file: the network's name for it, the file's own, its shape and kind."""

    name: str
    raw: str
    shape: Shape
    kind: str


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

    Strict: raises WeightsError listing tensors that are missing, unexpected (unless `ignore`d),
    there twice, of another shape, or no plain numbers. Norms, decays and modulation tables stay
    at least float32.
    """
    wanted = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            renamed = [(rename(raw), raw) for raw in file.keys()]
            slices = [(name, raw, file.get_slice(raw)) for name, raw in renamed if not ignore(name)]
            stored = [
                StoredTensor(name, raw, tuple(part.get_shape()), part.get_dtype())
                for name, raw, part in slices
            ]
            check_fits(path, stored, wanted)
            for each in stored:
                wide = torch.promote_types(dtype, torch.float32)
                kept = wide if keeps_float32(each.name) else dtype
                tensor = own_storage(file.get_tensor(each.raw), device, kept)
                # Into its own layer: the whole module would be walked anew for every tensor.
                layer, _, own = each.name.rpartition(".")
                part_of = module.get_submodule(layer)
                part_of.load_state_dict({own: tensor}, strict=False, assign=True)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path}: not a readable safetensors file: {error}") from error
    module.requires_grad_(False)


def own_storage(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """A copy in aligned storage of its own.

    Readers hand out views into the mapped file at any offset, and products with misaligned
    operands may differ in the last bit.
    """
    return torch.empty(tensor.shape, dtype=dtype, device=device).copy_(tensor)


def check_fits(path: Path, stored: Sequence[StoredTensor], wanted: Mapping[str, Shape]) -> None:
    """Raise WeightsError unless a file holds exactly what is wanted: names and shapes."""
    counts = Counter(tensor.name for tensor in stored)
    problems = [f"{name} is missing" for name in wanted if name not in counts]
    problems += [f"{tensor.raw} is not expected" for tensor in stored if tensor.name not in wanted]
    problems += [f"{name} is there {count} times" for name, count in counts.items() if count > 1]
    for tensor in stored:
        want = wanted.get(tensor.name, tensor.shape)
        if tensor.shape != want:
            problems.append(f"{tensor.name} is {tensor.shape}, the network has {want}")
        if tensor.kind not in _STORED:
            problems.append(f"{tensor.name} is {tensor.kind}, not one of {', '.join(_STORED)}")
    if problems:
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise WeightsError(
            f"{path} does not fit: {'; '.join(problems[:_LISTED])}{more}",
            hint="these weights belong to another preset or release",
        )
