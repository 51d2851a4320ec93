"""Walks that run into nothing, as action strings under the renderer's own rules.

A walk is put together from phrases, such as one held key, or a way there and back. A phrase that
would come too near to a wall or box, or end with little to see, is not walked at all and another
one is drawn: so the action string alone is the whole truth about the poses.
"""

from math import atan2, radians, sin

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.camera.actions import Segment
from sanawm_cli.camera.kinematics import AT_ORIGIN, DIALECTS, WalkerState, roll_out
from tools.tiny_world.ground import is_clear, view_depth
from tools.tiny_world.scene import Place, Scene, placement

RULES = DIALECTS["v2"]
SHORTEST, LONGEST = 8, 40  # frames of a held key
LONGEST_LOOK = 120  # frames of a look aside, which is followed by the way back
ABOUT = 300  # frames of turning round: 180°
SIGHT = 1.35  # a phrase ends with a view at least so deep
OPEN = 2.0  # a turn away from something near, with one so deep
MOST_PITCH = radians(13)
TRIES = 12  # before turning away

# Keys held, and how often they are drawn. d with j (or a with l) circles around something.
HELD = {
    "w": 11.0,
    **{"wa": 3.0, "wd": 3.0, "a": 2.5, "d": 2.5, "s": 1.2, "": 1.2},
    **{"j": 1.4, "l": 1.4, "wj": 0.6, "wl": 0.6, "dj": 1.0, "al": 1.0, "sa": 0.4, "sd": 0.4},
    **{"i": 0.4, "k": 0.4, "wi": 0.4, "wk": 0.4},
}
LONGEST_PITCH = 12  # frames that i and k are held
THERE = ("w", "w", "wa", "wd", "j", "l", "s", "i", "k")  # ways that are gone back on
BACK = dict(zip("wsadjlik", "swdaljki", strict=True))
# In a short clip there is no time to turn round; a key is held instead.
PHRASES = {"hold": 0.58, "there and back": 0.15, "look aside": 0.12, "turn round": 0.15}

Phrase = tuple[Segment, ...]


def random_walk(scene: Scene, *, frames: int, random: np.random.Generator) -> Phrase:
    """Segments of `frames` − 1 frames in all (`frames` ≥ 2), from the start of the scene."""
    state, walked, left = AT_ORIGIN, list[Segment](), frames - 1
    while left:
        phrase, state = _next(scene, state, left, random)
        walked += phrase
        left -= _frames(phrase)
    return tuple(walked)


def action_string(segments: Phrase) -> str:
    """What `parse_action` reads back to the same segments."""
    return ",".join(
        f"{''.join(key for key in BACK if key in segment.keys) or 'none'}-{segment.frames}"
        for segment in segments
    )


def spot(scene: Scene, pose: NDArray[np.floating]) -> tuple[Place, float]:
    """Where a camera (4, 4) is in the courtyard, and the angle from +z to +x that it faces."""
    in_scene = placement(scene) @ pose
    x, _, z = in_scene[:3, 3].tolist()
    return (x, z), atan2(in_scene[0, 2], in_scene[2, 2])


def _next(
    scene: Scene, state: WalkerState, left: int, random: np.random.Generator
) -> tuple[Phrase, WalkerState]:
    """A phrase of at most `left` frames that can be walked, and the walker after it."""
    for _ in range(TRIES):
        phrase = _draw(left, random)
        rest = left - _frames(phrase)
        if phrase[0].keys == state.held or rest < 0 or 0 < rest < SHORTEST:
            continue
        end = _walked(scene, state, phrase)
        if end is not None:
            return phrase, end
    return _turn_away(scene, state, left)


def _turn_away(scene: Scene, state: WalkerState, left: int) -> tuple[Phrase, WalkerState]:
    """The shortest turn on the spot that opens the view, or a long one.

    It always works: a key that was not held before stops all other motion at once.
    """
    ways = []
    for key in {"a", "d"} - state.held:
        path = roll_out((_held(key, min(left, ABOUT)),), RULES, start=state)
        depths = [view_depth(scene, *spot(scene, pose)) for pose in path.poses]
        open_at = (n for n in range(SHORTEST, len(depths)) if depths[n] > OPEN)
        ways.append((next(open_at, len(depths) - 1), key))
    frames, key = min(ways)
    frames = frames if left - frames >= SHORTEST else left
    phrase = (_held(key, frames),)
    return phrase, roll_out(phrase, RULES, start=state).end


def _draw(left: int, random: np.random.Generator) -> Phrase:
    """Any phrase, mostly one of at most `left` frames."""
    kind = random.choice(list(PHRASES), p=list(PHRASES.values()))
    if kind == "turn round" and left > ABOUT:
        way = _held("w", _duration((left - ABOUT) // 2, LONGEST, random))
        turn = _held(str(random.choice(("a", "d"))), ABOUT)
        return (way, turn, way) if random.random() < 0.5 else (turn, way)
    if kind == "there and back" and left >= 2 * SHORTEST:
        keys = str(random.choice(THERE))
        return _there_and_back(keys, _duration(left // 2, _longest(keys), random))
    if kind == "look aside" and left >= 2 * SHORTEST:
        keys = str(random.choice(("a", "d")))
        return _there_and_back(keys, _duration(left // 2, LONGEST_LOOK, random))
    weights = np.array(list(HELD.values()))
    keys = str(random.choice(list(HELD), p=weights / weights.sum()))
    return (_held(keys, _duration(left, _longest(keys), random)),)


def _there_and_back(keys: str, frames: int) -> Phrase:
    return _held(keys, frames), _held("".join(BACK[key] for key in keys), frames)


def _held(keys: str, frames: int) -> Segment:
    return Segment(keys=frozenset(keys), frames=frames)


def _longest(keys: str) -> int:
    return LONGEST_PITCH if set(keys) & {"i", "k"} else LONGEST


def _duration(left: int, longest: int, random: np.random.Generator) -> int:
    """SHORTEST to `longest` frames, or all that are left if that is less than two times SHORTEST.

    No remainder shorter than SHORTEST is left if that can be helped.
    """
    if left < 2 * SHORTEST:
        return left
    frames = int(random.integers(SHORTEST, min(longest, left) + 1))
    return frames if not 0 < left - frames < SHORTEST else left - SHORTEST


def _frames(phrase: Phrase) -> int:
    return sum(segment.frames for segment in phrase)


def _walked(scene: Scene, state: WalkerState, phrase: Phrase) -> WalkerState | None:
    """The walker after a phrase; None if it should not be walked."""
    path = roll_out(phrase, RULES, start=state)
    spots = [spot(scene, pose) for pose in path.poses]
    if not all(is_clear(scene, at) for at, _ in spots[1:]):
        return None
    if np.abs(path.poses[1:, 1, 2]).max() > sin(MOST_PITCH):
        return None
    return path.end if view_depth(scene, *spots[-1]) > SIGHT else None
