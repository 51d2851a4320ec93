"""What a comparison found."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sanawm_cli.errors import InputError


@dataclass(frozen=True, slots=True)
class Quantity:
    """Largest absolute difference over all tensors compared under one name, and where it was."""

    name: str
    largest: float
    tensors: int
    worst: str


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The quantities of one case. `kind` is what the case's files were recognised as."""

    case: str
    kind: str
    quantities: tuple[Quantity, ...]

    @property
    def largest(self) -> float:
        """The largest difference of all."""
        return max(quantity.largest for quantity in self.quantities)

    def holds(self, tolerance: float) -> bool:
        """Whether every quantity is within the tolerance."""
        return self.largest <= tolerance

    def as_json(self, tolerance: float) -> dict[str, Any]:
        """For machines; a difference that cannot be told as a number is null."""
        return {
            "case": self.case,
            "kind": self.kind,
            "ok": self.holds(tolerance),
            "quantities": [
                {
                    "name": quantity.name,
                    "largest": quantity.largest if math.isfinite(quantity.largest) else None,
                    "tensors": quantity.tensors,
                    "worst": quantity.worst,
                }
                for quantity in self.quantities
            ],
        }


@dataclass
class Comparison:
    """Collects differences while a case runs."""

    case: str
    kind: str
    found: dict[str, list[tuple[float, str]]] = field(default_factory=dict)

    def add(self, quantity: str, place: str, have: Tensor, want: Tensor) -> None:
        """Compare two tensors. A wrong shape is infinitely far off, NaN and Inf likewise."""
        self.found.setdefault(quantity, []).append((difference(have, want), place))

    def report(self) -> CaseReport:
        """The result. Raises InputError when there was nothing to compare."""
        if not self.found:
            raise InputError(
                f"case {self.case}: no reference number was found to compare with",
                hint="the files beside the json may be incomplete",
            )
        return CaseReport(self.case, self.kind, tuple(_quantities(self.found.items())))


def difference(have: Tensor, want: Tensor) -> float:
    """Largest absolute difference in float64; infinite where they cannot be compared."""
    if have.shape != want.shape:
        return math.inf
    gap = (have.detach().cpu().to(torch.float64) - want.cpu().to(torch.float64)).abs()
    return math.inf if not bool(torch.isfinite(gap).all()) else float(gap.max())


def _quantities(found: Iterable[tuple[str, list[tuple[float, str]]]]) -> Iterable[Quantity]:
    for name, differences in found:
        largest, worst = max(differences)
        yield Quantity(name, largest, len(differences), worst)
