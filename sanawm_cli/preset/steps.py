"""Lists of noise steps: the rule they obey and the formula that gives them."""

from itertools import pairwise
from math import floor

from sanawm_cli.preset.typed import shown

FULL_NOISE = 1000
_COUNTS = range(1, FULL_NOISE + 1)
_LEAST_SHIFT, _MOST_SHIFT = 0.01, 100.0


def shifted_steps(count: int, shift: float) -> tuple[int, ...] | None:
    """`count` uniform steps t moved to shift·t / (1 + (shift − 1)·t), rounded, then 0.

    Count 4 and shift 8 give the distilled list 1000, 960, 889, 727, 0. None where count or shift
    are out of range.
    """
    if count not in _COUNTS or not _LEAST_SHIFT <= shift <= _MOST_SHIFT:
        return None
    times = [1 - i / count for i in range(count + 1)]
    return tuple(floor(FULL_NOISE * shift * t / (1 + (shift - 1) * t) + 0.5) for t in times)


def steps_fault(steps: tuple[int, ...]) -> str | None:
    """Why a list cannot be a list of noise steps; None where it can."""
    listed = shown(list(steps))
    if len(steps) < 2:
        return f"{listed} needs at least two entries"
    if any(then >= now for now, then in pairwise(steps)):
        return f"{listed} is not strictly decreasing"
    if steps[0] > FULL_NOISE:
        return f"{listed} starts above {FULL_NOISE}"
    if steps[-1] != 0:
        return f"{listed} does not end with 0"
    return None
