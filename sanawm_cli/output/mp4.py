"""A clip on its way to disk: frames come in chunk by chunk, a verified MP4 comes out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.output.encoder import Segment, check_picture_size, encode_segment
from sanawm_cli.output.ffmpeg import signals_held
from sanawm_cli.output.files import discard, temporary, write_synced
from sanawm_cli.output.join import join_segments, part_path, publish_part
from sanawm_cli.output.publish import check_target, publish
from sanawm_cli.output.sidecar import sidecar_bytes, sidecar_path
from sanawm_cli.output.verify import VideoFacts, facts_of_render, verify_mp4
from sanawm_cli.preset.settings import VideoSettings


class Mp4Writer:
    """Segments in `folder`, the playable beginning at OUT.mp4.part, at the end OUT.mp4 + OUT.json.

    `segments` are those that `folder` holds from an earlier run. Neither the folder nor the
    segments are ever removed here: they are what a resumed or extended render goes on from.
    """

    def __init__(
        self,
        video: Path,
        *,
        folder: Path,
        settings: VideoSettings,
        ffmpeg: str,
        segments: Sequence[Segment] = (),
    ) -> None:
        check_picture_size(settings)
        self._video = video
        self._folder = folder
        self._settings = settings
        self._ffmpeg = ffmpeg
        self._segments = tuple(segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The finished segments, in order."""
        return self._segments

    @property
    def frames(self) -> int:
        """Frames in finished segments."""
        return sum(segment.frames for segment in self._segments)

    def add(self, frames: NDArray[np.uint8]) -> Segment:
        """Encode one chunk's frames (t, h, w, 3), then renew OUT.mp4.part. Raises OutputError."""
        segment = Segment(len(self._segments), len(frames))
        encode_segment(
            frames, segment, folder=self._folder, settings=self._settings, ffmpeg=self._ffmpeg
        )
        self._segments = (*self._segments, segment)
        publish_part(
            self._segments,
            part_path(self._video),
            folder=self._folder,
            fps=self._settings.fps,
            ffmpeg=self._ffmpeg,
        )
        return segment

    def finish(self, content: Mapping[str, Any], *, overwrite: bool) -> VideoFacts:
        """Join, verify, and give video and sidecar their names; OUT.mp4.part goes.

        `content` is the sidecar's, without the schema version. Raises OutputError; then an older
        video and sidecar are as they were, and OUT.mp4.part stays.
        """
        new_video = temporary(self._video)
        new_sidecar = temporary(sidecar_path(self._video))
        facts = facts_of_render(
            width=self._settings.width,
            height=self._settings.height,
            fps=self._settings.fps,
            frames=self.frames,
        )
        check_target(self._video, overwrite=overwrite)
        try:
            write_synced(new_sidecar, sidecar_bytes(content))
            join_segments(
                self._segments,
                new_video,
                folder=self._folder,
                fps=self._settings.fps,
                ffmpeg=self._ffmpeg,
            )
            verify_mp4(new_video, facts, ffmpeg=self._ffmpeg)
            with signals_held():  # the renames belong together
                publish(new_video, new_sidecar, self._video)
        finally:
            discard(new_video)
            discard(new_sidecar)
        discard(part_path(self._video))
        return facts
