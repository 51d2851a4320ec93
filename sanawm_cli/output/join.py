"""Segments joined into one MP4 without encoding again."""

from collections.abc import Sequence
from pathlib import Path

from sanawm_cli.output.encoder import Segment
from sanawm_cli.output.ffmpeg import literal, run_checked
from sanawm_cli.output.files import discard, replace_durably, temporary, write_synced


def join_segments(
    segments: Sequence[Segment], target: Path, *, folder: Path, fps: int, ffmpeg: str
) -> None:
    """Write the segments of `folder`, in order, as the MP4 `target`: frame i at exactly i/fps.

    `target` is written in place; callers pass a temporary name. Raises OutputError.
    """
    if not segments:
        raise ValueError("there is no segment to join")
    # The list lies beside the segments and names them by plain numbers: no folder's name, with
    # its quotes and newlines, is ever part of it.
    listing = folder / "join.txt"
    write_synced(listing, concat_list(segments, fps=fps).encode())
    try:
        run_checked(
            ffmpeg,
            _arguments(listing.name, literal(target), fps=fps),
            folder=folder,
            writing=target,
        )
    finally:
        discard(listing)


def concat_list(segments: Sequence[Segment], *, fps: int) -> str:
    """The concat demuxer's list, with the duration of each segment in whole microseconds.

    The demuxer adds these up. Rounded one by one they drift: with 8 frames at 24 fps the times
    are off by a tick after some forty seconds. So the *ends* are rounded, and a duration is the
    distance between two of them.
    """
    lines = ["ffconcat version 1.0"]
    shown, start = 0, 0
    for segment in segments:
        shown += segment.frames
        end = round(shown * 1_000_000 / fps)
        seconds, micros = divmod(end - start, 1_000_000)
        lines += [f"file {segment.name}", f"duration {seconds}.{micros:06d}"]
        start = end
    return "\n".join(lines) + "\n"


def part_path(video: Path) -> Path:
    """The playable beginning of `video` while it is being made: OUT.mp4.part."""
    return video.with_name(f"{video.name}.part")


def publish_part(
    segments: Sequence[Segment], part: Path, *, folder: Path, fps: int, ffmpeg: str
) -> None:
    """Join what there is so far under a temporary name and rename it to `part`.

    Whoever opens `part` sees a whole MP4, before and after. Raises OutputError.
    """
    try:
        join_segments(segments, temporary(part), folder=folder, fps=fps, ffmpeg=ffmpeg)
        replace_durably(temporary(part), part)
    finally:
        discard(temporary(part))


def _arguments(listing: str, target: str, *, fps: int) -> list[str]:
    source = ["-f", "concat", "-i", listing, "-map", "0:v:0", "-c", "copy"]
    muxer = ["-fflags", "+bitexact", "-map_metadata", "-1"]
    return [*source, *muxer, "-video_track_timescale", f"{1000 * fps}", "-f", "mp4", target]
