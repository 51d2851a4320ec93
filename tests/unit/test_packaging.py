"""The wheel works by itself: installed into an empty environment, away from this folder."""

import email
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from sanawm_cli import __version__

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; its complaints are shown when it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel in it, and what the wheel needs, by a .pth.

    Lines of a .pth go to the end of the path and their own .pth files are not read, so neither an
    editable install of this folder nor an older copy can stand in for the wheel.
    """
    home = tmp_path_factory.mktemp("clean") / "env"
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home.parent)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "-q", "--no-deps", "--no-index", wheel, cwd=home.parent)
    inside = run(
        python, "-Ic", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home.parent
    )
    needed = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (Path(inside.strip()) / "needed.pth").write_text("\n".join(needed) + "\n")
    return home


def test_the_wheel_holds_the_package_its_presets_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    assert all(re.match(r"sanawm_cli/|sanawm-[^/]*\.dist-info/", name) for name in names)
    for path in [*(ROOT / "sanawm_cli").rglob("*.py"), *(ROOT / "presets").rglob("*")]:
        inside = path.relative_to(ROOT)
        if path.is_file():
            packed = f"sanawm_cli/{inside}" if inside.parts[0] == "presets" else str(inside)
            assert packed in names
    presets = {name.removeprefix("sanawm_cli/presets/") for name in names}
    assert any(re.fullmatch(r"[^/]+\.toml", name) for name in presets)
    assert any(name.startswith("tiny/") for name in presets)
    assert not [name for name in names if re.search(r"\.pyc$|/tests?[/_]", name)]


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheel) as archive:
        info = f"sanawm-{__version__}.dist-info"
        said = email.message_from_bytes(archive.read(f"{info}/METADATA"))
        commands = archive.read(f"{info}/entry_points.txt").decode().split("\n")
        licence = archive.read(f"{info}/licenses/LICENSE")
    assert (said["Name"], said["Version"]) == ("sanawm", __version__)
    assert said["License-Expression"] == "Apache-2.0"
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert commands[:2] == ["[console_scripts]", f"sanawm = {project['scripts']['sanawm']}"]


def test_presets_come_from_the_installed_wheel(environment: Path, tmp_path: Path) -> None:
    code = (
        "import sanawm_cli; from sanawm_cli.preset import list_presets;"
        "print(sanawm_cli.__file__); print(list_presets())"
    )
    where, presets = run(environment / "bin" / "python", "-Ic", code, cwd=tmp_path).splitlines()
    assert Path(where).is_relative_to(environment)
    for preset in (ROOT / "presets").glob("*.toml"):
        assert preset.stem in presets


def test_the_installed_command_lists_presets(environment: Path, tmp_path: Path) -> None:
    listed = run(environment / "bin" / "sanawm", "presets", "list", cwd=tmp_path)
    for preset in (ROOT / "presets").glob("*.toml"):
        assert preset.stem in listed


def test_what_make_installs_is_allowed_by_the_project() -> None:
    """Each direct dependency is pinned, so that a release elsewhere cannot change a test run."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pins = dict(
        line.lower().split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    assert {re.split(r"[<>=~]", need)[0] for need in wanted} <= pins.keys()
    assert "+" not in pins["torch"]  # a local version would fit one build of torch only
