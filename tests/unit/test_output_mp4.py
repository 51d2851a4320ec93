"""The writer: chunks in, a playable part on the way, a verified video and its sidecar out."""

import os
from pathlib import Path

import numpy as np
import pytest

from sanawm_cli.errors import OutputError
from sanawm_cli.output import mp4
from sanawm_cli.output.encoder import Segment
from sanawm_cli.output.ffmpeg import bundled_ffmpeg
from sanawm_cli.output.mp4 import Mp4Writer
from sanawm_cli.output.sidecar import read_sidecar
from sanawm_cli.output.verify import facts_of_render, read_facts
from sanawm_cli.preset.settings import VideoSettings

FFMPEG = bundled_ffmpeg()
VIDEO = VideoSettings(
    height=32,
    width=48,
    fps=16,
    crf=18,
    x264_preset="veryfast",
    encoder_threads=1,
    default_frames=9,
)
LENGTHS = (1, 8, 8)


def chunk(number: int) -> np.ndarray:
    shape = (LENGTHS[number], VIDEO.height, VIDEO.width, 3)
    return np.random.default_rng(number).integers(0, 256, shape, dtype=np.uint8)


def writer(folder: Path, segments=()) -> Mp4Writer:
    (folder / "segments").mkdir(exist_ok=True)
    return Mp4Writer(
        folder / "OUT.mp4",
        folder=folder / "segments",
        settings=VIDEO,
        ffmpeg=FFMPEG,
        segments=segments,
    )


def full_writer(folder: Path) -> Mp4Writer:
    full = writer(folder)
    for number in range(3):
        full.add(chunk(number))
    return full


def outputs(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name != "segments")


def test_from_chunks_to_a_verified_pair(tmp_path):
    making = writer(tmp_path)
    for number, frames in enumerate((1, 9, 17)):
        assert making.add(chunk(number)) == Segment(number, LENGTHS[number])
        assert making.frames == frames
        assert outputs(tmp_path) == ["OUT.mp4.part"]
        assert read_facts(tmp_path / "OUT.mp4.part", ffmpeg=FFMPEG).frames == frames
    facts = making.finish({"prompt": "é"}, overwrite=False)
    assert facts == facts_of_render(width=48, height=32, fps=16, frames=17)
    assert read_facts(tmp_path / "OUT.mp4", ffmpeg=FFMPEG) == facts
    assert read_sidecar(tmp_path / "OUT.json") == {"prompt": "é"}
    assert outputs(tmp_path) == ["OUT.json", "OUT.mp4"]
    assert sorted(os.listdir(tmp_path / "segments")) == ["000000.mp4", "000001.mp4", "000002.mp4"]


def test_a_resumed_render_gives_the_same_bytes(tmp_path):
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    whole.mkdir()
    resumed.mkdir()
    full_writer(whole).finish({}, overwrite=False)
    first = writer(resumed)
    first.add(chunk(0))
    first.add(chunk(1))
    second = writer(resumed, first.segments)
    second.add(chunk(2))
    second.finish({}, overwrite=False)
    assert (resumed / "OUT.mp4").read_bytes() == (whole / "OUT.mp4").read_bytes()


def test_a_finished_clip_can_be_extended(tmp_path):
    making = writer(tmp_path)
    making.add(chunk(0))
    making.finish({"chunks": 1}, overwrite=False)
    making.add(chunk(1))
    assert making.finish({"chunks": 2}, overwrite=True).frames == 9
    assert read_sidecar(tmp_path / "OUT.json") == {"chunks": 2}


def test_an_older_pair_is_replaced_only_on_request(tmp_path):
    making = full_writer(tmp_path)
    (tmp_path / "OUT.mp4").write_text("older video")
    (tmp_path / "OUT.json").write_text("older sidecar")
    with pytest.raises(OutputError, match="exists already"):
        making.finish({"a": 1}, overwrite=False)
    assert (tmp_path / "OUT.mp4").read_text() == "older video"
    making.finish({"a": 1}, overwrite=True)
    assert read_sidecar(tmp_path / "OUT.json") == {"a": 1}
    assert outputs(tmp_path) == ["OUT.json", "OUT.mp4"]


@pytest.mark.parametrize("step", ["write_synced", "join_segments", "verify_mp4", "publish"])
@pytest.mark.parametrize("error", [OutputError("no"), KeyboardInterrupt()])
def test_a_failed_finish_leaves_the_older_pair_and_the_part(tmp_path, monkeypatch, step, error):
    making = writer(tmp_path)
    making.add(chunk(0))
    (tmp_path / "OUT.mp4").write_text("older video")
    (tmp_path / "OUT.json").write_text("older sidecar")

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(mp4, step, fail)
    with pytest.raises(type(error)):
        making.finish({}, overwrite=True)
    assert outputs(tmp_path) == ["OUT.json", "OUT.mp4", "OUT.mp4.part"]
    assert (tmp_path / "OUT.mp4").read_text() == "older video"
    assert (tmp_path / "OUT.json").read_text() == "older sidecar"


def test_a_damaged_segment_never_becomes_a_result(tmp_path):
    making = full_writer(tmp_path)
    path = tmp_path / "segments" / "000001.mp4"
    data = bytearray(path.read_bytes())
    data[1500:9500] = bytes(8000)
    path.write_bytes(data)
    with pytest.raises(OutputError):
        making.finish({}, overwrite=False)
    assert outputs(tmp_path) == ["OUT.mp4.part"]


def test_a_sidecar_with_nan_is_refused_before_anything_is_named(tmp_path):
    making = writer(tmp_path)
    making.add(chunk(0))
    with pytest.raises(ValueError, match="JSON"):
        making.finish({"speed": float("nan")}, overwrite=False)
    assert outputs(tmp_path) == ["OUT.mp4.part"]


def test_a_refused_chunk_is_not_counted(tmp_path):
    making = writer(tmp_path)
    with pytest.raises(ValueError, match="expected uint8 frames"):
        making.add(chunk(0)[:, ::2])
    assert making.segments == ()
    making.add(chunk(0))
    assert making.segments == (Segment(0, 1),)


def test_odd_sizes_are_refused_at_once(tmp_path):
    odd = VideoSettings(
        height=33,
        width=48,
        fps=16,
        crf=18,
        x264_preset="veryfast",
        encoder_threads=1,
        default_frames=9,
    )
    with pytest.raises(OutputError, match="height 33"):
        Mp4Writer(tmp_path / "OUT.mp4", folder=tmp_path, settings=odd, ffmpeg=FFMPEG)
