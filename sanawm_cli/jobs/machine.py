"""What a render runs on: device, precision, threads, memory, versions."""

import ctypes
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from sanawm_cli import __version__
from sanawm_cli.errors import DeviceError, UsageError
from sanawm_cli.jobs.request import MachineRequest

_M_MMAP_THRESHOLD = -3  # glibc's malloc.h

MOST_THREADS = 1024  # OpenMP dies of absurd counts without a word
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Device, precision and compute threads of a render."""

    device: torch.device
    dtype: torch.dtype
    threads: int

    @property
    def dtype_name(self) -> str:
        """The precision without torch's prefix."""
        return str(self.dtype).removeprefix("torch.")


def choose_machine(request: MachineRequest) -> Machine:
    """Resolve "auto". Raises UsageError for an unknown name, DeviceError for an absent device."""
    device = choose_device(request.device)
    if request.dtype != "auto" and request.dtype not in DTYPES:
        raise UsageError(
            f"--dtype {request.dtype!r} is not known", hint=f"use auto, {', '.join(DTYPES)}"
        )
    automatic = torch.float32 if device.type == "cpu" else torch.bfloat16
    dtype = DTYPES.get(request.dtype, automatic)
    if request.threads is not None and not 1 <= request.threads <= MOST_THREADS:
        raise UsageError(
            f"--threads {request.threads} is not in 1 … {MOST_THREADS}",
            hint=f"this process may use {usable_cores()} cores",
        )
    return Machine(device=device, dtype=dtype, threads=request.threads or usable_cores())


def choose_device(name: str) -> torch.device:
    """A device by name. Raises UsageError for an unknown name, DeviceError for an absent one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cpu":
        return torch.device("cpu")
    kind, _, index = name.partition(":")
    if kind != "cuda" or (":" in name and not (index.isascii() and index.isdigit())):
        raise UsageError(f"--device {name!r} is not known", hint="use auto, cpu, cuda or cuda:N")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise DeviceError("no CUDA device on this machine", hint="use --device cpu")
    if index and int(index) >= count:
        raise DeviceError(f"no device {name}: there are {count}", hint=f"use cuda:0 … {count - 1}")
    return torch.device(name)


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_memory_bytes() -> int | None:
    """The most memory this process has had in use at once; None where nobody tells (Windows)."""
    # Not getrusage's count where there is another: on Linux that begins with the peak of whoever
    # started us, be it a gigabyte.
    if (peak := _linux_peak_bytes()) is not None:
        return peak
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _linux_peak_bytes() -> int | None:
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(peak[1]) * 1024 if peak is not None else None


def return_large_blocks() -> None:
    """Make the C library give freed blocks of 1 MiB and more back to the system, from now on.

    Left alone, glibc takes to keeping them in one heap, which frays: the peak then creeps up
    with the number of chunks, though no more is in use. Does nothing where there is no glibc.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 1 << 20)


@contextmanager
def compute_threads(count: int) -> Iterator[None]:
    """Run with this many compute threads: results may differ in the last bit between counts."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn a failed allocation into a DeviceError that says what to try."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # The CPU's allocator raises a plain RuntimeError; its words are all there is to go by.
        plain = isinstance(error, (MemoryError, torch.OutOfMemoryError))
        if not plain and "can't allocate memory" not in str(error):
            raise
        first = (str(error).splitlines() or ["the allocation failed"])[0]
        raise DeviceError(
            f"out of memory: {first}",
            hint="sanawm plan shows what is needed; try --dtype bfloat16 or a smaller picture",
        ) from error


def versions() -> dict[str, str]:
    """Versions of everything that the numbers of a render depend on."""
    return {
        "sanawm": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
    }
