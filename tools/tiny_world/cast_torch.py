"""Pictures of many poses in many scenes, on a CPU or GPU: the quick twin of `cast_numpy`.

One ray per pixel and edges averaged in closed form, as there. On a CPU one pose is painted at a
time: each thing only within its rectangle, in arrays that stay in the cache. A GPU would starve on
them, and is given larger groups.
"""

import torch
from torch import Tensor

from tools.tiny_world.batch import SceneBatch
from tools.tiny_world.box_forms import box_forms
from tools.tiny_world.brushes import Grid, make_grid
from tools.tiny_world.lens import HEIGHT, WIDTH, Intrinsics, intrinsics
from tools.tiny_world.paint_boxes import box_brush, paint_boxes
from tools.tiny_world.paint_yard import paint_yard, yard_brush
from tools.tiny_world.views import Views, look_from
from tools.tiny_world.yard_forms import floor_forms, wall_forms

CHUNK = 64  # poses whose forms are made at once: more of them are no quicker


def cast(
    scenes: SceneBatch,
    poses: Tensor,
    *,
    height: int = HEIGHT,
    width: int = WIDTH,
    lens: Intrinsics | None = None,
    device: torch.device | str = "cpu",
    group: int | None = None,
) -> Tensor:
    """(B, T, H, W, 3) uint8 on `device`: each of B scenes from T poses (B, T, 4, 4).

    Poses are camera-to-world, from the clip's first pose. `group` is how many are painted at once:
    by default one on a CPU and 64 elsewhere. Raises ValueError for a camera that rolls.
    """
    device = torch.device(device)
    lens = lens or intrinsics(width=width, height=height)
    grid = make_grid(lens, height=height, width=width, device=device)
    group = group or (1 if device.type == "cpu" else CHUNK)
    count = poses.shape[1]
    flat = (scenes.placement[:, None] @ poses.cpu().double()).flatten(0, 1)
    out = torch.empty((len(flat), height, width, 3), dtype=torch.uint8, device=device)
    for start in range(0, len(flat), CHUNK):
        rows = torch.arange(start, min(start + CHUNK, len(flat)))
        views = look_from(flat[rows], lens, height=height, width=width)
        _cast_chunk(scenes.take(rows // count), views, grid, group, out[start : start + CHUNK])
    return out.view(*poses.shape[:2], height, width, 3)


def _cast_chunk(scenes: SceneBatch, views: Views, grid: Grid, group: int, out: Tensor) -> None:
    """Write one picture per view."""
    floor, walls = floor_forms(scenes, views), wall_forms(scenes, views)
    yard = yard_brush(scenes, views, floor, walls, grid)
    boxes = box_brush(box_forms(scenes, views), grid)
    for start in range(0, len(out), group):
        poses = slice(start, min(start + group, len(out)))
        # Zeros, for paint is mixed even where none of what was there before remains.
        canvas = torch.zeros((poses.stop - start, 3, *out.shape[1:3]), device=out.device)
        paint_yard(canvas, yard, poses)
        paint_boxes(canvas, boxes, poses)
        out[poses] = canvas.add_(0.5).to(torch.uint8).permute(0, 2, 3, 1)
