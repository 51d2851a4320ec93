"""`sanawm verify`: reference cases through the real code."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command import ROOT, Ran, sanawm
from safetensors.torch import load_file, save_file
from torch import Tensor

FIXTURES = ROOT / "tests" / "fixtures"
CASES = ("camera_a", "dense_a", "sched_a", "stream_a", "stream_c", "stream_e", "vae_a")
INPUT, MISMATCH = 4, 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of two small cases, to be damaged."""
    for name in ("sched_a", "camera_a"):
        for suffix in (".json", ".safetensors"):
            shutil.copy(FIXTURES / f"{name}{suffix}", tmp_path)
    return tmp_path


def change(folder: Path, name: str, edit: Callable[[Tensor], Tensor]) -> None:
    """Write one number of the scheduler's case anew."""
    path = folder / "sched_a.safetensors"
    tensors = load_file(path)
    tensors[name] = edit(tensors[name]).contiguous()
    save_file(tensors, path)


def refused(ran: Ran, said: str) -> None:
    assert (ran.code, ran.out) == (INPUT, "")
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert said in ran.err


def test_the_shared_cases_pass() -> None:
    ran = sanawm("verify", FIXTURES)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert [line for line in lines if line.endswith(": ok")] == [
        f"{case} ({kind}): ok"
        for case, kind in zip(
            CASES,
            ("camera", "dense", "schedule", "stream", "stream", "stream", "vae"),
            strict=True,
        )
    ]
    assert lines[-1] == "all 7 of 7 cases within 2e-05"
    # The names of published tensors lie there too, and are nothing to compare with.
    assert ran.err.splitlines() == [
        f"note: {name}.json is no reference case and is left out"
        for name in ("keys_diffusers", "keys_raw", "keys_vae")
    ]


def test_float64_is_closer() -> None:
    """Cases that hold float64 numbers of their own rounding agree at least as well."""
    ran = sanawm("verify", FIXTURES, "stream_c", "vae_a", "--dtype=float64", "--tol=1e-5")
    assert (ran.code, ran.err) == (0, "")


def test_what_scripts_get() -> None:
    ran = sanawm("verify", FIXTURES, "sched_a", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json.keys() == {"ok", "tolerance", "cases"}
    assert (ran.json["ok"], ran.json["tolerance"]) == (True, 2e-5)
    (case,) = ran.json["cases"]
    assert case == {
        "case": "sched_a",
        "kind": "schedule",
        "ok": True,
        "quantities": [
            {"name": "noise levels", "largest": 0.0, "tensors": 2, "worst": "out.timesteps"},
            {"name": "step", "largest": 0.0, "tensors": 4, "worst": "s3.out"},
        ],
    }


def test_no_tolerance_shows_every_rounding(folder: Path) -> None:
    ran = sanawm("verify", folder, "--tol=0")
    assert ran.code == MISMATCH
    assert "camera_a (camera): DIFFERS" in ran.out
    assert "sched_a (schedule): ok" in ran.out
    assert ran.out.splitlines()[-1] == "1 of 2 cases within 0"


def test_another_number_is_found_and_named(folder: Path) -> None:
    change(folder, "s3.out", lambda out: out + 0.5)
    ran = sanawm("verify", folder)
    assert ran.code == MISMATCH
    (line,) = [line for line in ran.out.splitlines() if "> tolerance" in line]
    assert line.split() == ["step", "5.0e-01", "4", "worst:", "s3.out", ">", "tolerance"]
    told = sanawm("verify", folder, "--json")
    assert told.code == MISMATCH
    assert not told.json["ok"]
    assert [case["ok"] for case in told.json["cases"]] == [True, False]
    assert sanawm("verify", folder, "--tol=0.6").code == 0
    assert sanawm("verify", folder, "camera_a").code == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_number_that_is_none_is_a_mismatch(folder: Path, bad: float) -> None:
    """NaN compares as neither larger nor smaller: it must not pass for "not larger"."""
    change(folder, "s3.out", lambda out: out.index_fill(-1, torch.tensor([0]), bad))
    ran = sanawm("verify", folder, "sched_a", "--tol=1e9", "--json")
    assert ran.code == MISMATCH
    quantities = {each["name"]: each for each in ran.json["cases"][0]["quantities"]}
    assert (quantities["step"]["largest"], quantities["step"]["worst"]) == (None, "s3.out")
    assert "inf" in sanawm("verify", folder, "sched_a").out


def test_another_shape_is_a_mismatch(folder: Path) -> None:
    change(folder, "s3.out", lambda out: out[:, 1:])
    assert sanawm("verify", folder, "sched_a").code == MISMATCH


def test_what_is_missing_is_named(folder: Path) -> None:
    refused(sanawm("verify", folder / "no"), "no: not a folder of reference cases")
    refused(sanawm("verify", folder, "shed_a"), "did you mean sched_a?")
    (folder / "camera_a.safetensors").unlink()
    refused(sanawm("verify", folder, "camera_a"), "no tensors were found beside camera_a.json")
    refused(sanawm("verify", folder), "no tensors were found beside camera_a.json")
    assert sanawm("verify", folder, "sched_a").code == 0


def test_a_stream_without_its_weights(tmp_path: Path) -> None:
    for name in ("stream_c.json", "stream_c.io.safetensors"):
        shutil.copy(FIXTURES / name, tmp_path)
    refused(sanawm("verify", tmp_path), "stream_c.weights.safetensors: the file is missing")
    (tmp_path / "stream_c.io.safetensors").unlink()
    refused(sanawm("verify", tmp_path), "stream_c.io.safetensors: the file is missing")


def test_damaged_files_are_named(folder: Path) -> None:
    whole = (folder / "sched_a.safetensors").read_bytes()
    (folder / "sched_a.safetensors").write_bytes(whole[: len(whole) // 2])
    refused(sanawm("verify", folder), "sched_a.safetensors: not a readable safetensors file")
    (folder / "sched_a.json").write_text("{")
    refused(sanawm("verify", folder), "sched_a.json: not readable as JSON")


def test_a_folder_without_a_case(tmp_path: Path) -> None:
    refused(sanawm("verify", tmp_path), "no case in it")
    (tmp_path / "notes.json").write_text(json.dumps({"a": "note"}))
    refused(sanawm("verify", tmp_path), "no case in it")
    refused(sanawm("verify", tmp_path, "notes"), "notes")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--tol=nan", "--tol nan is not a number of 0 or more"),
        ("--tol=-1", "--tol -1.0 is not a number of 0 or more"),
        ("--dtype=int8", "--dtype 'int8' is not known; use float32, float64, bfloat16"),
        ("--device=gpu", "--device 'gpu' is not known"),
    ],
)
def test_bad_options(option: str, said: str) -> None:
    ran = sanawm("verify", FIXTURES, option)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
