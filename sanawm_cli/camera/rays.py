"""What the network gets of the camera: the ray map (pose and intrinsics) and the Plücker map.

Both are made for a stretch of latents from the poses of that stretch alone. Poses are (F, 4, 4)
camera-to-world, one per frame; intrinsics (F, 4) or (1, 4) fx, fy, cx, cy in latent units. Frames
past the end of the clip repeat its last one.
"""

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.camera.intrinsics import IntrinsicRows

Poses = NDArray[np.float32]


def raymap(
    poses: Poses, intrinsics: IntrinsicRows, *, latents: range, stride: int = 8
) -> NDArray[np.float32]:
    """(T, 20): for latent i the pose of frame `stride`·i, row by row, then its intrinsics."""
    frames = np.minimum(np.array(latents, int) * stride, len(poses) - 1)
    flat = poses[frames].reshape(len(frames), 16)
    return np.concatenate([flat, _rows(intrinsics, frames)], axis=1).astype(np.float32)


def plucker_map(
    poses: Poses,
    intrinsics: IntrinsicRows,
    *,
    start: int,
    stop: int,
    height: int,
    width: int,
    stride: int = 8,
) -> NDArray[np.float32]:
    """(6·stride, T, H, W) for latents [start, stop): the rays of `stride` frames each.

    Latent i sees the frames that end at frame `stride`·i; the first one, which stands for one
    frame only, looks ahead instead. Per frame six channels: world direction d, then origin × d.
    """
    ends = np.arange(start, stop) * stride
    frames = np.maximum(ends - stride + 1, 0)[:, None] + np.arange(stride)  # t s
    frames = np.minimum(frames, len(poses) - 1)
    pose = poses[frames].astype(np.float64)  # t s 4 4
    rays = _camera_rays(_rows(intrinsics, frames), height=height, width=width)  # t s h w 3
    toward = np.einsum("tsij,tshwj->tshwi", pose[..., :3, :3], rays)
    moment = np.cross(pose[:, :, None, None, :3, 3], toward)
    both = np.concatenate([toward, moment], axis=-1)  # t s h w 6
    packed = both.transpose(1, 4, 0, 2, 3).reshape(6 * stride, stop - start, height, width)
    return packed.astype(np.float32)


def _rows(intrinsics: IntrinsicRows, frames: NDArray[np.int_]) -> IntrinsicRows:
    """The intrinsics of each frame; a single row serves them all."""
    return intrinsics[np.minimum(frames, len(intrinsics) - 1)]


def _camera_rays(rows: IntrinsicRows, *, height: int, width: int) -> NDArray[np.float64]:
    """Unit rays (…, H, W, 3) in camera space through latent pixels at whole coordinates."""
    fx, fy, cx, cy = (rows[..., None, None, i] for i in range(4))
    v, u = np.mgrid[:height, :width].astype(np.float64)
    x, y = (u - cx) / fx, (v - cy) / fy
    rays = np.stack([x, y, np.ones_like(x)], axis=-1)
    return np.asarray(rays / np.linalg.norm(rays, axis=-1, keepdims=True))
