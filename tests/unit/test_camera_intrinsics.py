"""Intrinsics: the option, the order of trust, plausibility, and how they follow the picture."""

from math import atan, degrees, tan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.camera.intrinsics import (
    CoverCrop,
    Intrinsics,
    check_field_of_view,
    choose_intrinsics,
    from_exif,
    guessed,
    to_latent_units,
)
from sanawm_cli.camera.intrinsics_flag import parse_intrinsics
from sanawm_cli.errors import InputError

SIZE = (1280, 704)
ROW = [900.0, 910.0, 640.0, 352.0]
MATRIX = [[900.0, 0.0, 640.0], [0.0, 910.0, 352.0], [0.0, 0.0, 1.0]]


def refuse(text, *words):
    with pytest.raises(InputError) as caught:
        parse_intrinsics(str(text), SIZE)
    for word in words:
        assert word in caught.value.message
    return caught.value


# --- the option ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["900,910,640,352", " 900, 910 ,640,3.52e2"])
def test_four_numbers(text):
    np.testing.assert_array_equal(parse_intrinsics(text, SIZE), [ROW])


@pytest.mark.parametrize("text", ["fov=90", "FOV = 90.0"])
def test_field_of_view(text):
    rows = parse_intrinsics(text, SIZE)
    np.testing.assert_allclose(rows, [[640, 640, 640, 352]])  # tan 45° = 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("900,910,640", "3 numbers, expected 4"),
        ("900,910,640,352,0", "5 numbers"),
        ("900,x,640,352", "'x'"),
        ("900,,640,352", "''"),
        ("900,nan,640,352", "nan"),
        ("900,1e400,640,352", "inf"),
        ("900,910,1e300,352", "1e+300"),
        ("0,910,640,352", "focal length 0"),
        ("900,-5,640,352", "focal length -5"),
        ("fov=wide", "'wide'"),
        ("fov=", "''"),
        ("fov=nan", "nan"),
        ("fov=24.9", "24.9°"),
        ("fov=180", "180°"),
        ("70", "no such file"),
        ("", "cannot be read"),
        ("missing.npy", "no such file"),
        ("a\0b", "not a file name"),
    ],
)
def test_bad_option(text, words):
    assert refuse(text, words) is not None


def test_a_missing_file_lists_the_forms():
    assert "fov=70" in refuse("cam.txt").hint


@pytest.mark.parametrize(
    ("array", "rows"),
    [
        (ROW, [ROW]),
        (MATRIX, [ROW]),
        ([ROW], [ROW]),
        ([ROW] * 3, [ROW] * 3),
        ([ROW] * 5, [ROW] * 5),
        ([MATRIX], [ROW]),
        ([MATRIX] * 4, [ROW] * 4),
    ],
)
def test_npy_files(tmp_path, array, rows):
    np.save(tmp_path / "k.npy", np.array(array, np.float32))
    found = parse_intrinsics(str(tmp_path / "k.npy"), SIZE)
    np.testing.assert_array_equal(found, rows)
    assert found.dtype == np.float64


@pytest.mark.parametrize("shape", [(4, 4), (5,), (), (3,), (2, 3), (5, 3), (2, 4, 4), (0, 4)])
def test_other_shapes(tmp_path, shape):
    np.save(tmp_path / "k.npy", np.ones(shape))
    refuse(tmp_path / "k.npy", "k.npy", str(shape))


def test_bad_files(tmp_path):
    path = tmp_path / "k.npy"
    skewed = np.array(MATRIX)
    skewed[0, 1] = 2
    np.save(path, skewed)
    assert "skew" in refuse(path, "[[fx, 0, cx]").hint
    np.save(path, -np.array(ROW))
    refuse(path, "focal length -900")
    path.write_bytes(b"\x93NUMPY\x01\x00")
    refuse(path, "damaged")
    np.savez(tmp_path / "k.npz", k=ROW)
    refuse(tmp_path / "k.npz", ".npz")
    refuse(tmp_path, "cannot be read")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("900 910 640 352\n", [ROW]),
        ("# fx fy cx cy\n900, 910, 640, 352", [ROW]),
        ("900 910 640 352\n\n901 911 641 353 # second", [ROW, [901, 911, 641, 353]]),
        ("900 0 640\n0 910 352\n0 0 1", [ROW]),
        ("900 0 640 0 910 352 0 0 1\n" * 2, [ROW, ROW]),
    ],
)
def test_text_files(tmp_path, text, rows):
    (tmp_path / "k,1.txt").write_text(text)  # a comma in the name does not make it numbers
    found = parse_intrinsics(str(tmp_path / "k,1.txt"), SIZE)
    np.testing.assert_array_equal(found, rows)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no numbers"),
        (b"# only words", "no numbers"),
        (b"900 910\n640", "different lengths"),
        (b"900 910 640 wide", "'wide'"),
        (b"\xff\xfe\x00", "neither"),
        (b"900 0 640 0\n0 910 352 0\n0 0 1 0\n0 0 0 1", "(4, 4)"),
        (b"900\n910\n640\n352", "(4, 1)"),
    ],
)
def test_bad_text_files(tmp_path, content, words):
    (tmp_path / "k.txt").write_bytes(content)
    refuse(tmp_path / "k.txt", "k.txt", words)


@given(st.one_of(st.text(), st.text("fov=,.-+0123456789 einf", max_size=25)))
@settings(deadline=None)
def test_garbage_raises_only_input_errors(text):
    try:
        rows = parse_intrinsics(text, SIZE)
    except InputError:
        return
    assert rows.shape == (1, 4)
    assert np.isfinite(rows).all()
    assert (rows[:, :2] > 0).all()


# --- where they come from -----------------------------------------------------------------------


def test_order_of_trust():
    flag, file = np.array([ROW]), np.array([ROW]) + 1
    choose = choose_intrinsics
    found = choose(flag=flag, trajectory=file, focal_35mm=28, size=SIZE)
    assert (found.source, found.values[0, 0]) == ("flag", 900)
    found = choose(flag=None, trajectory=file, focal_35mm=28, size=SIZE)
    assert (found.source, found.values[0, 0]) == ("file", 901)
    found = choose(flag=None, trajectory=None, focal_35mm=28, size=SIZE)
    assert found.source == "exif"
    for unknown in (None, 0):
        found = choose(flag=None, trajectory=None, focal_35mm=unknown, size=SIZE)
        assert found.source == "guess"


@pytest.mark.parametrize("size", [(1280, 704), (704, 1280)])
def test_guess(size):
    np.testing.assert_allclose(guessed(size).values, [[1024, 1024, size[0] / 2, size[1] / 2]])


def test_exif():
    # A 3:2 picture is the shape of the film: 36 mm across, so 24 mm is 2/3 of the width.
    np.testing.assert_allclose(from_exif(24, (3000, 2000)).values, [[2000, 2000, 1500, 1000]])
    # Turned on its side, the same lens has the same focal length.
    np.testing.assert_allclose(from_exif(24, (2000, 3000)).values, [[2000, 2000, 1000, 1500]])
    for bad in (-1, 0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="EXIF"):
            from_exif(bad, SIZE)


@pytest.mark.parametrize("angle", [25.0, 26.0, 70.0, 119.0, 120.0])
def test_plausible_fields_of_view(angle):
    rows = parse_intrinsics(f"fov={angle}", SIZE)
    check_field_of_view(Intrinsics(values=rows, source="flag"), SIZE)
    assert degrees(2 * atan(640 / rows[0, 0])) == pytest.approx(angle)


@pytest.mark.parametrize("angle", ["25", "120"])
def test_the_bounds_are_inside_at_any_size(angle):
    """The angle comes back from the focal length with rounding of its own."""
    for width in range(16, 2000):
        rows = parse_intrinsics(f"fov={angle}", (width, 16))
        check_field_of_view(Intrinsics(values=rows, source="flag"), (width, 16))


@pytest.mark.parametrize(("angle", "shown"), [(24.9, "24.9°"), (120.2, "120.2°"), (0.1, "0.1°")])
def test_implausible_fields_of_view(angle, shown):
    values = np.tile(np.array(ROW), (3, 1))
    values[2, 0] = 640 / tan(angle * np.pi / 360)
    with pytest.raises(InputError) as caught:
        choose_intrinsics(flag=None, trajectory=values, focal_35mm=None, size=SIZE)
    assert shown in caught.value.message
    assert "25°–120°" in caught.value.message
    assert "frame 2" in caught.value.message


def test_normalised_focal_lengths_are_caught():
    """A focal length in units of the width is the usual mistake: it looks like 179°."""
    rows = parse_intrinsics("0.8,0.8,0.5,0.5", SIZE)
    with pytest.raises(InputError, match=r"179\.9°"):
        choose_intrinsics(flag=rows, trajectory=None, focal_35mm=None, size=SIZE)


# --- how they follow ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "resized", "left", "top"),
    [
        ((1280, 704), (1280, 704), (1280, 704), 0, 0),
        ((1920, 1080), (1280, 704), (1280, 720), 0, 8),
        ((1000, 1000), (96, 64), (96, 96), 0, 16),
        ((640, 200), (96, 64), (205, 64), 54, 0),  # 204.8 wide; (205 − 96) // 2
        ((50, 40), (100, 64), (100, 80), 0, 8),
        ((1000, 667), (96, 64), (96, 64), 0, 0),  # 64.03 high
    ],
)
def test_cover_and_crop(source, target, resized, left, top):
    crop = CoverCrop(source=source, target=target)
    assert (crop.resized, crop.left, crop.top) == (resized, left, top)


def test_following_by_hand():
    # 1920×1080 to 1280×720, then 8 rows off the top: ×2/3, cy − 8. Latents: /32.
    start = Intrinsics(values=np.array([[1500.0, 1500.0, 960.0, 540.0]]), source="flag")
    moved = start.follow(CoverCrop(source=(1920, 1080), target=(1280, 704)))
    np.testing.assert_allclose(moved.values, [[1000, 1000, 640, 352]])
    assert moved.source == "flag"
    latent = to_latent_units(moved, target=(1280, 704), latent=(40, 22))
    np.testing.assert_allclose(latent, [[31.25, 31.25, 20, 11]])
    # Each axis has its own factor.
    latent = to_latent_units(moved, target=(1280, 704), latent=(80, 22))
    np.testing.assert_allclose(latent, [[62.5, 31.25, 40, 11]])


sides = st.integers(16, 4000)


@given(sides, sides, st.integers(1, 30), st.integers(1, 30))
@settings(deadline=None)
def test_a_crop_covers_its_target(w, h, columns, rows):
    target = (32 * columns, 32 * rows)
    crop = CoverCrop(source=(w, h), target=target)
    for full, want, cut in zip(crop.resized, target, (crop.left, crop.top), strict=True):
        assert full >= want
        assert 0 <= cut <= full - want
        assert abs(full - want - 2 * cut) <= 1
    assert min(f - t for f, t in zip(crop.resized, target, strict=True)) == 0


@given(sides, sides, st.integers(1, 30), st.integers(1, 30), st.integers(0, 2))
@settings(deadline=None)
def test_a_ray_stays_on_its_pixel(w, h, columns, rows, seed):
    """The ray through a point of the source goes through the same point of the cropped picture."""
    target = (32 * columns, 32 * rows)
    crop = CoverCrop(source=(w, h), target=target)
    start = Intrinsics(values=np.array([[0.9 * w, 1.1 * w, w / 3, h / 2]]), source="file")
    moved = start.follow(crop).values[0]
    point = np.random.default_rng(seed).uniform(0, 1, 2) * (w, h)
    there = point * np.divide(crop.resized, (w, h)) - (crop.left, crop.top)
    before = (point - start.values[0, 2:]) / start.values[0, :2]
    np.testing.assert_allclose((there - moved[2:]) / moved[:2], before, rtol=1e-9, atol=1e-9)
