"""The first frame: from an image file to the clip's size."""

import warnings
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from sanawm_cli.camera.intrinsics import CoverCrop, Size
from sanawm_cli.errors import InputError

_EXIF_IFD = 0x8769
_FOCAL_35MM = 0xA405
_ORIENTATION = 0x0112

# What undoes each EXIF orientation; 1 is upright.
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

# Pillow knows more, some of which start other programs (EPS) or are no pictures.
MOST_PIXELS = 100_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "AVIF", "BMP", "TIFF", "GIF", "PPM")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceImage:
    """A picture upright and in RGB. `focal_35mm` is its EXIF's, None when it says nothing."""

    picture: Image.Image
    focal_35mm: float | None

    @property
    def size(self) -> Size:
        """(width, height) in pixels, after EXIF rotation."""
        return self.picture.size


def open_image(path: Path) -> SourceImage:
    """Read an image. EXIF rotation is applied; transparency is put over black.

    16-bit greyscale keeps its upper eight bits. Raises InputError when the file is missing,
    cannot be read, is no image, or has no fixed range of brightness.
    """
    try:
        if not path.is_file():
            raise InputError(f"{path}: no such image file", hint="give a PNG or JPEG to --image")
        with warnings.catch_warnings():
            # Odd metadata is no matter for people. Pillow warns of huge pictures at first and
            # refuses larger ones: refuse both.
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return _read(path)
    except InputError:
        raise
    except UnidentifiedImageError as error:
        raise InputError(f"{path}: not an image that can be read") from error
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: the image is too large: {error}") from error
    except Exception as error:  # damaged files make Pillow raise whatever its parsers stumble over
        raise InputError(f"{path}: the image cannot be read: {error}") from error


def _read(path: Path) -> SourceImage:
    Image.init()
    formats = [name for name in FORMATS if name in Image.OPEN]  # AVIF is not in every Pillow
    with Image.open(path, formats=formats) as image:
        image.load()  # a TIFF is turned by this, and forgets its orientation
        exif = image.getexif()
        focal = _positive(exif.get_ifd(_EXIF_IFD).get(_FOCAL_35MM))
        turn = _UPRIGHT.get(exif.get(_ORIENTATION, 1))
        picture = _rgb(image, path)
    # By hand: Pillow's own way writes all EXIF anew, and refuses a picture for any odd tag.
    return SourceImage(
        picture=picture if turn is None else picture.transpose(turn), focal_35mm=focal
    )


def _positive(value: object) -> float | None:
    """An EXIF number; None where it is missing, 0 ("unknown") or makes no sense."""
    number = float(value) if isinstance(value, Real) else 0.0
    return number if isfinite(number) and number > 0 else None


def _rgb(image: Image.Image, path: Path) -> Image.Image:
    if image.mode in ("I", "F"):
        raise InputError(
            f"{path}: pictures of mode {image.mode} have no fixed range of brightness",
            hint="save it as 8-bit RGB",
        )
    if image.mode.startswith("I;16"):
        image = _eight_bits(image)
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        black = Image.new("RGBA", rgba.size, (0, 0, 0, 255))
        return Image.alpha_composite(black, rgba).convert("RGB")
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """The upper half of 16-bit greyscale; a level marked as transparent becomes black."""
    levels = np.asarray(image)
    shown = levels != image.info.get("transparency", -1)
    return Image.fromarray((levels >> 8).astype(np.uint8) * shown)


def cover(image: SourceImage, target: Size) -> NDArray[np.uint8]:
    """The picture resized to cover `target` (width, height) and cropped in the middle: h w 3."""
    crop = CoverCrop(source=image.size, target=target)
    if crop.resized[0] * crop.resized[1] > MOST_PIXELS:
        width, height = image.size
        raise InputError(
            f"a picture of {width}×{height} is too narrow to cover {target[0]}×{target[1]}",
            hint="crop it to about the video's shape first",
        )
    picture = image.picture
    if crop.resized != image.size:
        picture = picture.resize(crop.resized, Image.Resampling.LANCZOS)
    box = (crop.left, crop.top, crop.left + target[0], crop.top + target[1])
    return np.asarray(picture.crop(box))
