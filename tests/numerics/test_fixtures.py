"""The numbers of the public implementations, at the tolerances their authors measured.

A float32 run stays within 5e-6 on streaming tensors and 1e-5 elsewhere, with two exceptions that
are the reference's own rounding, shown below by a float64 run that is just as far from it:

- Its timestep embedding used an exponential that is off in the last bit at one of 128 frequencies
  (libraries' float32 exp differ between processors; ours is rounded once, from float64). That is
  2.4e-6 in the embedding and up to 6e-6 in outputs.
- Camera keys, values and reads pass through distances of about 11 units, which cancel.
"""

from pathlib import Path

import pytest
import torch

from sanawm_cli.verify.report import CaseReport, Quantity
from sanawm_cli.verify.run import verify_folder

FIXTURES = Path(__file__).parents[1] / "fixtures"
STREAM, ELSEWHERE = 5e-6, 1e-5
TOLERANCES = {
    "velocity": 6e-6,
    "memory: camera keys": 8e-6,
    "memory: camera values": 8e-6,
    "intermediates: cam.raw": 2.2e-5,
}
CASES = ("stream_a", "stream_c", "stream_e", "dense_a", "camera_a", "sched_a", "vae_a")


def report(case: str, dtype: torch.dtype) -> CaseReport:
    return verify_folder(FIXTURES, (case,), torch.device("cpu"), dtype)[0]


def tolerance(kind: str, quantity: Quantity) -> float:
    if kind != "stream" or quantity.name.startswith("intermediates"):
        return TOLERANCES.get(quantity.name, ELSEWHERE)
    return TOLERANCES.get(quantity.name, STREAM)


@pytest.mark.parametrize("case", CASES)
def test_a_float32_run_is_within_the_reference_tolerances(case: str) -> None:
    found = report(case, torch.float32)
    far = {
        quantity.name: quantity.largest
        for quantity in found.quantities
        if not quantity.largest <= tolerance(found.kind, quantity)
    }
    assert not far


def test_every_reference_number_of_a_stream_is_compared() -> None:
    found = {q.name: q.tensors for q in report("stream_a", torch.float32).quantities}
    assert found["velocity"] == found["latents"] == 12
    assert found["clean velocity"] == 3
    slots = sum(n for name, n in found.items() if name.startswith("memory"))
    assert slots == 3 * (3 * 6 + 6)  # three chunks; gated-delta blocks have 6 slots, softmax 6
    assert sum(n for name, n in found.items() if name.startswith("intermediates")) == 38


def test_what_exceeds_the_tolerance_is_the_references_own_rounding() -> None:
    """Exact arithmetic is no nearer to the reference there than our float32."""
    exact = {q.name: q.largest for q in report("stream_a", torch.float64).quantities}
    for name, allowed in TOLERANCES.items():
        limit = ELSEWHERE if name.startswith("intermediates") else STREAM
        assert limit < exact[name] <= allowed


def test_the_exponential_alone_brings_outputs_within_the_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the reference machine's last bit at that one frequency, velocities are 3× nearer."""
    exponential = torch.exp

    def as_the_reference(x: torch.Tensor) -> torch.Tensor:
        y = exponential(x)
        if x.shape == (128,) and x.dtype == torch.float64:
            y = y.float()
            y[12] = torch.nextafter(y[12], torch.tensor(1.0))
        return y

    monkeypatch.setattr(torch, "exp", as_the_reference)
    found = {q.name: q.largest for q in report("stream_a", torch.float32).quantities}
    assert found["velocity"] < 2e-6
    assert found["latents"] < 2e-6
