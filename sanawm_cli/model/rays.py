"""Ray transforms: each token's place in the world, as a 4×4 matrix (UCPE)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from sanawm_cli.model.parts import wide
from sanawm_cli.model.rope import Rotation


@dataclass(frozen=True, slots=True)
class RayTransforms:
    """World → ray-frame matrices P of every token and their inverses, (b n 4 4)."""

    into: Tensor
    out: Tensor


def _unit(x: Tensor) -> Tensor:
    """x/‖x‖ over the last axis. No epsilon: a degenerate ray must show as NaN to be replaced."""
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def ray_transforms(raymap: Tensor, size: tuple[int, int]) -> RayTransforms:
    """P and P⁻¹ of every token, from raymap (b t 20): camera-to-world 4×4, then fx fy cx cy.

    The rotation M = [x y z] has z along the token's ray and x level with the camera;
    P⁻¹ = [M | o] with the camera's place o, P = [Mᵀ | −Mᵀo]. A ray parallel to the camera's
    down axis has no x (NaN) and gets the identity (upstream behaviour). Computed in float64 and
    rounded once, to at least float32: places far from the origin cancel in P·P⁻¹.
    """
    dtype = wide(raymap).dtype
    raymap = raymap.double()
    rows, columns = size
    pose = raymap[..., :16].unflatten(-1, (4, 4))[:, :, None]  # b t 1 4 4
    fx, fy, cx, cy = (v[..., None, None] for v in raymap[..., 16:].unbind(-1))  # b t 1 1
    v, u = torch.meshgrid(
        torch.arange(rows, dtype=raymap.dtype, device=raymap.device),
        torch.arange(columns, dtype=raymap.dtype, device=raymap.device),
        indexing="ij",
    )
    x, y = torch.broadcast_tensors((u - cx) / fx, (v - cy) / fy)
    ray = _unit(torch.stack((x, y, torch.ones_like(x)), -1)).flatten(2, 3)  # b t s 3
    z = _unit((pose[..., :3, :3] @ ray[..., None]).squeeze(-1))
    x = _unit(torch.linalg.cross(pose[..., :3, 1].expand_as(z), z))
    y = _unit(torch.linalg.cross(z, x))
    turn = torch.stack((x, y, z), -1)  # b t s 3 3, columns
    place = pose[..., :3, 3:].expand(*turn.shape[:-1], 1)
    out = _affine(turn, place)
    into = _affine(turn.mT, -(turn.mT @ place))
    return RayTransforms(into.flatten(1, 2).to(dtype), out.flatten(1, 2).to(dtype))


def _affine(turn: Tensor, shift: Tensor) -> Tensor:
    """[turn | shift] over [0 0 0 1], identity where a number is NaN."""
    matrix = F.pad(torch.cat((turn, shift), -1), (0, 0, 0, 1))
    matrix[..., 3, 3] = 1
    identity = torch.eye(4, dtype=matrix.dtype, device=matrix.device)
    return torch.where(matrix.isnan().any(-1).any(-1)[..., None, None], identity, matrix)


def encode_rays(x: Tensor, matrix: Tensor, rotation: Rotation) -> Tensor:
    """UCPE of x (b n h d): groups of 4 in the first d/2 channels times matrix (b n 4 4) as
    column vectors, the second d/2 channels rotated. At least float32."""
    geometric, positional = wide(x).chunk(2, -1)
    groups = geometric.unflatten(-1, (-1, 4)).flatten(2, 3)  # b n h·d/8 4
    mapped = (groups @ matrix.mT).view(geometric.shape)
    return torch.cat((mapped, rotation.apply(positional)), -1)


def limit_rms(encoded: Tensor, original: Tensor) -> Tensor:
    """`encoded` scaled down, never up, to the RMS of `original`, per token and head.

    Ray matrices hold distances, so they can blow vectors up; eps 1e-6 under both roots.
    """
    before = wide(original).square().mean(-1, keepdim=True).add(1e-6).sqrt()
    after = encoded.square().mean(-1, keepdim=True).add(1e-6).sqrt()
    return encoded * (before / after).clamp(max=1)
