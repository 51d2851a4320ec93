"""One chunk becomes one segment."""

import os
import signal
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest

from sanawm_cli.errors import OutputError
from sanawm_cli.output.encoder import Segment, check_picture_size, encode_segment
from sanawm_cli.output.ffmpeg import bundled_ffmpeg
from sanawm_cli.output.files import temporary
from sanawm_cli.output.verify import facts_of_render, verify_mp4
from sanawm_cli.preset.settings import VideoSettings

FFMPEG = bundled_ffmpeg()
SMALL = VideoSettings(
    height=64,
    width=96,
    fps=24,
    crf=18,
    x264_preset="medium",
    encoder_threads=2,
    default_frames=9,
)


def noise(count: int) -> np.ndarray:
    shape = (count, SMALL.height, SMALL.width, 3)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def encode(frames, folder, *, settings=SMALL, ffmpeg=FFMPEG, index=0) -> bytes:
    segment = Segment(index, len(frames))
    encode_segment(frames, segment, folder=folder, settings=settings, ffmpeg=ffmpeg)
    return (folder / segment.name).read_bytes()


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_a_segment_is_a_whole_video_by_itself(tmp_path, count):
    encode(noise(count), tmp_path)
    expected = facts_of_render(width=96, height=64, fps=24, frames=count)
    verify_mp4(tmp_path / "000000.mp4", expected, ffmpeg=FFMPEG)
    assert os.listdir(tmp_path) == ["000000.mp4"]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_frames_give_the_same_bytes(tmp_path, threads):
    (tmp_path / "b").mkdir()
    settings = replace(SMALL, encoder_threads=threads)
    first = encode(noise(9), tmp_path, settings=settings)
    assert encode(noise(9), tmp_path / "b", settings=settings, index=7) == first


@pytest.mark.parametrize(
    "change",
    [{"crf": 30}, {"x264_preset": "veryfast"}, {"fps": 16}, {"encoder_threads": 3}],
    ids=lambda change: next(iter(change)),
)
def test_every_setting_reaches_the_encoder(tmp_path, change):
    assert encode(noise(9), tmp_path, settings=replace(SMALL, **change)) != encode(
        noise(9), tmp_path, index=1
    )


def test_frames_may_lie_in_memory_in_any_order(tmp_path):
    turned = np.asfortranarray(noise(3))
    assert encode(turned, tmp_path) == encode(noise(3), tmp_path, index=1)


@pytest.mark.parametrize(
    ("side", "value", "use"), [("width", 95, 96), ("height", 1, 2), ("height", 0, 2)]
)
def test_odd_sizes_are_refused_not_rescaled(tmp_path, side, value, use):
    settings = replace(SMALL, **{side: value})
    with pytest.raises(OutputError, match=f"^{side} {value} cannot be encoded") as caught:
        check_picture_size(settings)
    assert caught.value.hint == f"use --{side} {use}"
    frames = np.zeros((2, settings.height, settings.width, 3), np.uint8)
    with pytest.raises(OutputError):
        encode(frames, tmp_path, settings=settings)
    assert os.listdir(tmp_path) == []


def test_sizes_that_are_no_multiples_of_16_stay_as_they_are(tmp_path):
    settings = replace(SMALL, width=70, height=34)
    encode(np.zeros((3, 34, 70, 3), np.uint8), tmp_path, settings=settings)
    expected = facts_of_render(width=70, height=34, fps=24, frames=3)
    verify_mp4(tmp_path / "000000.mp4", expected, ffmpeg=FFMPEG)


@pytest.mark.parametrize(
    "frames",
    [noise(3).transpose(0, 2, 1, 3), noise(3)[..., :2], noise(3).astype(np.int16), noise(3)[:0]],
    ids=["turned", "two channels", "int16", "none"],
)
def test_frames_that_are_not_as_announced_are_a_bug(tmp_path, frames):
    with pytest.raises(ValueError, match="expected uint8 frames"):
        encode(frames, tmp_path)


def fake_encoder(folder, ending: str) -> str:
    """A script that writes half a file where ffmpeg would write the segment, then `ending`."""
    path = folder / "fake"
    path.write_text(f'#!/bin/sh\nfor last; do :; done\necho half > "$last"\n{ending}\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("ending", ["exit 1", "kill -9 $$", "echo broken >&2; exit 1", "rm $last"])
def test_a_dead_encoder_leaves_no_file(tmp_path, ending):
    folder = tmp_path / "segments"
    folder.mkdir()
    with pytest.raises(OutputError):
        encode(noise(9), folder, ffmpeg=fake_encoder(tmp_path, ending))
    assert os.listdir(folder) == []


def test_ctrl_c_leaves_no_file(tmp_path):
    folder = tmp_path / "segments"
    folder.mkdir()
    started, never = tmp_path / "started", tmp_path / "never"
    os.mkfifo(started)
    os.mkfifo(never)
    ffmpeg = fake_encoder(tmp_path, f"echo > '{started}'; exec cat '{never}'")

    def interrupt_once_half_is_written():
        started.read_text()
        os.kill(os.getpid(), signal.SIGINT)

    thread = Thread(target=interrupt_once_half_is_written)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        encode(noise(9), folder, ffmpeg=ffmpeg)
    thread.join()
    assert os.listdir(folder) == []


def test_a_failed_segment_keeps_the_one_before(tmp_path):
    before = encode(noise(3), tmp_path)
    with pytest.raises(OutputError):
        encode(noise(3), tmp_path, ffmpeg=fake_encoder(tmp_path, "exit 1"))
    assert (tmp_path / "000000.mp4").read_bytes() == before


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(OutputError, match="missing") as caught:
        encode(noise(3), tmp_path / "missing")
    assert "mkdir -p" in caught.value.hint


def test_a_full_disk_is_named(tmp_path):
    temporary(tmp_path / "000000.mp4").symlink_to("/dev/full")
    with pytest.raises(OutputError) as caught:
        encode(noise(9), tmp_path)
    assert caught.value.hint.endswith(f"free some space in {tmp_path}")
    assert os.listdir(tmp_path) == []
