"""What a person asks for, as given. Resolving and checking it is `jobs.resolve`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sanawm_cli.camera.choices import Fit
from sanawm_cli.plan.request import Snap
from sanawm_cli.preset.overrides import Overrides, option_name, parse_steps, parse_window


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipRequest:
    """The settings and inputs that decide what a clip will be; None: not given."""

    preset: str = "tiny"
    overrides: Overrides = Overrides()  # noqa: RUF009  frozen, so safe to share
    model: Path | None = None
    image: Path | None = None
    prompt: str | None = None
    prompt_file: Path | None = None
    text_embeds: Path | None = None
    negative_prompt: str | None = None
    action: str | None = None
    camera: Path | None = None
    no_camera: bool = False
    camera_fit: Fit = "error"
    intrinsics: str | None = None
    frames: int | None = None
    seconds: float | None = None
    snap: Snap = "vae"
    chunk_plan: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRequest:
    """Where and how a render runs. "auto" means what the machine is best at."""

    device: str = "auto"
    dtype: str = "auto"
    threads: int | None = None


def clip_request(given: Mapping[str, Any]) -> ClipRequest:
    """The request that render options make, by their names: `kv_window` for `--kv-window`.

    An option that is absent or None is not given; options that say nothing about the clip are
    passed over. Values have the types of the fields, but for `steps` and `kv_window`, which are
    text. Raises UsageError when that text cannot be read.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    inputs = {f.name: chosen[f.name] for f in fields(ClipRequest) if f.name in chosen}
    settings = {
        f.name: chosen[name]
        for f in fields(Overrides)
        if (name := option_name(f.name).removeprefix("--").replace("-", "_")) in chosen
    }
    for setting, parse in (("steps", parse_steps), ("window", parse_window)):
        if setting in settings:
            settings[setting] = parse(settings[setting])
    return ClipRequest(**(inputs | {"overrides": Overrides(**settings)}))
