"""From a request to everything a render needs, checked, before any weights are loaded.

Torch-free. `resolve_plan` is what `sanawm plan` shows: camera and image may be missing.
`resolve_clip` is what a render needs on top: a first frame, one prompt, one camera or none.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sanawm_cli.camera.actions import parse_action
from sanawm_cli.camera.fit import fit_poses
from sanawm_cli.camera.intrinsics import CoverCrop, Intrinsics, Size, choose_intrinsics
from sanawm_cli.camera.intrinsics_flag import parse_intrinsics
from sanawm_cli.camera.kinematics import DIALECTS, Kinematics, roll_out
from sanawm_cli.camera.poses import Poses
from sanawm_cli.camera.trajectory import Trajectory, load_trajectory
from sanawm_cli.conditioning.image import SourceImage, cover, open_image
from sanawm_cli.errors import InputError, UsageError
from sanawm_cli.jobs.request import ClipRequest
from sanawm_cli.plan.chunks import Plan
from sanawm_cli.plan.request import FrameRequest, make_plan
from sanawm_cli.plan.sizes import parse_chunk_plan
from sanawm_cli.preset.finding import load_preset, model_folder
from sanawm_cli.preset.overrides import merge
from sanawm_cli.preset.settings import CameraSettings, Preset
from sanawm_cli.regular import refuse_odd_file
from sanawm_cli.weights.folder import ModelFolder, open_model_folder

MOST_PROMPT_BYTES = 1 << 20
MOSTLY_KEPT = 0.6  # a 4:3 photo keeps 80 %; less than this is worth a word


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolvedCamera:
    """One pose per frame (F, 4, 4) and intrinsics (1 or F, 4) in source-image pixels."""

    poses: Poses
    intrinsics: Intrinsics
    source: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolvedPlan:
    """What can be said without weights. `image_size` is (width, height), the target's if there
    is no image; `model` is None when no folder is named; `notes` are remarks for people."""

    preset: Preset
    plan: Plan
    model: ModelFolder | None
    image: SourceImage | None
    image_size: Size
    camera: ResolvedCamera | None
    notes: tuple[str, ...]

    @property
    def target(self) -> Size:
        """(width, height) of the video."""
        return self.preset.video.width, self.preset.video.height


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResolvedClip:
    """A plan with everything a render needs. Either `prompt` or `text_embeds` is there."""

    resolved: ResolvedPlan
    model: ModelFolder
    first_frame: NDArray[np.uint8]  # h w 3
    prompt: str | None
    negative_prompt: str | None
    text_embeds: Path | None


def resolve_plan(request: ClipRequest) -> ResolvedPlan:
    """Preset, plan and camera of a request. Raises the error of whatever does not fit."""
    _refuse_both(("--action", request.action), ("--camera", request.camera),
                 ("--no-camera", request.no_camera or None))  # fmt: skip
    _refuse_both(("--no-camera", request.no_camera or None), ("--intrinsics", request.intrinsics))
    preset = merge(load_preset(request.preset), request.overrides)
    folder = request.model or model_folder(request.preset)
    model = open_model_folder(folder) if folder is not None else None
    if model is not None:
        model.check_fits(preset)
    trajectory = _trajectory(request, preset.camera)
    plan = make_plan(preset, _frame_request(request, trajectory))
    image = open_image(request.image) if request.image is not None else None
    size = image.size if image is not None else (preset.video.width, preset.video.height)
    notes: list[str] = []
    camera = None
    if trajectory is not None:
        camera, remarks = _camera(request, trajectory, plan, image, size)
        notes += remarks
    if image is not None:
        notes += _image_notes(image, (preset.video.width, preset.video.height))
    return ResolvedPlan(
        preset=preset,
        plan=plan,
        model=model,
        image=image,
        image_size=size,
        camera=camera,
        notes=tuple(notes),
    )


def resolve_clip(request: ClipRequest) -> ResolvedClip:
    """Everything a render needs. Raises UsageError naming what is missing."""
    if request.action is None and request.camera is None and not request.no_camera:
        raise UsageError(
            "no camera: one of --action, --camera, --no-camera is needed",
            hint='for example --action "w-24,d-24,w-24"',
        )
    if request.image is None:
        raise UsageError("no first frame", hint="add --image FILE")
    prompt = _prompt(request)
    resolved = resolve_plan(request)
    model, image = resolved.model, resolved.image
    if model is None:
        raise UsageError(
            f"preset {resolved.preset.name} has no weights of its own",
            hint="name a model folder with --model DIR",
        )
    kind = resolved.preset.text.kind
    if kind != "bytes" and request.text_embeds is None:
        raise UsageError(
            f"preset {resolved.preset.name} has no text encoder inside",
            hint="encode the prompt beforehand and give it with --text-embeds FILE",
        )
    guided = resolved.preset.sampler.cfg_scale > 1.0
    if guided and request.negative_prompt is None and request.text_embeds is None:
        raise UsageError(
            f"--cfg-scale {resolved.preset.sampler.cfg_scale:g} needs a negative prompt",
            hint="add --negative-prompt TEXT, or use --cfg-scale 1",
        )
    if request.negative_prompt is not None and not guided:
        note = "the negative prompt has no effect: guidance is off (--cfg-scale is 1)"
        resolved = replace(resolved, notes=(*resolved.notes, note))
    assert image is not None  # request.image was given
    return ResolvedClip(
        resolved=resolved,
        model=model,
        first_frame=cover(image, resolved.target),
        prompt=prompt,
        negative_prompt=_utf8(request.negative_prompt, "the negative prompt")
        if request.negative_prompt is not None
        else None,
        text_embeds=request.text_embeds,
    )


def kinematics(settings: CameraSettings) -> Kinematics:
    """The dialect's kinematics with the preset's or the run's speeds."""
    base = DIALECTS[settings.dialect]
    translation, rotation = settings.translation_speed, settings.rotation_speed
    return replace(
        base,
        translation_speed=base.translation_speed if translation is None else translation,
        rotation_speed=base.rotation_speed if rotation is None else rotation,
    )


# --- camera -----------------------------------------------------------------------------------


def _trajectory(request: ClipRequest, settings: CameraSettings) -> Trajectory | None:
    """The path as the action or the file gives it, before it is fitted to the frames."""
    if request.action is not None:
        path = roll_out(parse_action(request.action), kinematics(settings))
        source = f"action {request.action!r}, dialect {settings.dialect}"
        return Trajectory(poses=path.poses, intrinsics=None, fps=None, source=source)
    return load_trajectory(request.camera) if request.camera is not None else None


def _camera(
    request: ClipRequest,
    trajectory: Trajectory,
    plan: Plan,
    image: SourceImage | None,
    size: Size,
) -> tuple[ResolvedCamera, list[str]]:
    """A pose for every frame, intrinsics, and remarks on both."""
    flag = parse_intrinsics(request.intrinsics, size) if request.intrinsics is not None else None
    chosen = choose_intrinsics(
        flag=flag,
        trajectory=trajectory.intrinsics,
        focal_35mm=image.focal_35mm if image is not None else None,
        size=size,
    )
    # Where the poses themselves say how long the clip is, those left over are no contradiction.
    how = "truncate" if plan.source == "poses" else request.camera_fit
    rows = chosen.values
    poses_only = len(rows) not in (1, len(trajectory.poses))
    fitted = fit_poses(
        trajectory.poses, plan.frames, how=how, intrinsics=None if poses_only else rows
    )
    if poses_only:
        rows = _rows_for(rows, plan.frames)
    elif fitted.intrinsics is not None:
        rows = fitted.intrinsics
    intrinsics = replace(chosen, values=rows)
    remarks = [fitted.note] if fitted.note is not None else []
    if chosen.source == "guess":
        focal = chosen.values[0, 0]
        remarks.append(f"focal length {focal:.0f} px is a guess; --intrinsics fov=70 sets it")
    camera = ResolvedCamera(poses=fitted.poses, intrinsics=intrinsics, source=trajectory.source)
    return camera, remarks


def _rows_for(rows: NDArray[np.float64], frames: int) -> NDArray[np.float64]:
    """Intrinsics given frame by frame that match the clip's frames, not the path's poses."""
    if len(rows) < frames:
        raise InputError(
            f"--intrinsics has {len(rows)} rows, the clip has {frames} frames",
            hint="give one row for the whole clip, or one per frame",
        )
    return rows[:frames]


# --- the rest ---------------------------------------------------------------------------------


def _frame_request(request: ClipRequest, trajectory: Trajectory | None) -> FrameRequest:
    by_hand = parse_chunk_plan(request.chunk_plan) if request.chunk_plan is not None else None
    return FrameRequest(
        chunk_plan=by_hand,
        frames=request.frames,
        seconds=request.seconds,
        poses=len(trajectory.poses) if trajectory is not None else None,
        snap=request.snap,
    )


def _prompt(request: ClipRequest) -> str | None:
    """The one prompt, None when embeddings are given instead."""
    _refuse_both(("--prompt", request.prompt), ("--prompt-file", request.prompt_file),
                 ("--text-embeds", request.text_embeds))  # fmt: skip
    if request.text_embeds is not None:
        if request.negative_prompt is not None:
            raise UsageError(
                "--negative-prompt and --text-embeds exclude each other",
                hint="put negative_embeds and negative_mask into the file",
            )
        return None
    if request.prompt is None and request.prompt_file is None:
        raise UsageError(
            "no prompt: one of --prompt, --prompt-file, --text-embeds is needed",
            hint='for example --prompt "a walled courtyard"',
        )
    if request.prompt is not None:
        text = request.prompt
    else:
        text = _read_prompt(request.prompt_file)
    if not text.strip():
        raise InputError("the prompt is empty", hint="say in a few words what the scene is")
    return _utf8(text.strip(), "the prompt")


def _utf8(text: str, what: str) -> str:
    """`text`, which must be real text: a shell can hand over bytes that are none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} is not UTF-8 text: {text[:40]!a}", hint="give it as a file, --prompt-file"
        ) from error
    return text


def _read_prompt(path: Path | None) -> str:
    assert path is not None
    refuse_odd_file(path, InputError, most=MOST_PROMPT_BYTES)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such prompt file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not readable as UTF-8 text: {error}") from error


def _refuse_both(*options: tuple[str, object]) -> None:
    given = [name for name, value in options if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other", hint=f"keep {given[0]} only")


def _image_notes(image: SourceImage, target: Size) -> list[str]:
    crop = CoverCrop(source=image.size, target=target)
    width, height = image.size
    notes = []
    if crop.resized[0] > width:
        notes.append(f"the first frame ({width}×{height}) is smaller than the video: scaled up")
    kept = target[0] * target[1] / (crop.resized[0] * crop.resized[1])
    if kept < MOSTLY_KEPT:
        notes.append(f"only the middle {kept:.0%} of the first frame ({width}×{height}) is seen")
    return notes
