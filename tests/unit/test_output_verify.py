"""What verification accepts, and everything it refuses."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sanawm_cli.errors import InputError, OutputError
from sanawm_cli.output.encoder import Segment, encode_segment
from sanawm_cli.output.ffmpeg import bundled_ffmpeg
from sanawm_cli.output.join import join_segments
from sanawm_cli.output.verify import VideoFacts, facts_of_render, read_facts, verify_mp4
from sanawm_cli.preset.settings import VideoSettings

FFMPEG = bundled_ffmpeg()
VIDEO = VideoSettings(
    height=64,
    width=96,
    fps=24,
    crf=18,
    x264_preset="veryfast",
    encoder_threads=1,
    default_frames=9,
)
FACTS = facts_of_render(width=96, height=64, fps=24, frames=17)


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    """17 frames of noise in two segments: bytes everywhere matter."""
    folder = tmp_path_factory.mktemp("good")
    noise = np.random.default_rng(1).integers(0, 256, (17, 64, 96, 3), dtype=np.uint8)
    segments = [Segment(0, 9), Segment(1, 8)]
    for segment, frames in zip(segments, (noise[:9], noise[9:]), strict=True):
        encode_segment(frames, segment, folder=folder, settings=VIDEO, ffmpeg=FFMPEG)
    join_segments(segments, folder / "OUT.mp4", folder=folder, fps=24, ffmpeg=FFMPEG)
    return folder / "OUT.mp4"


def remake(source: Path, target: Path, *options: str) -> Path:
    command = [FFMPEG, "-v", "error", "-i", str(source), *options, str(target)]
    subprocess.run(command, check=True)
    return target


def test_a_good_file_passes_and_is_described(good):
    verify_mp4(good, FACTS, ffmpeg=FFMPEG)
    assert read_facts(good, ffmpeg=FFMPEG) == FACTS
    assert FACTS == VideoFacts(
        width=96,
        height=64,
        fps=24,
        frames=17,
        codec="h264",
        pixel_format="yuv420p",
        colour="tv, bt709",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 98}, "width 96, expected 98"),
        ({"height": 66}, "height 64, expected 66"),
        ({"frames": 18}, "frames 17, expected 18"),
        ({"fps": 25}, "fps 24.0, expected 25"),
        ({"pixel_format": "yuv444p"}, "pixel_format 'yuv420p', expected 'yuv444p'"),
        ({"codec": "hevc"}, "codec 'h264', expected 'hevc'"),
        ({"colour": "tv"}, "colour 'tv, bt709', expected 'tv'"),
        ({"width": 98, "frames": 16}, "width 96, expected 98; frames 17, expected 16"),
    ],
)
def test_every_fact_that_differs_is_named(good, change, message):
    with pytest.raises(OutputError) as caught:
        verify_mp4(good, replace(FACTS, **change), ffmpeg=FFMPEG)
    assert caught.value.message == f"verification of {good} failed: {message}"


@pytest.mark.parametrize("keep", [0.0, 0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("front", [False, True], ids=["index last", "index first"])
def test_a_truncated_file_is_refused(good, tmp_path, keep, front):
    source = good
    if front:
        options = ("-c", "copy", "-movflags", "+faststart", "-video_track_timescale", "24000")
        source = remake(good, tmp_path / "front.mp4", *options)
        verify_mp4(source, FACTS, ffmpeg=FFMPEG)
    data = source.read_bytes()
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(OutputError, match=r"^verification (of .*cut\.mp4 )?failed: "):
        verify_mp4(cut, FACTS, ffmpeg=FFMPEG)


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_a_file_with_a_hole_is_refused(good, tmp_path, place):
    """The size is right and the index whole, as after a lost write."""
    data = bytearray(good.read_bytes())
    start, hole = int(len(data) * place), len(data) // 8
    data[start : start + hole] = bytes(hole)
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(data)
    with pytest.raises(OutputError, match=r"is not a whole MP4: .*NAL"):
        verify_mp4(bad, FACTS, ffmpeg=FFMPEG)


@pytest.mark.parametrize(
    ("while_decoding", "message"),
    [
        ("echo 'error while decoding MB 3 1' >&2", "not decode cleanly: .*decoding MB 3 1"),
        ("echo '0, 17, 17, 1, 9216, 0x0'", "it decodes to 18 frames, expected 17"),
        ("exit 1", "not decode cleanly: exit code 1: it said nothing"),
    ],
)
def test_the_full_decode_has_to_be_silent_and_complete(good, tmp_path, while_decoding, message):
    """With ffmpeg wrapped in a script, since what a decoder notices differs between versions."""
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(
        f"""#!/bin/sh\ncase "$*" in *fps_mode*) {while_decoding};; esac\nexec '{FFMPEG}' "$@"\n"""
    )
    wrapper.chmod(0o755)
    with pytest.raises(OutputError, match=message):
        verify_mp4(good, FACTS, ffmpeg=str(wrapper))


def test_a_frame_at_the_wrong_time_is_named(good, tmp_path):
    late = remake(good, tmp_path / "late.mp4", "-c", "copy", "-bsf:v", r"setts=pts=PTS+5*eq(N\,16)")
    with pytest.raises(OutputError, match=r"frame \d+ is shown at \d+/\d+ s, expected \d+/\d+ s"):
        verify_mp4(late, FACTS, ffmpeg=FFMPEG)


def test_a_clip_that_starts_late_is_refused(good, tmp_path):
    late = remake(good, tmp_path / "late.mp4", "-c", "copy", "-output_ts_offset", "0.5")
    with pytest.raises(OutputError, match=r"fps|frame 0 is shown at 1/2 s"):
        verify_mp4(late, FACTS, ffmpeg=FFMPEG)


def test_missing_tags_are_refused(good, tmp_path):
    """Plain output options: the range and matrix arrive, primaries and transfer stay unknown."""
    options = ("-pix_fmt", "yuv420p", "-vf", "setparams=color_primaries=unknown:color_trc=unknown")
    untagged = remake(good, tmp_path / "untagged.mp4", *options, "-c:v", "libx264")
    with pytest.raises(OutputError, match=r"colour 'tv, bt709/unknown/unknown', expected 'tv, bt"):
        verify_mp4(untagged, FACTS, ffmpeg=FFMPEG)


@pytest.mark.parametrize("data", [b"", b"hello", b"\x89PNG\r\n\x1a\n" + bytes(64)])
def test_other_files_are_no_input(tmp_path, data):
    path = tmp_path / "it's -x.mp4"
    path.write_bytes(data)
    with pytest.raises(InputError, match="is not a whole MP4: "):
        read_facts(path, ffmpeg=FFMPEG)
    with pytest.raises(OutputError, match="verification failed: "):
        verify_mp4(path, FACTS, ffmpeg=FFMPEG)


def test_missing_files_and_folders_are_no_input(tmp_path):
    for path in (tmp_path / "no.mp4", tmp_path, tmp_path / "no" / "no.mp4"):
        with pytest.raises(InputError, match="there is no video"):
            read_facts(path, ffmpeg=FFMPEG)


def test_foreign_videos_can_be_described(tmp_path):
    path = tmp_path / "foreign.mp4"
    source = ("-f", "lavfi", "-i", "testsrc=size=64x48:rate=30000/1001:duration=0.2")
    sound = ("-f", "lavfi", "-i", "sine=duration=0.2")
    command = [FFMPEG, "-v", "error", *sound, *source, "-c:v", "mpeg4", str(path)]
    subprocess.run(command, check=True)
    facts = read_facts(path, ffmpeg=FFMPEG)
    assert (facts.width, facts.height, facts.frames) == (64, 48, 6)
    assert (facts.codec, facts.fps, facts.pixel_format) == ("mpeg4", 29.97, "yuv420p")
