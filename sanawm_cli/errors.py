"""What can go wrong for the person at the keyboard, and the exit code it ends with.

The tree below is the whole contract. An exception outside of it is a bug and keeps its traceback.

    SanaWMError
      UsageError     2   options that contradict each other
      PresetError    3   unknown preset, unknown key, value out of range
      InputError     4   image, prompt, camera
      PlanError      5   frame counts and chunk plans
        ChunkPlanError
      WeightsError   6   model folder, tensors, hashes
      DeviceError    7   device, memory, numbers that are not finite
        NumericsError
      SessionError   8   a rollout used out of order or with other settings
      OutputError    9   folder, disk, encoder, verification
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Process exit codes; part of the public contract (docs/exit-codes.md)."""

    OK = 0
    BUG = 1
    USAGE = 2
    PRESET = 3
    INPUT = 4
    PLAN = 5
    WEIGHTS = 6
    DEVICE = 7
    SESSION = 8
    OUTPUT = 9
    MISMATCH = 10
    JOBS_FAILED = 11
    INTERRUPTED = 130
    TERMINATED = 143


class SanaWMError(Exception):
    """Something the user can fix: one line that names the value, and a hint that can be typed."""

    exit_code: ExitCode = ExitCode.BUG

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SanaWMError):
    """Options that are missing or contradict each other."""

    exit_code = ExitCode.USAGE


class PresetError(SanaWMError):
    """A preset that does not exist, does not parse, or holds an impossible setting."""

    exit_code = ExitCode.PRESET


class InputError(SanaWMError):
    """An image, prompt, action string, trajectory or intrinsics that cannot be used."""

    exit_code = ExitCode.INPUT


class PlanError(SanaWMError):
    """A frame count that cannot be rendered."""

    exit_code = ExitCode.PLAN


class ChunkPlanError(PlanError):
    """A chunk plan that does not cover the clip."""


class WeightsError(SanaWMError):
    """A model folder that is missing, damaged, or made for another architecture."""

    exit_code = ExitCode.WEIGHTS


class DeviceError(SanaWMError):
    """A device that is absent or too small."""

    exit_code = ExitCode.DEVICE


class NumericsError(DeviceError):
    """NaN or Inf appeared in latents or frames."""


class SessionError(SanaWMError):
    """A rollout session used out of order, or with settings other than those it began with."""

    exit_code = ExitCode.SESSION


class OutputError(SanaWMError):
    """The video could not be written, encoded or verified."""

    exit_code = ExitCode.OUTPUT
