"""One chunk of frames to one segment: a small MP4 that starts with a key frame of its own."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.errors import OutputError
from sanawm_cli.output.ffmpeg import run_checked
from sanawm_cli.output.files import discard, replace_durably, temporary
from sanawm_cli.preset.settings import VideoSettings

# `setparams` is what makes all four tags and the colr box appear: plain output options leave
# primaries and transfer unknown, and a player that guesses the matrix is up to 39 levels off.
# `accurate_rnd` rounds chroma to the nearest level, as eight bits allow at best.
_COLOUR = (
    "scale=flags=bicubic+accurate_rnd:out_color_matrix=bt709:out_range=tv,format=yuv420p,"
    "setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709:range=tv"
)

# Frames by which x264 decodes ahead of showing, in every preset with B-frames.
_DECODE_LEAD = 2


@dataclass(frozen=True, slots=True)
class Segment:
    """The frames of one chunk, encoded. Its file name follows from its place in the clip."""

    index: int
    frames: int

    @property
    def name(self) -> str:
        """File name inside the segment folder."""
        return f"{self.index:06d}.mp4"


def check_picture_size(settings: VideoSettings) -> None:
    """Raise OutputError for a size that the encoder would have to change."""
    for name, value in (("width", settings.width), ("height", settings.height)):
        if value < 2 or value % 2:
            above = max(value + value % 2, 2)
            raise OutputError(
                f"{name} {value} cannot be encoded: both sides must be even",
                hint=f"use --{name} {above}",
            )


def encode_segment(
    frames: NDArray[np.uint8],
    segment: Segment,
    *,
    folder: Path,
    settings: VideoSettings,
    ffmpeg: str,
) -> None:
    """Encode frames (t, h, w, 3) as `segment` in `folder`; the file appears when it is complete.

    Raises OutputError when the encoder dies, ValueError for frames that are not as announced.
    """
    check_picture_size(settings)
    expected = (segment.frames, settings.height, settings.width, 3)
    if frames.dtype != np.uint8 or frames.shape != expected or segment.frames < 1:
        raise ValueError(f"expected uint8 frames {expected}, got {frames.dtype} {frames.shape}")
    target = folder / segment.name
    try:
        run_checked(
            ffmpeg,
            _arguments(settings, frames=segment.frames, name=temporary(target).name),
            folder=folder,
            writing=target,
            stdin=np.ascontiguousarray(frames).data.cast("B"),
        )
        replace_durably(temporary(target), target)
    finally:
        discard(temporary(target))


def _arguments(settings: VideoSettings, *, frames: int, name: str) -> list[str]:
    source = ["-f", "rawvideo", "-pixel_format", "rgb24"]
    source += ["-video_size", f"{settings.width}x{settings.height}"]
    source += ["-framerate", f"{settings.fps}", "-i", "pipe:0"]
    codec = ["-vf", _COLOUR, "-c:v", "libx264", "-preset", settings.x264_preset]
    codec += ["-crf", f"{settings.crf}", "-threads", f"{settings.encoder_threads}"]
    codec += ["-flags", "+cgop+bitexact", *_lead_of_short_segment(settings, frames)]
    # No tool version, no time: the same frames give the same bytes.
    muxer = ["-fflags", "+bitexact", "-map_metadata", "-1"]
    muxer += ["-video_track_timescale", f"{1000 * settings.fps}", "-f", "mp4", name]
    return source + codec + muxer


def _lead_of_short_segment(settings: VideoSettings, frames: int) -> list[str]:
    """Give a segment of one or two frames the decode lead of its longer neighbours.

    x264 leaves it out when there is nothing to reorder; the joined stream's decode times then
    stumble at the seam, and a reader at a constant rate gets frames too many.
    """
    if frames > _DECODE_LEAD or settings.x264_preset == "ultrafast":  # ultrafast has no B-frames
        return []
    return ["-bsf:v", f"setts=dts=DTS-{_DECODE_LEAD}"]
