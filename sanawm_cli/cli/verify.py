"""`sanawm verify`: reference numbers through the real code."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from sanawm_cli.cli import options
from sanawm_cli.cli.shell import user_errors
from sanawm_cli.errors import ExitCode, UsageError

DTYPES = ("float32", "float64", "bfloat16")


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of reference cases.")],
    cases: Annotated[
        list[str] | None, typer.Argument(metavar="[CASE]...", help="Default: all of them.")
    ] = None,
    tol: Annotated[float, typer.Option("--tol", help="Largest difference allowed.")] = 2e-5,
    device: options.Device = "cpu",
    dtype: Annotated[str, typer.Option("--dtype", help=", ".join(DTYPES))] = "float32",
    as_json: options.Json = False,
) -> None:
    """Run reference cases through the real code and print the largest differences.

    Exit code 0 only if every quantity of every case is within the tolerance, else 10.
    """
    with user_errors(as_json=as_json):
        if not (math.isfinite(tol) and tol >= 0):
            raise UsageError(f"--tol {tol} is not a number of 0 or more")
        if dtype not in DTYPES:
            raise UsageError(f"--dtype {dtype!r} is not known", hint=f"use {', '.join(DTYPES)}")
        from sanawm_cli.jobs.machine import choose_device
        from sanawm_cli.verify.cases import other_files
        from sanawm_cli.verify.run import torch_dtype, verify_folder

        reports = verify_folder(
            folder, tuple(cases or ()), choose_device(device), torch_dtype(dtype)
        )
        if not cases:
            for name in other_files(folder):
                typer.echo(f"note: {name}.json is no reference case and is left out", err=True)
        holds = all(report.holds(tol) for report in reports)
        if as_json:
            told = {
                "ok": holds,
                "tolerance": tol,
                "cases": [report.as_json(tol) for report in reports],
            }
            typer.echo(json.dumps(told, indent=2))
        else:
            from sanawm_cli.cli.view import show_verification

            show_verification(reports, tol)
        if not holds:
            raise typer.Exit(int(ExitCode.MISMATCH))
