"""Segments joined: every frame once, in order, at its exact time, in its colours."""

import os
import struct
import subprocess
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.errors import OutputError
from sanawm_cli.output import encoder
from sanawm_cli.output.encoder import Segment, encode_segment
from sanawm_cli.output.ffmpeg import bundled_ffmpeg
from sanawm_cli.output.join import concat_list, join_segments, part_path, publish_part
from sanawm_cli.output.verify import facts_of_render, verify_mp4
from sanawm_cli.preset.settings import VideoSettings, X264Preset

FFMPEG = bundled_ffmpeg()
SMALL = VideoSettings(
    height=32,
    width=48,
    fps=24,
    crf=12,
    x264_preset="medium",
    encoder_threads=2,
    default_frames=9,
)


def counting_frames(start: int, stop: int) -> np.ndarray:
    """Frames that show their own number as a shade, on a moving background."""
    frames = np.zeros((stop - start, SMALL.height, SMALL.width, 3), np.uint8)
    columns = np.arange(SMALL.width)
    for frame, number in zip(frames, range(start, stop), strict=True):
        frame[:16] = 3 * number
        frame[16:, :, 0] = (columns * 5 + 7 * number) % 256
    return frames


def encode_all(lengths, folder, *, video=SMALL) -> list[Segment]:
    segments = [Segment(i, n) for i, n in enumerate(lengths)]
    for segment, stop in zip(segments, accumulate(lengths), strict=True):
        frames = counting_frames(stop - segment.frames, stop)
        encode_segment(frames, segment, folder=folder, settings=video, ffmpeg=FFMPEG)
    return segments


def join_all(segments, folder, target: Path, *, fps=24) -> None:
    join_segments(segments, target, folder=folder, fps=fps, ffmpeg=FFMPEG)


def check(target: Path, frames: int, *, fps=24) -> None:
    expected = facts_of_render(width=SMALL.width, height=SMALL.height, fps=fps, frames=frames)
    verify_mp4(target, expected, ffmpeg=FFMPEG)


def decode(path: Path, pixels: str) -> bytes:
    """All pictures at a constant rate, as most readers take them."""
    command = [FFMPEG, "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", pixels, "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout


CUTS = [(25, 24, 24), (1,), (2,), (1, 24, 9), (9, 8, 1), (1, 1, 1, 3), (2, 8, 2)]


@pytest.mark.parametrize(
    ("lengths", "preset"),
    [(cut, "medium") for cut in CUTS] + [((1, 4, 2), preset) for preset in get_args(X264Preset)],
)
def test_any_cut_shows_every_frame_once_at_its_time(tmp_path, lengths, preset):
    segments = encode_all(lengths, tmp_path, video=replace(SMALL, x264_preset=preset))
    target = tmp_path / "out.mp4"
    join_all(segments, tmp_path, target)
    check(target, sum(lengths))
    pictures = np.frombuffer(decode(target, "rgb24"), np.uint8)
    pictures = pictures.reshape(-1, SMALL.height, SMALL.width, 3)
    shades = pictures[:, 4:12].mean(axis=(1, 2, 3)) / 3
    assert shades.round().tolist() == list(range(sum(lengths)))


def test_without_their_decode_lead_short_segments_give_frames_too_many(tmp_path, monkeypatch):
    """The story behind the lead: every packet has its right time, and players count 19 of 17."""
    monkeypatch.setattr(encoder, "_lead_of_short_segment", lambda *_: [])
    join_all(encode_all((8, 8, 1), tmp_path), tmp_path, tmp_path / "out.mp4")
    with pytest.raises(OutputError, match=r"fps 21\.\d+, expected 24"):
        check(tmp_path / "out.mp4", 17)
    assert len(decode(tmp_path / "out.mp4", "gray")) == 19 * SMALL.width * SMALL.height


@pytest.mark.parametrize("fps", [1, 7, 16, 60])
def test_times_are_exact_at_any_rate(tmp_path, fps):
    segments = encode_all((9, 8, 8), tmp_path, video=replace(SMALL, fps=fps))
    join_all(segments, tmp_path, tmp_path / "out.mp4", fps=fps)
    check(tmp_path / "out.mp4", 25, fps=fps)


def test_times_stay_exact_in_a_long_clip(tmp_path):
    """8 frames at 24 fps are 333333⅓ µs: rounded one by one, the 984th frame is a tick early."""
    (first,) = encode_all((8,), tmp_path)
    segments = [Segment(i, 8) for i in range(150)]
    for segment in segments[1:]:
        os.link(tmp_path / first.name, tmp_path / segment.name)
    join_all(segments, tmp_path, tmp_path / "out.mp4")
    check(tmp_path / "out.mp4", 1200)


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 300), min_size=1, max_size=200), fps=st.integers(1, 240))
def test_durations_never_add_up_to_a_drift(lengths, fps):
    text = concat_list([Segment(i, n) for i, n in enumerate(lengths)], fps=fps)
    durations = [Fraction(line.split()[1]) for line in text.splitlines() if "duration" in line]
    ends = accumulate(durations)
    for end, frames in zip(ends, accumulate(lengths), strict=True):
        assert abs(end - Fraction(frames, fps)) <= Fraction(1, 2_000_000)


def test_colours_survive_and_are_tagged(tmp_path):
    """A player that follows the tags shows flat patches within two levels."""
    shades = (0, 64, 128, 191, 255)
    colours = np.array([(r, g, b) for r in shades for g in shades for b in shades], np.uint8)
    frame = colours.reshape(5, 25, 3).repeat(16, axis=0).repeat(16, axis=1)
    video = replace(SMALL, width=400, height=80)
    segment = Segment(0, 3)
    frames = np.repeat(frame[None], 3, axis=0)
    encode_segment(frames, segment, folder=tmp_path, settings=video, ffmpeg=FFMPEG)
    target = tmp_path / "out.mp4"
    join_all([segment], tmp_path, target)

    # The box: primaries, transfer and matrix are 1 (BT.709), and the range is the limited one.
    assert b"colrnclx" + struct.pack(">HHHB", 1, 1, 1, 0) in target.read_bytes()
    planes = np.frombuffer(decode(target, "yuv420p"), np.uint8).reshape(3, -1)
    for plane in planes:
        y, u, v = np.split(plane.astype(float), [400 * 80, 400 * 80 * 5 // 4])
        patches = [_middles(y, 16), _middles(u, 8), _middles(v, 8)]
        assert np.abs(_bt709(*patches) - colours).max() <= 2.0


def _middles(plane: np.ndarray, patch: int) -> np.ndarray:
    """Mean of the inner half of each of the 5 x 25 patches."""
    inner = slice(patch // 4, -(patch // 4))
    patches = plane.reshape(5, patch, 25, patch)
    return patches[:, inner, :, inner].mean(axis=(1, 3)).ravel()


def _bt709(y: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Limited-range BT.709 to RGB levels, by the standard's own coefficients."""
    y, u, v = (y - 16) / 219, (u - 128) / 224, (v - 128) / 224
    red, blue = y + 1.5748 * v, y + 1.8556 * u
    green = (y - 0.2126 * red - 0.0722 * blue) / 0.7152
    return np.clip(np.stack([red, green, blue], axis=1) * 255, 0, 255)


def test_the_same_clip_gives_the_same_bytes_and_tells_nothing_of_the_machine(tmp_path):
    made = []
    for name in ("one", "another"):
        folder = tmp_path / name
        folder.mkdir()
        join_all(encode_all((9, 8), folder), folder, folder / f"{name}.mp4")
        made.append((folder / f"{name}.mp4").read_bytes())
    assert made[0] == made[1]
    for secret in (b"Lavf", b"another", b"000000"):
        assert secret not in made[0]
    header = made[0].index(b"mvhd")
    assert made[0][header + 4 : header + 16] == bytes(12)  # version, created, modified


@pytest.mark.parametrize("name", ["a b", "it's", 'say "hi"', "-v", "é%03d", "new\nline", "a:b?c#d"])
def test_any_folder_and_file_name_will_do(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    folder = Path(name)
    folder.mkdir()
    segments = encode_all((9, 8), folder)
    publish_part(segments, part_path(folder / f"{name}.mp4"), folder=folder, fps=24, ffmpeg=FFMPEG)
    assert sorted(os.listdir(folder)) == sorted(
        [segments[0].name, segments[1].name, f"{name}.mp4.part"]
    )
    check(folder / f"{name}.mp4.part", 17)


def test_the_part_is_playable_after_each_chunk(tmp_path):
    part = part_path(tmp_path / "OUT.mp4")
    segments = encode_all((1, 8, 8), tmp_path)
    for count, frames in ((1, 1), (2, 9), (3, 17)):
        publish_part(segments[:count], part, folder=tmp_path, fps=24, ffmpeg=FFMPEG)
        check(part, frames)


def test_a_failed_join_keeps_the_part_before(tmp_path):
    part = part_path(tmp_path / "OUT.mp4")
    segments = encode_all((9,), tmp_path)
    publish_part(segments, part, folder=tmp_path, fps=24, ffmpeg=FFMPEG)
    before = part.read_bytes()
    with pytest.raises(OutputError, match=r"000001\.mp4"):
        publish_part([*segments, Segment(1, 8)], part, folder=tmp_path, fps=24, ffmpeg=FFMPEG)
    assert part.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["000000.mp4", "OUT.mp4.part"]


def test_nothing_cannot_be_joined(tmp_path):
    with pytest.raises(ValueError, match="no segment"):
        join_all([], tmp_path, tmp_path / "out.mp4")
