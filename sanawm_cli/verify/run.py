"""Running reference cases."""

from pathlib import Path

import torch

from sanawm_cli.errors import InputError
from sanawm_cli.verify.camera import verify_camera
from sanawm_cli.verify.cases import Case, find_cases
from sanawm_cli.verify.dense import verify_dense
from sanawm_cli.verify.report import CaseReport
from sanawm_cli.verify.schedule import verify_schedule
from sanawm_cli.verify.stream import verify_stream
from sanawm_cli.verify.vae import verify_vae


def verify_folder(
    folder: Path, names: tuple[str, ...], device: torch.device, dtype: torch.dtype
) -> list[CaseReport]:
    """Reports of all cases of a folder, or of those named. Raises InputError for a bad case."""
    return [verify_case(case, device, dtype) for case in find_cases(folder, names)]


def verify_case(case: Case, device: torch.device, dtype: torch.dtype) -> CaseReport:
    """The report of one case. Raises InputError naming what the case lacks."""
    try:
        if case.kind == "stream":
            return verify_stream(case, device, dtype)
        if case.kind == "dense":
            return verify_dense(case, device, dtype)
        if case.kind == "vae":
            return verify_vae(case, device, dtype)
        if case.kind == "schedule":
            return verify_schedule(case, device, dtype)
        return verify_camera(case)
    except KeyError as missing:
        raise InputError(f"case {case.name}: {missing} is missing") from missing


def torch_dtype(name: str) -> torch.dtype:
    """float32, float64 or bfloat16 by name."""
    return {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}[name]
