"""Pictures become uint8 once, by one rule."""

import hashlib

import numpy as np
import pytest
import torch

from sanawm_cli.errors import NumericsError
from sanawm_cli.output.frames import frame_hash, to_frames


def test_every_level_comes_back():
    levels = torch.arange(256, dtype=torch.float32)
    pictures = (levels / 127.5 - 1.0).reshape(1, 1, 1, 16, 16).expand(1, 3, 2, 16, 16)
    frames = to_frames(pictures, where="chunk 0")
    assert frames.dtype == np.uint8
    assert frames.shape == (2, 16, 16, 3)
    for channel in range(3):
        assert frames[1, :, :, channel].ravel().tolist() == list(range(256))


def test_axes_end_up_as_frame_row_column_colour():
    pictures = torch.full((1, 3, 2, 3, 4), -1.0)
    pictures[0, 2, 1, 0, 3] = 1.0  # blue, second frame, first row, last column
    frames = to_frames(pictures, where="chunk 0")
    assert np.argwhere(frames).tolist() == [[1, 0, 3, 2]]


def test_values_outside_are_clamped_and_halves_go_to_even():
    row = torch.tensor([-7.0, -1.0, 0.0, 1.0, 7.0, 1.0 / 255.0])  # 0.0 is level 127.5
    frames = to_frames(row.expand(1, 3, 1, 1, 6), where="chunk 0")
    assert frames[0, 0, :, 0].tolist() == [0, 0, 128, 255, 255, 128]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_rule_is_computed_in_float32(dtype):
    generator = torch.Generator().manual_seed(0)
    pictures = (torch.rand(1, 3, 2, 8, 8, generator=generator) * 2 - 1).to(dtype)
    want = to_frames(pictures.float(), where="chunk 0")
    assert np.array_equal(to_frames(pictures, where="chunk 0"), want)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_are_named(value):
    pictures = torch.zeros(1, 3, 5, 4, 4)
    pictures[0, 1, 3, 2, 2] = value
    pictures[0, 0, 4, 0, 0] = value
    with pytest.raises(NumericsError, match=r"^chunk 3: 2 of 240 .* the first in frame 3 of 5$"):
        to_frames(pictures, where="chunk 3")


@pytest.mark.parametrize("shape", [(3, 2, 4, 4), (1, 4, 2, 4, 4), (2, 3, 2, 4, 4)])
def test_other_shapes_are_a_bug(shape):
    with pytest.raises(ValueError, match="expected pictures"):
        to_frames(torch.zeros(shape), where="chunk 0")


def test_hash_is_that_of_the_raw_bytes():
    frames = np.arange(2 * 2 * 2 * 3, dtype=np.uint8).reshape(2, 2, 2, 3)
    assert frame_hash(frames) == hashlib.sha256(bytes(range(24))).hexdigest()
    turned = np.asfortranarray(frames)
    assert frame_hash(turned) == frame_hash(frames)
    assert frame_hash(frames[::-1]) != frame_hash(frames)
