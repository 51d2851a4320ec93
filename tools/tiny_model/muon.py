"""Muon (Jordan et al. 2024): momentum whose matrix is made orthogonal before it is applied.

For weights inside a network; biases, first and last layers are better off with AdamW.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

# Of the quintic that drives singular values to about 1 from anywhere in (0, 1].
QUINTIC = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


class Muon(Optimizer):
    """Updates of spectral norm about `lr`; a parameter of more than two axes counts as out × rest.

    Tall matrices move √(out/rest) times as far, so that what they write changes as much.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            list(parameters), {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, float]) -> None:
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        average = state["momentum"].lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(average, group["momentum"])  # Nesterov
        matrix = ahead.flatten(1)
        reach = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.add_(orthogonal(matrix).view(parameter.shape), alpha=-group["lr"] * reach)


def orthogonal(matrix: Tensor) -> Tensor:
    """Nearly the closest matrix with orthonormal rows or columns: singular values 0.7 to 1.2.

    Computed in bfloat16: an update needs no more.
    """
    a, b, c = QUINTIC
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix).bfloat16()
    x = x / (x.norm() + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.T if tall else x).to(matrix.dtype)
