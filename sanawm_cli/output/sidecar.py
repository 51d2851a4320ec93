"""OUT.json beside OUT.mp4: what the video was made from."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from sanawm_cli.errors import InputError
from sanawm_cli.output.files import json_bytes
from sanawm_cli.regular import refuse_odd_file

SCHEMA = 1

_HINT = "name the OUT.json that a render wrote beside its OUT.mp4"

MOST_BYTES = 1 << 28


def sidecar_path(video: Path) -> Path:
    """OUT.mp4 -> OUT.json."""
    return video.with_suffix(".json")


def sidecar_bytes(content: Mapping[str, Any]) -> bytes:
    """The sidecar file of `content`, its schema version first."""
    if "schema" in content:
        raise ValueError("the schema version is not part of a sidecar's content")
    return json_bytes({"schema": SCHEMA, **content})


def read_sidecar(path: Path) -> dict[str, Any]:
    """The content of a sidecar, without its schema version.

    Raises InputError if `path` is missing, is no JSON, or has another schema.
    """
    refuse_odd_file(path, InputError, most=MOST_BYTES)
    try:
        value = json.loads(path.read_bytes(), parse_constant=_refuse)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read {path}: {reason}", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}", hint=_HINT) from error
    if not isinstance(value, dict) or "schema" not in value:
        raise InputError(f"{path} is JSON, but no sidecar: it has no schema version", hint=_HINT)
    schema = value.pop("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise InputError(
            f"{path} has schema {schema!r}, expected {SCHEMA}",
            hint="read it with the version of sanawm that wrote it",
        )
    return value


def check_belongs(
    sidecar: Mapping[str, Any], video: Path, *, frames: int, size: tuple[int, int]
) -> None:
    """Raise InputError when a sidecar is plainly another video's; `size` is (width, height)."""
    width, height = size
    for name, have in (("frames", frames), ("width", width), ("height", height)):
        told = sidecar.get(name)
        if isinstance(told, int) and told != have:
            raise InputError(
                f"{sidecar_path(video)} is not the sidecar of {video}: "
                f"it says {name} {told}, the video has {have}",
                hint="put the OUT.json of this render beside it",
            )


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} is not a JSON number")
