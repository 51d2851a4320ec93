"""What a person asks for, as given. Resolving it is `jobs.resolve`; nothing here is checked."""

from dataclasses import dataclass
from pathlib import Path

from sanawm_cli.camera.fit import Fit
from sanawm_cli.plan.request import Snap
from sanawm_cli.preset.overrides import Overrides


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
