"""Camera cases: action strings to poses, and poses to what the network gets."""

import numpy as np
import torch

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.intrinsics import IntrinsicRows
from sanawm_cli.camera.kinematics import DIALECTS, roll_out
from sanawm_cli.camera.rays import Poses, plucker_map, raymap
from sanawm_cli.errors import InputError
from sanawm_cli.verify.cases import Case
from sanawm_cli.verify.report import CaseReport, Comparison

# Whose poses a case holds, and which dialect those are.
_DIALECT_OF = {"diffusers": "v1", "sglang": "v1-strafe"}
# Both packings are of the v1 poses.
_PACKED_DIALECT = "v1"


def verify_camera(case: Case) -> CaseReport:
    """Compare poses, ray maps and Plücker maps: numpy on the CPU, whatever the device."""
    comparison = Comparison(case.name, case.kind)
    for index, action in _actions(case):
        segments = parse_action(action)
        for source, dialect in _DIALECT_OF.items():
            name = f"a{index}.{source}.c2w"
            if name in case.tensors:
                found = torch.from_numpy(roll_out(segments, DIALECTS[dialect]).poses)
                comparison.add(f"poses ({dialect})", name, found, case.tensors[name])
        poses = roll_out(segments, DIALECTS[_PACKED_DIALECT]).poses
        for packing in ("diffusers", "sglang_pack"):
            _compare_packing(comparison, case, f"a{index}.{packing}", poses)
    return comparison.report()


def _compare_packing(comparison: Comparison, case: Case, prefix: str, poses: Poses) -> None:
    """Ray map and Plücker map of all latents that the case has."""
    stride, (rows, columns), intrinsics = _geometry(case)
    want = case.tensors.get(f"{prefix}.raymap")
    if want is not None:
        found = raymap(poses, intrinsics, latents=range(len(want)), stride=stride)
        comparison.add("ray map", f"{prefix}.raymap", torch.from_numpy(found), want)
    want = case.tensors.get(f"{prefix}.chunk_plucker")
    if want is not None:
        found = plucker_map(
            poses,
            intrinsics,
            start=0,
            stop=want.shape[1],
            height=rows,
            width=columns,
            stride=stride,
        )
        comparison.add("Plücker map", f"{prefix}.chunk_plucker", torch.from_numpy(found), want)


def _actions(case: Case) -> list[tuple[int, str]]:
    """The action strings and their numbers."""
    try:
        rows = case.facts["results"]["rows"]
        return [(int(row["i"]), str(row["action"])) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"case {case.name}: its action strings cannot be read") from error


def _geometry(case: Case) -> tuple[int, tuple[int, int], IntrinsicRows]:
    """Frames per latent, latent rows and columns, intrinsics in latent units."""
    height, width = (int(side) for side in case.facts["target_pixel_hw"])
    time, down, across = (int(stride) for stride in case.facts["vae_stride"])
    fx, fy, cx, cy = (float(value) for value in case.facts["intrinsics_px"])
    intrinsics = np.array([[fx / across, fy / down, cx / across, cy / down]])
    return time, (height // down, width // across), intrinsics
