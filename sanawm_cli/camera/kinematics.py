"""From held keys to camera poses: the three dialects of action strings as data, and the walker.

Axes are OpenCV's (+X right, +Y down, +Z forward), poses camera-to-world. float64 inside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, exp, isfinite, radians, sin
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.camera.actions import Segment
from sanawm_cli.errors import InputError

Array = NDArray[np.float64]
Velocities = tuple[float, float, float, float]  # forward, strafe, yaw, pitch; per frame, radians

MAX_TRANSLATION_SPEED = 1000.0
MAX_ROTATION_SPEED = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Easing:
    """Time constants in seconds with which a velocity nears its target.

    A frame always counts as 1/16 s: the frame rate of the file changes the container only.
    """

    moving: float = 0.45
    stopping: float = 1.0
    frame_seconds: float = 1 / 16

    def near(self, velocity: float, target: float) -> float:
        """The velocity one frame later."""
        tau = self.moving if target else self.stopping
        return velocity + (target - velocity) * (1 - exp(-self.frame_seconds / tau))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinematics:
    """What keys do. w/s move forward/back and i/k pitch up/down in every dialect.

    Speeds are per frame, rotation and pitch limit in degrees. `strafe_keys` and `yaw_keys` are
    (left, right); `strafe_yaw` is the share of the rotation speed that a strafe adds as yaw.
    Raises InputError for a speed that is negative, not finite, or absurd.
    """

    translation_speed: float
    rotation_speed: float
    strafe_keys: tuple[str, str]
    yaw_keys: tuple[str, str]
    strafe_yaw: float
    pitch_limit: float
    past_limit: Literal["saturate", "ignore"]
    heading_epsilon: float
    easing: Easing | None

    def __post_init__(self) -> None:
        for name, value, most in (
            ("translation speed", self.translation_speed, MAX_TRANSLATION_SPEED),
            ("rotation speed", self.rotation_speed, MAX_ROTATION_SPEED),
        ):
            if not (isfinite(value) and 0 <= value <= most):
                raise InputError(
                    f"{name} {value} per frame is not between 0 and {most:g}",
                    hint="the dialects use 0.025 to 0.05 per frame and 0.6 to 1.2 degrees",
                )


_V1 = Kinematics(
    translation_speed=0.05,
    rotation_speed=1.2,
    strafe_keys=("a", "d"),
    yaw_keys=("j", "l"),
    strafe_yaw=0.0,
    pitch_limit=85.0,
    past_limit="ignore",
    heading_epsilon=0.0,
    easing=None,
)

DIALECTS: Mapping[str, Kinematics] = MappingProxyType(
    {
        # Current upstream scripts.
        "v2": Kinematics(
            translation_speed=0.025,
            rotation_speed=0.6,
            strafe_keys=("j", "l"),
            yaw_keys=("a", "d"),
            strafe_yaw=0.0,
            pitch_limit=60.0,
            past_limit="saturate",
            heading_epsilon=1e-6,
            easing=Easing(),
        ),
        # First release, diffusers.
        "v1": _V1,
        # SGLang: a strafe also turns.
        "v1-strafe": Kinematics(
            translation_speed=0.04,
            rotation_speed=1.2,
            strafe_keys=("a", "d"),
            yaw_keys=("j", "l"),
            strafe_yaw=0.4,
            pitch_limit=85.0,
            past_limit="ignore",
            heading_epsilon=1e-6,
            easing=None,
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkerState:
    """All that the next frame depends on. Plain numbers: compares, hashes and saves exactly."""

    rotation: tuple[tuple[float, ...], ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    position: tuple[float, ...] = (0.0, 0.0, 0.0)
    pitch: float = 0.0  # radians
    velocities: Velocities = (0.0, 0.0, 0.0, 0.0)
    held: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CameraPath:
    """Poses (N + 1, 4, 4) float32, the first where the walk began, and the walker at the end."""

    poses: NDArray[np.float32]
    end: WalkerState


AT_ORIGIN = WalkerState()


def roll_out(
    segments: Sequence[Segment], kinematics: Kinematics, *, start: WalkerState = AT_ORIGIN
) -> CameraPath:
    """Walk the segments. N action frames give N + 1 poses, the first is that of `start`.

    Walking `a` and then `b` from where it ended gives bit for bit what walking `a` + `b` gives.
    """
    poses = np.empty((1 + sum(s.frames for s in segments), 4, 4), np.float32)
    poses[0] = _pose(start)
    state, n = start, 0
    for segment in segments:
        for _ in range(segment.frames):
            state, n = walk(state, segment.keys, kinematics), n + 1
            poses[n] = _pose(state)
    return CameraPath(poses=poses, end=state)


def walk(state: WalkerState, keys: frozenset[str], kinematics: Kinematics) -> WalkerState:
    """The walker one frame later, with `keys` held during that frame."""
    velocities = _velocities(state, keys, kinematics)
    forward, strafe, yaw, pitch = velocities
    pitch = _allowed(pitch, state.pitch, kinematics)
    rotation = _rot_y(yaw) @ np.array(state.rotation) @ _rot_x(pitch)
    epsilon = kinematics.heading_epsilon
    step = forward * _level(rotation[:, 2], epsilon) + strafe * _level(rotation[:, 0], epsilon)
    return WalkerState(
        rotation=tuple(tuple(row) for row in rotation.tolist()),
        position=tuple((np.array(state.position) + step).tolist()),
        pitch=state.pitch + pitch,
        velocities=velocities,
        held=keys,
    )


def _velocities(state: WalkerState, keys: frozenset[str], kinematics: Kinematics) -> Velocities:
    target = _targets(keys, kinematics)
    pressed = not keys <= state.held  # opposite keys cancel in the target, yet both are held
    if kinematics.easing is None or pressed:
        return target
    near = kinematics.easing.near
    forward, strafe, yaw, pitch = map(near, state.velocities, target)
    return forward, strafe, yaw, pitch


def _targets(keys: frozenset[str], kinematics: Kinematics) -> Velocities:
    def axis(minus: str, plus: str) -> int:
        return (plus in keys) - (minus in keys)

    speed, turn = kinematics.translation_speed, radians(kinematics.rotation_speed)
    strafe = axis(*kinematics.strafe_keys)
    yaw = turn * axis(*kinematics.yaw_keys) + turn * kinematics.strafe_yaw * strafe
    return speed * axis("s", "w"), speed * strafe, yaw, turn * axis("k", "i")


def _allowed(step: float, pitch: float, kinematics: Kinematics) -> float:
    """As much of a pitch step as the limit allows."""
    limit = radians(kinematics.pitch_limit)
    if abs(pitch + step) <= limit:
        return step
    if kinematics.past_limit == "ignore":
        return 0.0
    return min(max(pitch + step, -limit), limit) - pitch


def _level(axis: Array, epsilon: float) -> Array:
    """A camera axis laid flat: y zeroed, length one."""
    flat = axis * (1.0, 0.0, 1.0)
    return flat / (np.linalg.norm(flat) + epsilon)


def _rot_x(angle: float) -> Array:
    c, s = cos(angle), sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def _rot_y(angle: float) -> Array:
    c, s = cos(angle), sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _pose(state: WalkerState) -> Array:
    pose = np.eye(4)
    pose[:3, :3] = state.rotation
    pose[:3, 3] = state.position
    return pose
