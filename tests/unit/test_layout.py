"""The law of imports: they go downward only, and what is promised to be light stays light.

Each law is shown to bite on a small bad tree before it is asked about the real one.
"""

import re

import pytest
from import_law import (
    PACKAGE,
    Sources,
    heavy,
    read_sources,
    says_cuda,
    strays,
    unsafe,
    upward,
    worldly,
)

SOURCES = read_sources()
MAX_LINES = 400


def tree(**modules: str) -> dict[str, str]:
    """A made-up package; `__` within a name stands for a dot."""
    names = {name: re.sub(r"(?<=[a-z])__(?=[a-z])", ".", name) for name in modules}
    return {PACKAGE: "", **{f"{PACKAGE}.{names[name]}": text for name, text in modules.items()}}


def test_the_real_tree_is_found() -> None:
    assert {PACKAGE, f"{PACKAGE}.errors", f"{PACKAGE}.configs"} <= SOURCES.keys()


@pytest.mark.parametrize(
    "bad",
    [
        tree(errors="", grid="import sanawm_cli.plan", plan=""),
        tree(grid="def f():\n    from sanawm_cli import plan", plan=""),
        tree(plan="from sanawm_cli.camera.actions import parse", camera__actions=""),
        tree(conditioning__image="from sanawm_cli.vae.encoder import encode", vae__encoder=""),
        tree(output__mp4="from sanawm_cli.rollout import loop", rollout__loop=""),
        tree(plan="from sanawm_cli.memory_estimate import total", memory_estimate=""),
        tree(jobs__x="import sanawm_cli.verify_clip", verify_clip=""),
        tree(memory_estimate="from sanawm_cli.vae.decoder import x", vae__decoder=""),
        tree(vae__estimate="from sanawm_cli.preset import load", preset=""),
        tree(verify_clip="from sanawm_cli.cli import view", cli__view=""),
        tree(errors="from . import grid", grid=""),
        tree(helpers=""),
        tree(cli__app="import sanawm_cli.helpers"),
    ],
    ids=lambda bad: " ".join(list(bad)[1:]),
)
def test_an_import_that_does_not_go_down_is_seen(bad: Sources) -> None:
    assert len(upward(bad)) == 1, upward(bad)


def test_imports_that_go_down_are_let_through() -> None:
    assert not upward(
        tree(
            __main__="from sanawm_cli.cli.app import app",
            cli__app="import typer\nfrom sanawm_cli import __version__, jobs",
            jobs="from sanawm_cli.jobs.render import x",
            jobs__render="import torch\nfrom sanawm_cli.vae.estimate import x",
            memory_estimate="from sanawm_cli.vae.estimate import x\nfrom sanawm_cli.plan import y",
            vae__estimate="from sanawm_cli.configs import VaeConfig",
            plan="from sanawm_cli.near import near",
            configs="",
            near="",
        )
    )


def test_imports_go_down() -> None:
    assert not upward(SOURCES)


@pytest.mark.parametrize(
    "bad",
    [
        tree(grid="import torch.nn"),
        tree(camera__paths="from safetensors.torch import load_file"),
        tree(preset="from sanawm_cli.configs import x", configs="from torch import Tensor"),
        tree(
            memory_estimate="from sanawm_cli.vae.estimate import x",
            vae="import torch",
            vae__estimate="",
        ),
    ],
    ids=["plain", "by a library", "by another", "by a folder"],
)
def test_a_way_to_torch_is_seen(bad: Sources) -> None:
    assert heavy(bad)


def test_light_parts_never_come_to_torch() -> None:
    assert not heavy(SOURCES)


def test_only_the_view_knows_rich_and_only_the_command_line_knows_typer() -> None:
    assert strays(tree(plan="from rich.text import Text"), "rich", "cli.view")
    assert strays(tree(cli__app="import rich"), "rich", "cli.view")
    assert not strays(tree(cli__view="import rich"), "rich", "cli.view")
    assert not strays(SOURCES, "rich", "cli.view")
    assert not strays(SOURCES, "typer", "cli")


def test_the_network_and_its_loop_know_no_files_and_no_console() -> None:
    assert worldly(tree(rollout__loop="from pathlib import Path"))
    assert worldly(tree(model__dit="def f():\n    print(1)"))
    assert not worldly(tree(jobs__render="import os"))
    assert not worldly(SOURCES)


def test_the_network_and_its_loop_know_no_kind_of_device() -> None:
    assert says_cuda(tree(model__dit="x.to('cuda:0')"))
    assert not says_cuda(SOURCES)


@pytest.mark.parametrize(
    "line",
    [
        "import os, pickle",
        "from pickle import loads",
        "import os; os.system('ls')",
        "from os import popen",
        "run('ls', shell=True)",
        "run('ls', shell=loud)",
        "np.load(path, allow_pickle=True)",
        "eval('1')",
        "exec(text)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "from torch import load",
    ],
)
def test_a_way_to_run_foreign_code_is_seen(line: str) -> None:
    assert list(unsafe(line))


def test_harmless_lookalikes_are_let_through() -> None:
    text = "model.eval()\ntorch.load(p, weights_only=True)\nnp.load(p, allow_pickle=False)\n"
    assert not list(unsafe(text))


def test_nothing_runs_foreign_code() -> None:
    assert not {module: bad for module, text in SOURCES.items() if (bad := list(unsafe(text)))}


def test_no_file_is_too_long_to_read_in_one_sitting() -> None:
    lines = {module: text.count("\n") for module, text in SOURCES.items()}
    assert not {module: n for module, n in lines.items() if n > MAX_LINES}
