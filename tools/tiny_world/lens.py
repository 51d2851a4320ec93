"""The camera's intrinsics."""

FPS = 16
WIDTH, HEIGHT = 320, 192

Intrinsics = tuple[float, float, float, float]  # fx, fy, cx, cy in pixels


def intrinsics(*, width: int = WIDTH, height: int = HEIGHT) -> Intrinsics:
    """Square pixels, a focal length of 0.7 widths (71° across), centred.

    The centre of the pixel in column j and row i is at (j + ½, i + ½).
    """
    return 0.7 * width, 0.7 * width, width / 2, height / 2
