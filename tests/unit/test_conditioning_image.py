"""The first frame: whatever the file, it arrives upright, in RGB, covering the clip's size."""

import random
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from sanawm_cli.camera.intrinsics import CoverCrop, Intrinsics
from sanawm_cli.conditioning.image import SourceImage, cover, open_image
from sanawm_cli.errors import InputError

Pixels = NDArray[np.uint8]

MAKE, ORIENTATION, EXIF_IFD, FOCAL_35MM = 0x010F, 0x0112, 0x8769, 0xA405
Entry = tuple[int, int, bytes]  # EXIF: kind, count, data


def noise(height: int, width: int, *channels: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, *channels), np.uint8)


def pixels(path: Path) -> Pixels:
    source = open_image(path)
    assert source.picture.mode == "RGB"
    return np.asarray(source.picture)


def short(value: int) -> Entry:
    return 3, 1, struct.pack("<H", value)


def exif(
    orientation: Entry | None = None, focal: Entry | None = None, make: Entry | None = None
) -> bytes:
    """An EXIF block, byte by byte: Pillow would not write the odd ones."""
    known = {MAKE: make, ORIENTATION: orientation}
    entries = {tag: entry for tag, entry in known.items() if entry is not None}
    header = struct.pack("<2sHI", b"II", 42, 8)
    if focal is None:
        return b"Exif\0\0" + header + directory(entries, 8)
    pointer = 8 + len(directory({**entries, EXIF_IFD: (4, 1, bytes(4))}, 8))
    entries[EXIF_IFD] = 4, 1, struct.pack("<I", pointer)
    return b"Exif\0\0" + header + directory(entries, 8) + directory({FOCAL_35MM: focal}, pointer)


def directory(entries: dict[int, Entry], at: int) -> bytes:
    """Entries of a directory that begins at a place; values of more than 4 bytes lie behind it."""
    body, behind = struct.pack("<H", len(entries)), b""
    end = at + 2 + 12 * len(entries) + 4
    for tag, (kind, count, data) in sorted(entries.items()):
        place = data.ljust(4, b"\0") if len(data) <= 4 else struct.pack("<I", end + len(behind))
        behind += data if len(data) > 4 else b""
        body += struct.pack("<HHI", tag, kind, count) + place
    return body + bytes(4) + behind


def tags_of(path: Path) -> set[int]:
    with Image.open(path) as saved, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tags = saved.getexif()
        return {*tags, *tags.get_ifd(EXIF_IFD)}


def refusal(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        open_image(path)
    assert caught.value.message.startswith(f"{path}: ")
    assert "\n" not in caught.value.message
    return caught.value


# --- orientation --------------------------------------------------------------------------------

# EXIF: where the stored row 0 and the stored column 0 are in the picture as seen.
SIDES = {
    1: ("top", "left"),
    2: ("top", "right"),
    3: ("bottom", "right"),
    4: ("bottom", "left"),
    5: ("left", "top"),
    6: ("right", "top"),
    7: ("right", "bottom"),
    8: ("left", "bottom"),
}


def as_seen(stored: Pixels, orientation: int) -> Pixels:
    row, column = SIDES[orientation]
    seen = stored if row in ("top", "bottom") else stored.swapaxes(0, 1)
    seen = seen[::-1] if "bottom" in (row, column) else seen
    return seen[:, ::-1] if "right" in (row, column) else seen


@pytest.mark.parametrize("orientation", SIDES)
@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_pictures_are_turned_upright(tmp_path: Path, orientation: int, suffix: str) -> None:
    stored, path = noise(3, 5, 3), tmp_path / f"a.{suffix}"
    Image.fromarray(stored).save(path, exif=exif(short(orientation)))
    want = as_seen(stored, orientation)
    assert np.array_equal(pixels(path), want)
    assert open_image(path).size == (want.shape[1], want.shape[0])


@pytest.mark.parametrize("orientation", SIDES)
def test_photographs_are_turned_upright(tmp_path: Path, orientation: int) -> None:
    stored = np.kron(noise(2, 3, 3), np.ones((16, 16, 1), np.uint8))
    path = tmp_path / "a.jpg"
    Image.fromarray(stored).save(path, quality=95, subsampling=0, exif=exif(short(orientation)))
    error = pixels(path).astype(int) - as_seen(stored, orientation)
    assert np.abs(error).max() <= 12


@pytest.mark.parametrize(
    "entry",
    [short(0), short(9), short(700), (2, 2, b"6\0"), (7, 1, b"\6")],
    ids=repr,
)
def test_an_orientation_that_makes_no_sense_is_none(tmp_path: Path, entry: Entry) -> None:
    path, stored = tmp_path / "a.png", noise(3, 5, 3)
    Image.fromarray(stored).save(path, exif=exif(entry))
    assert ORIENTATION in tags_of(path)  # it is there, so it has been passed over
    assert np.array_equal(pixels(path), stored)


@pytest.mark.parametrize("make", [(10, 1, bytes(8)), (3, 2, b"abcd"), (2, 99, b"a" * 8)], ids=repr)
def test_an_odd_tag_does_not_keep_a_picture_from_being_turned(tmp_path: Path, make: Entry) -> None:
    """Pillow's way of turning writes all EXIF anew, and fails for a maker that is a ratio."""
    path, stored = tmp_path / "a.png", noise(3, 5, 3)
    Image.fromarray(stored).save(path, exif=exif(short(6), make=make))
    assert np.array_equal(pixels(path), as_seen(stored, 6))


# --- modes --------------------------------------------------------------------------------------


def test_rgb_and_grey_come_through_bit_for_bit(tmp_path: Path) -> None:
    rgb, grey = noise(4, 6, 3), noise(4, 6)
    Image.fromarray(rgb).save(tmp_path / "rgb.png")
    Image.fromarray(grey).save(tmp_path / "grey.png")
    assert np.array_equal(pixels(tmp_path / "rgb.png"), rgb)
    assert np.array_equal(pixels(tmp_path / "grey.png"), np.repeat(grey[..., None], 3, -1))


def test_one_bit_pictures_are_black_and_white(tmp_path: Path) -> None:
    black_or_white = noise(4, 6) > 127
    Image.fromarray(black_or_white).save(tmp_path / "a.png")
    want = np.repeat(black_or_white[..., None] * np.uint8(255), 3, -1)
    assert np.array_equal(pixels(tmp_path / "a.png"), want)


def over_black(colour: Pixels, alpha: Pixels) -> NDArray[np.float64]:
    return colour * (alpha[..., None] / 255)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparency_is_put_over_black(tmp_path: Path, mode: str) -> None:
    alpha = noise(8, 8, seed=1)
    alpha[0], alpha[1] = 0, 255
    colour = noise(8, 8, 3) if mode == "RGBA" else noise(8, 8, 1)
    Image.fromarray(np.concatenate([colour, alpha[..., None]], -1)).save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as saved:
        assert saved.mode == mode
    got, want = pixels(tmp_path / "a.png"), np.broadcast_to(over_black(colour, alpha), (8, 8, 3))
    assert np.abs(got - want).max() <= 1
    assert not got[0].any()
    assert np.array_equal(got[1], want[1])


def test_palettes_and_their_transparency(tmp_path: Path) -> None:
    colours, index = noise(4, 3), noise(5, 7) % 4
    picture = Image.fromarray(index, "L")
    picture = picture.convert("P")
    picture.putdata(index.reshape(-1).tolist())
    picture.putpalette(colours.reshape(-1).tolist())
    picture.save(tmp_path / "plain.png")
    picture.save(tmp_path / "hole.png", transparency=2)
    picture.save(tmp_path / "veil.png", transparency=bytes([0, 51, 102, 255]))
    assert np.array_equal(pixels(tmp_path / "plain.png"), colours[index])
    colours_with_hole = colours.copy()
    colours_with_hole[2] = 0
    assert np.array_equal(pixels(tmp_path / "hole.png"), colours_with_hole[index])
    alpha = np.array([0, 51, 102, 255], np.uint8)[index]
    veiled = pixels(tmp_path / "veil.png") - over_black(colours[index], alpha)
    assert np.abs(veiled).max() <= 1


def test_a_transparent_colour_of_plain_rgb(tmp_path: Path) -> None:
    rgb = noise(4, 4, 3) | 1
    Image.fromarray(rgb).save(tmp_path / "a.png", transparency=tuple(rgb[1, 2].tolist()))
    want = rgb.copy()
    want[1, 2] = 0
    assert np.array_equal(pixels(tmp_path / "a.png"), want)


def test_print_colours_become_rgb(tmp_path: Path) -> None:
    """255 is full ink in a TIFF."""
    ink = np.array([[[0, 0, 0, 0], [255, 0, 0, 0], [0, 255, 255, 0], [0, 0, 0, 255]]], np.uint8)
    Image.fromarray(ink, "CMYK").save(tmp_path / "a.tif")
    assert pixels(tmp_path / "a.tif").tolist() == [
        [[255, 255, 255], [0, 255, 255], [255, 0, 0], [0, 0, 0]]
    ]


def png16(path: Path, levels: NDArray[np.uint16], colour: int, *more: tuple[bytes, bytes]) -> None:
    """A 16-bit PNG, chunk by chunk: levels h w or h w c; colour 0 grey, 2 RGB, 4 with alpha."""
    height, width = levels.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in levels)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0)),
        *more,
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    data = b"\x89PNG\r\n\x1a\n"
    for name, body in chunks:
        data += struct.pack(">I", len(body)) + name + body
        data += struct.pack(">I", zlib.crc32(name + body))
    path.write_bytes(data)


def test_of_sixteen_bits_the_upper_eight_are_kept(tmp_path: Path) -> None:
    random16 = np.random.default_rng(0)
    grey = random16.integers(0, 1 << 16, (4, 6), np.uint16)
    rgb = random16.integers(0, 1 << 16, (4, 6, 3), np.uint16)
    png16(tmp_path / "grey.png", grey, 0)
    png16(tmp_path / "rgb.png", rgb, 2)
    Image.fromarray(grey).save(tmp_path / "grey.tif")
    upper = np.repeat((grey >> 8)[..., None], 3, -1)
    assert np.array_equal(pixels(tmp_path / "grey.png"), upper)
    assert np.array_equal(pixels(tmp_path / "grey.tif"), upper)
    assert np.array_equal(pixels(tmp_path / "rgb.png"), rgb >> 8)


def test_sixteen_bits_with_transparency(tmp_path: Path) -> None:
    grey = np.array([[0x1234, 0x1235], [0xFFFF, 0]], np.uint16)
    png16(tmp_path / "hole.png", grey, 0, (b"tRNS", struct.pack(">H", 0x1235)))
    assert pixels(tmp_path / "hole.png")[..., 0].tolist() == [[0x12, 0], [0xFF, 0]]
    alpha = np.array([[0, 0xFFFF], [0xFFFF, 0]], np.uint16)
    png16(tmp_path / "alpha.png", np.stack([grey, alpha], -1), 4)
    assert pixels(tmp_path / "alpha.png")[..., 0].tolist() == [[0, 0x12], [0xFF, 0]]


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_numbers_without_a_range_are_no_picture(tmp_path: Path, kind: type) -> None:
    Image.fromarray(np.arange(6, dtype=kind).reshape(2, 3)).save(tmp_path / "a.tif")
    error = refusal(tmp_path / "a.tif")
    assert "no fixed range" in error.message
    assert error.hint == "save it as 8-bit RGB"


# --- focal length -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_the_focal_length_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    picture = Image.fromarray(noise(4, 4, 3))
    picture.save(path)
    assert open_image(path).focal_35mm is None
    picture.save(path, exif=exif(short(6), focal=short(28)))
    assert open_image(path).focal_35mm == 28.0


def ratio(numerator: int, denominator: int) -> Entry:
    return 10, 1, struct.pack("<ii", numerator, denominator)


@pytest.mark.parametrize(
    ("entry", "focal"),
    [
        (short(0), None),  # "unknown"
        (ratio(57, 2), 28.5),
        (ratio(0, 0), None),
        (ratio(1, 0), None),
        (ratio(-28, 1), None),
        ((3, 2, b"\x1c\0\x1c\0"), None),
        ((2, 6, b"28 mm\0"), None),
        ((7, 1, b"\x1c"), None),
    ],
    ids=repr,
)
def test_a_focal_length_that_makes_no_sense_is_none(
    tmp_path: Path, entry: Entry, focal: float | None
) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(noise(4, 4, 3)).save(path, exif=exif(focal=entry))
    assert FOCAL_35MM in tags_of(path)  # it is there, so it has been passed over
    assert open_image(path).focal_35mm == focal


# --- refusals -----------------------------------------------------------------------------------


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.png", tmp_path, tmp_path / "nul\0"):
        error = refusal(path)
        assert error.message.endswith("no such image file")
        assert "--image" in (error.hint or "")
    assert "cannot be read" in refusal(tmp_path / ("x" * 300)).message


@pytest.mark.parametrize("data", [b"", b"\x89PNG", b"<html></html>", b"prompt\n"], ids=repr)
def test_what_is_no_image_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.png").write_bytes(data)
    assert refusal(tmp_path / "a.png").message.endswith("not an image that can be read")


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif"])
def test_half_a_picture_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(noise(40, 40, 3)).save(path)
    data = path.read_bytes()
    for kept in (len(data) // 2, len(data) * 9 // 10):
        path.write_bytes(data[:kept])
        assert "the image cannot be read: " in refusal(path).message


@pytest.mark.parametrize("limit", [8 * 9 - 1, 8 * 9 // 2 - 1], ids=["warned of", "refused"])
def test_a_picture_too_large_for_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Pillow warns above its limit and refuses above twice that; both are refused here."""
    path = tmp_path / "a.png"
    Image.fromarray(noise(8, 9, 3)).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 8 * 9)
    open_image(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as a program's may be; tests make them errors
        assert "the image is too large: " in refusal(path).message


def test_a_parser_that_stumbles_is_no_bug_of_ours(tmp_path: Path) -> None:
    """Where a TIFF's data begin is told by bytes instead of a number: Pillow's is a TypeError."""
    path = tmp_path / "a.tif"
    Image.fromarray(noise(4, 4, 3)).save(path)
    data, offsets = path.read_bytes(), 273
    for kind in (3, 4):
        data = data.replace(struct.pack("<HH", offsets, kind), struct.pack("<HH", offsets, 7))
    path.write_bytes(data)
    assert "the image cannot be read: " in refusal(path).message


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif"])
def test_damaged_files_are_read_or_refused(tmp_path: Path, suffix: str) -> None:
    """Nothing else comes out, be it a warning or some exception of a parser's."""
    path, source = tmp_path / f"a.{suffix}", random.Random(suffix)
    Image.fromarray(noise(9, 12, 3)).save(path, exif=exif(short(6), focal=short(28)))
    data = path.read_bytes()
    refused = 0
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(data))] = source.randrange(256)
        path.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                assert open_image(path).picture.mode == "RGB"
            except InputError:
                refused += 1
    assert 0 < refused < 300


# --- cover --------------------------------------------------------------------------------------


def source_of(picture: Pixels) -> SourceImage:
    return SourceImage(picture=Image.fromarray(picture), focal_35mm=None)


sides = st.integers(1, 90)


@given(sides, sides, st.integers(1, 3), st.integers(1, 3))
@settings(deadline=None)
def test_the_size_is_exactly_the_target(w: int, h: int, columns: int, rows: int) -> None:
    got = cover(source_of(noise(h, w, 3)), (32 * columns, 32 * rows))
    assert got.shape == (32 * rows, 32 * columns, 3)
    assert got.dtype == np.uint8


@given(sides, sides, st.tuples(*[st.integers(0, 255)] * 3))
@settings(deadline=None)
def test_nothing_is_padded(w: int, h: int, colour: tuple[int, int, int]) -> None:
    """A picture of one colour stays one to its corners."""
    plain = np.full((h, w, 3), colour, np.uint8)
    assert (cover(source_of(plain), (64, 32)) == colour).all()


def test_a_picture_of_the_target_size_is_taken_as_it_is() -> None:
    picture = noise(64, 96, 3)
    assert np.array_equal(cover(source_of(picture), (96, 64)), picture)


@pytest.mark.parametrize(
    ("size", "left", "top"), [((96, 70), 0, 3), ((101, 64), 2, 0), ((96, 65), 0, 0)]
)
def test_where_only_a_crop_is_needed_no_pixel_changes(
    size: tuple[int, int], left: int, top: int
) -> None:
    picture = noise(size[1], size[0], 3)
    got = cover(source_of(picture), (96, 64))
    assert np.array_equal(got, picture[top : top + 64, left : left + 96])


@pytest.mark.parametrize("target", [(96, 64), (64, 96), (320, 192)])
@pytest.mark.parametrize("size", [(640, 200), (200, 640), (50, 40), (417, 311), (1000, 667)])
def test_intrinsics_follow_the_picture(size: tuple[int, int], target: tuple[int, int]) -> None:
    """A spot that the principal point lies on is under it in the cropped picture as well."""
    (w, h), crop = size, CoverCrop(source=size, target=target)
    # Off the middle of what remains visible, by a fifth of it.
    kept = np.divide(target, crop.resized) * size
    x, y = np.divide(size, 2) + kept * (0.2, -0.15)
    spot = np.hypot(*(np.mgrid[:h, :w] + 0.5 - np.array([y, x])[:, None, None]))
    radius = max(2.0, 3 * w / crop.resized[0])
    level = np.round(255 * np.exp(-((spot / radius) ** 2)))
    got = cover(source_of(np.repeat(level[..., None], 3, -1).astype(np.uint8)), target)
    weight = got[..., 0] / got[..., 0].sum(dtype=float)
    rows, columns = np.mgrid[: target[1], : target[0]] + 0.5
    landed = ((weight * columns).sum(), (weight * rows).sum())
    start = Intrinsics(values=np.array([[w, w, x, y]]), source="flag")
    assert np.abs(start.follow(crop).values[0, 2:] - landed).max() < 0.25


@pytest.mark.parametrize("orientation", SIDES)
def test_intrinsics_are_of_the_picture_as_seen(tmp_path: Path, orientation: int) -> None:
    """A dot at (10, 3) as seen, in a picture of any orientation."""
    seen = np.zeros((40, 60, 3), np.uint8)
    seen[3, 10] = 255
    row, column = SIDES[orientation]
    stored = seen[::-1] if "bottom" in (row, column) else seen
    stored = stored[:, ::-1] if "right" in (row, column) else stored
    stored = stored if row in ("top", "bottom") else stored.swapaxes(0, 1)
    assert np.array_equal(as_seen(stored, orientation), seen)
    path = tmp_path / "a.png"
    Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif(short(orientation)))
    source = open_image(path)
    crop = CoverCrop(source=source.size, target=(96, 64))
    start = Intrinsics(values=np.array([[60.0, 60.0, 10.5, 3.5]]), source="flag")
    x, y = start.follow(crop).values[0, 2:]
    assert cover(source, (96, 64))[int(y), int(x), 0] > 200


def test_the_array_is_good_for_torch_and_numpy_alike() -> None:
    assert cover(source_of(noise(5, 7, 3)), (32, 32)).flags.c_contiguous
