"""The first frame: from an image file to the clip's size."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from sanawm_cli.camera.intrinsics import CoverCrop, Size
from sanawm_cli.errors import InputError

_EXIF_IFD = 0x8769
_FOCAL_35MM = 0xA405


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

    Raises InputError when the file is missing, cannot be read, or is no image.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such image file", hint="give a PNG or JPEG to --image")
    try:
        with warnings.catch_warnings():
            # Pillow warns of huge pictures at first and refuses larger ones: refuse both.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                focal = image.getexif().get_ifd(_EXIF_IFD).get(_FOCAL_35MM)
                upright = ImageOps.exif_transpose(image)
                picture = _rgb(upright)
    except UnidentifiedImageError as error:
        raise InputError(f"{path}: not an image that can be read") from error
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: the image is too large: {error}") from error
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for damaged files
        raise InputError(f"{path}: the image cannot be read: {error}") from error
    return SourceImage(picture=picture, focal_35mm=float(focal) if focal else None)


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        raise ValueError(f"pictures of mode {image.mode} are not supported; save it as 8-bit RGB")
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        black = Image.new("RGBA", rgba.size, (0, 0, 0, 255))
        return Image.alpha_composite(black, rgba).convert("RGB")
    return image.convert("RGB")


def cover(image: SourceImage, target: Size) -> NDArray[np.uint8]:
    """The picture resized to cover `target` (width, height) and cropped in the middle: h w 3."""
    crop = CoverCrop(source=image.size, target=target)
    picture = image.picture
    if crop.resized != image.size:
        picture = picture.resize(crop.resized, Image.Resampling.LANCZOS)
    box = (crop.left, crop.top, crop.left + target[0], crop.top + target[1])
    return np.asarray(picture.crop(box))
