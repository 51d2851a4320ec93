"""`sanawm render`: first frame + prompt + camera → MP4."""

import json
from pathlib import Path

import typer

from sanawm_cli.cli import options
from sanawm_cli.cli.shell import user_errors
from sanawm_cli.jobs.request import ClipRequest, MachineRequest, clip_request


def render(
    ctx: typer.Context,
    preset: options.Preset = "tiny",
    model: options.Model = None,
    image: options.Image = None,
    prompt: options.Prompt = None,
    prompt_file: options.PromptFile = None,
    text_embeds: options.TextEmbeds = None,
    negative_prompt: options.NegativePrompt = None,
    action: options.Action = None,
    camera: options.Camera = None,
    no_camera: options.NoCamera = False,
    action_dialect: options.ActionDialect = None,
    camera_fit: options.CameraFit = "error",
    translation_speed: options.TranslationSpeed = None,
    rotation_speed: options.RotationSpeed = None,
    intrinsics: options.Intrinsics = None,
    frames: options.Frames = None,
    seconds: options.Seconds = None,
    snap: options.SnapOption = "vae",
    chunk_plan: options.ChunkPlan = None,
    seed: options.Seed = None,
    noise: options.Noise = None,
    steps: options.Steps = None,
    cfg_scale: options.CfgScale = None,
    kv_window: options.KvWindow = None,
    sink: options.Sink = None,
    height: options.Height = None,
    width: options.Width = None,
    fps: options.Fps = None,
    crf: options.Crf = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    threads: options.Threads = None,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Render a video from a first frame, a prompt and a camera path."""
    with user_errors(as_json=as_json):
        _run(
            clip_request(ctx.params),
            MachineRequest(device=device, dtype=dtype, threads=threads),
            output,
            overwrite=overwrite,
            dry_run=dry_run,
            as_json=as_json,
            quiet=quiet,
        )


def _run(
    request: ClipRequest,
    machine_request: MachineRequest,
    output: Path | None,
    *,
    overwrite: bool,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Resolve, check, render, tell. Nothing is loaded before everything has been checked."""
    from sanawm_cli.jobs.resolve import resolve_clip

    clip = resolve_clip(request)
    # torch is loaded from here on
    from sanawm_cli.cli.view import progress, show_plan, show_report
    from sanawm_cli.jobs.machine import choose_machine, return_large_blocks
    from sanawm_cli.jobs.render import check_render, render_clip
    from sanawm_cli.memory_estimate import estimate_memory

    machine = choose_machine(machine_request)
    target = output if output is not None else _default_output(request)
    check_render(clip, request, target, overwrite=overwrite)
    if dry_run:
        resolved = clip.resolved
        memory = estimate_memory(resolved.preset, resolved.plan, itemsize=machine.dtype.itemsize)
        if as_json:
            typer.echo(json.dumps(resolved.plan.as_json(memory.as_json())))
        elif not quiet:
            show_plan(resolved, memory)
        return
    return_large_blocks()
    with progress(clip, machine, quiet=quiet) as on_event:
        report = render_clip(clip, request, machine, target, overwrite=overwrite, on_event=on_event)
    if as_json:
        typer.echo(json.dumps(report.as_json()))
    elif not quiet:
        show_report(report, clip.model.label)


def _default_output(request: ClipRequest) -> Path:
    """The first frame's name, in the current folder."""
    assert request.image is not None
    return Path(f"{request.image.stem}.mp4")
