"""Running the command line inside the test's process, and making what it reads."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

from sanawm_cli.cli.main import run
from sanawm_cli.preset.finding import load_preset

ROOT = Path(__file__).parents[2]
TINY = load_preset("tiny")


@dataclass(frozen=True)
class Ran:
    """An exit code and what was printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout, which must be JSON and nothing else."""
        return json.loads(self.out)


def sanawm(*arguments: object) -> Ran:
    """Run one command line."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = run([str(argument) for argument in arguments])
    return Ran(code, out.getvalue(), err.getvalue())


def flags(**options: object) -> list[str]:
    """Options by their names with `_`: True is a flag, None and False leave the option out."""
    given = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            given.append(option)
        elif value is not None and value is not False:
            given.append(f"{option}={value}")
    return given


def render_flags(**options: object) -> list[str]:
    """A render that is quick, unless `options` make it something else."""
    camera = {"action", "camera", "no_camera"} & options.keys()
    quick = {"image": "first.png", "prompt": "a courtyard", "no_camera": not camera}
    quick |= {"frames": 17, "height": 64, "width": 64, "threads": 1, "output": "clip.mp4"}
    return ["render", *flags(**(quick | options))]


def render(**options: object) -> Ran:
    """A quick render that has to succeed."""
    ran = sanawm(*render_flags(**options))
    assert ran.code == 0, ran.err
    return ran


def hashes(**options: object) -> list[str]:
    """The frame hashes of a quick render, one per chunk."""
    return list(render(**({"overwrite": True, "json": True} | options)).json["frame_hashes"])


def picture(width: int, height: int) -> Image.Image:
    """A picture that no flip or turn leaves as it is."""
    rows, columns = np.mgrid[0:height, 0:width]
    red, green = rows * 255 // height, columns * 255 // width
    return Image.fromarray(np.stack((red, green, red * green // 255), -1).astype(np.uint8))


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes; folders have None."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def copied_model(folder: Path) -> Path:
    """The tiny preset's model, to be damaged."""
    return Path(shutil.copytree(ROOT / "presets" / "tiny", folder))


def record(model: Path, file: str) -> None:
    """Make model.json say of a file what is true now."""
    told = json.loads((model / "model.json").read_text())
    data = (model / file).read_bytes()
    told["files"][file] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (model / "model.json").write_text(json.dumps(told))


def change_tensor(model: Path, file: str, name: str, change: Callable[[Tensor], Tensor]) -> None:
    """Write one tensor anew and record the file: a model that is whole, and other."""
    tensors = load_file(model / file)
    tensors[name] = change(tensors[name]).contiguous()
    save_file(tensors, model / file)
    record(model, file)
