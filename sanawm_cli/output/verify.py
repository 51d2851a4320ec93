"""What an MP4 really holds, and whether that is what was meant.

There is no ffprobe in the package, and counting by the container's header accepts truncated
files. So: copy all packets to `framecrc`, which lists their times, and decode them all. That
finds what is missing, misplaced or torn; H.264 has no checksums, so a few changed bytes inside a
picture may decode without complaint.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path

from sanawm_cli.errors import InputError, OutputError
from sanawm_cli.output.ffmpeg import Finished, literal, run_ffmpeg

_QUIET = ("-hide_banner", "-nostdin", "-v", "error")
_TIME_BASE = re.compile(r"^#tb 0: (\d+)/(\d+)$", re.MULTILINE)
_STREAM = re.compile(
    r"^  Stream #0:\d+[^:]*: Video: (?P<codec>\w+)(?: \([^)]*\))*, "
    r"(?P<pixels>\w+)(?:\((?P<colour>[^)]*)\))?, (?P<width>\d+)x(?P<height>\d+).*?"
    r", (?P<fps>[\d.]+)(?P<kilo>k?) fps",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFacts:
    """A video in numbers. `colour` is ffmpeg's "range, matrix[/primaries/transfer]"."""

    width: int
    height: int
    fps: float
    frames: int
    codec: str
    pixel_format: str
    colour: str


def facts_of_render(*, width: int, height: int, fps: int, frames: int) -> VideoFacts:
    """What an MP4 made by this package has to be."""
    return VideoFacts(
        width=width,
        height=height,
        fps=fps,
        frames=frames,
        codec="h264",
        pixel_format="yuv420p",
        colour="tv, bt709",
    )


def read_facts(video: Path, *, ffmpeg: str) -> VideoFacts:
    """Look into an MP4 without decoding it. Raises InputError if it is not a whole one."""
    return _facts(video, frames=len(_packet_times(video, ffmpeg=ffmpeg)), ffmpeg=ffmpeg)


def verify_mp4(video: Path, expected: VideoFacts, *, ffmpeg: str) -> None:
    """Check `video` against `expected`; frame i is shown at i/fps, and every frame decodes.

    Raises OutputError that names all facts that differ, or the first thing that is broken.
    """
    try:
        times = _packet_times(video, ffmpeg=ffmpeg)
        found = _facts(video, frames=len(times), ffmpeg=ffmpeg)
    except InputError as error:
        raise OutputError(f"verification failed: {error.message}", hint=error.hint) from error
    if found != expected:
        raise _mismatch(video, "; ".join(_differences(found, expected)))
    for i, time in enumerate(times):
        if time != (due := Fraction(i) / Fraction(expected.fps)):
            raise _mismatch(video, f"frame {i} is shown at {time} s, expected {due} s")
    _decode_all(video, expected.frames, ffmpeg=ffmpeg)


def _packet_times(video: Path, *, ffmpeg: str) -> Sequence[Fraction]:
    """When each packet is shown, in seconds, in the order of showing."""
    copied = _read(video, ("-map", "0:v:0", "-c", "copy", "-f", "framecrc", "-"), ffmpeg=ffmpeg)
    base = _TIME_BASE.search(copied.stdout)
    if copied.failure is not None or base is None:
        raise InputError(
            f"{video} is not a whole MP4: {copied.failure or 'it has no packets'}",
            hint="name an MP4 that plays to its end",
        )
    tick = Fraction(int(base[1]), int(base[2]))
    return sorted(tick * int(line.split(",")[2]) for line in _entries(copied))


def _facts(video: Path, *, frames: int, ffmpeg: str) -> VideoFacts:
    # Without an output ffmpeg describes its input and ends with exit code 1.
    described = run_ffmpeg(
        ffmpeg, ("-hide_banner", "-nostdin", *_input(video)), folder=video.absolute().parent
    )
    stream = _STREAM.search(described.stderr)
    if stream is None:
        raise InputError(f"{video} has no video stream that ffmpeg can describe")
    colour = (stream["colour"] or "").split(", ")
    return VideoFacts(
        width=int(stream["width"]),
        height=int(stream["height"]),
        fps=float(stream["fps"]) * (1000 if stream["kilo"] else 1),
        frames=frames,
        codec=stream["codec"],
        pixel_format=stream["pixels"],
        colour=", ".join(tag for tag in colour if tag != "progressive"),
    )


def _decode_all(video: Path, frames: int, *, ffmpeg: str) -> None:
    """Decode at a constant rate, as most readers do: uneven times would repeat or drop frames."""
    output = ("-map", "0:v:0", "-fps_mode", "cfr", "-f", "framecrc", "-")
    decoded = _read(video, output, ffmpeg=ffmpeg)
    if decoded.failure is not None:
        raise _mismatch(video, f"it does not decode cleanly: {decoded.failure}")
    if (count := len(_entries(decoded))) != frames:
        raise _mismatch(video, f"it decodes to {count} frames, expected {frames}")


def _read(video: Path, output: Sequence[str], *, ffmpeg: str) -> Finished:
    if not video.is_file():
        raise InputError(f"there is no video {video}", hint="name an MP4 that exists")
    arguments = (*_QUIET, "-copyts", *_input(video), *output)
    return run_ffmpeg(ffmpeg, arguments, folder=video.absolute().parent)


def _input(video: Path) -> tuple[str, ...]:
    return ("-f", "mp4", "-i", literal(video))


def _entries(finished: Finished) -> list[str]:
    return [line for line in finished.stdout.splitlines() if line and not line.startswith("#")]


def _differences(found: VideoFacts, expected: VideoFacts) -> list[str]:
    pairs = ((f.name, getattr(found, f.name), getattr(expected, f.name)) for f in fields(found))
    return [f"{name} {a!r}, expected {b!r}" for name, a, b in pairs if a != b]


def _mismatch(video: Path, what: str) -> OutputError:
    return OutputError(
        f"verification of {video} failed: {what}",
        hint="render again; if it repeats, check the disk that it is written to",
    )
