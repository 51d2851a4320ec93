"""Action strings: `w-20,wl-15,none-10` is "w for 20 frames, then w and l for 15, then nothing".

What a key does is not decided here: see `kinematics.py`.
"""

import re
from dataclasses import dataclass

from sanawm_cli.camera.caret import Place
from sanawm_cli.errors import InputError

KEYS = frozenset("wasdijkl")
MAX_FRAMES = 100_000
EXAMPLE = "write segments such as w-40,wl-20,none-20: keys held together, '-', frames"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Keys held together (none: the empty set) for a number of frames."""

    keys: frozenset[str]
    frames: int


def parse_action(text: str) -> tuple[Segment, ...]:
    """Read an action string.

    Full-width commas, spaces and upper case are accepted; a key written twice counts once.
    Raises InputError, with carets under the segment, for an empty string, a segment without '-',
    an unknown key, a duration that is not a positive integer, or more than MAX_FRAMES in all.
    """
    if not text.strip():
        raise InputError("the action string is empty", hint=EXAMPLE)
    segments = []
    start, total = 0, 0
    for part in re.split("[,，]", text):
        place = _trimmed(text, start, start + len(part))
        segment = _read_segment(part, place)
        total += segment.frames
        if total > MAX_FRAMES:
            raise place.error(f"the action lasts longer than {MAX_FRAMES} frames")
        segments.append(segment)
        start += len(part) + 1
    return tuple(segments)


def _trimmed(text: str, start: int, stop: int) -> Place:
    """The part without the spaces around it."""
    part = text[start:stop]
    first = start + len(part) - len(part.lstrip())
    return Place(text=text, start=first, stop=first + len(part.strip()))


def _read_segment(part: str, place: Place) -> Segment:
    keys, dash, frames = part.partition("-")
    if not part.strip():
        raise place.error("empty action segment", hint="remove the extra comma")
    if not dash:
        raise place.error("action segment without '-'", hint=EXAMPLE)
    return Segment(keys=_read_keys(keys, place), frames=_read_frames(frames.strip(), place))


def _read_keys(text: str, place: Place) -> frozenset[str]:
    typed = "".join(text.split())
    if not typed:
        raise place.error("action segment without keys", hint="write none-16 to press nothing")
    # Only ASCII is lowered: 'K' (the Kelvin sign) also lowers to 'k'.
    keys = [c.lower() if c.isascii() else c for c in typed]
    if "".join(keys) == "none":
        return frozenset()
    for key, shown in zip(keys, typed, strict=True):
        if key not in KEYS:
            raise place.error(f"unknown key {shown!r}", hint="keys are w a s d i j k l, or none")
    return frozenset(keys)


def _read_frames(text: str, place: Place) -> int:
    digits = text.lstrip("0")
    if not (digits.isascii() and digits.isdigit()):
        shown = text if len(text) <= 20 else text[:20] + "…"
        raise place.error(
            f"duration {shown!r} is not a positive whole number", hint="for example w-16"
        )
    # A number of many digits is never converted: the caller only needs to see that it is too big.
    return int(digits) if len(digits) <= len(str(MAX_FRAMES)) else MAX_FRAMES + 1
