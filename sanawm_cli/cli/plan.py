"""`sanawm plan`: how a clip will be cut, and what it needs; loads no model."""

import json

import typer

from sanawm_cli.cli import options
from sanawm_cli.cli.shell import user_errors
from sanawm_cli.errors import UsageError
from sanawm_cli.jobs.request import ClipRequest
from sanawm_cli.preset.overrides import Overrides, parse_steps, parse_window

ITEMSIZES = {"auto": 4, "float32": 4, "bfloat16": 2}


def plan(
    preset: options.Preset = "tiny",
    model: options.Model = None,
    image: options.Image = None,
    action: options.Action = None,
    camera: options.Camera = None,
    no_camera: options.NoCamera = False,
    action_dialect: options.ActionDialect = None,
    camera_fit: options.CameraFit = "error",
    translation_speed: options.TranslationSpeed = None,
    rotation_speed: options.RotationSpeed = None,
    intrinsics: options.Intrinsics = None,
    save_camera: options.SaveCamera = None,
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
    dtype: options.Dtype = "auto",
    as_json: options.Json = False,
) -> None:
    """Show how a clip will be cut into chunks and what memory it needs; loads no model."""
    with user_errors(as_json=as_json):
        from sanawm_cli.camera.trajectory import save_trajectory
        from sanawm_cli.jobs.resolve import resolve_plan
        from sanawm_cli.memory_estimate import estimate_memory

        if dtype not in ITEMSIZES:
            raise UsageError(f"--dtype {dtype!r} is not known", hint=f"use {', '.join(ITEMSIZES)}")
        request = ClipRequest(
            preset=preset,
            overrides=Overrides(
                height=height,
                width=width,
                fps=fps,
                crf=crf,
                window=parse_window(kv_window) if kv_window is not None else None,
                sink=sink,
                steps=parse_steps(steps) if steps is not None else None,
                cfg_scale=cfg_scale,
                noise=noise,
                seed=seed,
                dialect=action_dialect,
                translation_speed=translation_speed,
                rotation_speed=rotation_speed,
            ),
            model=model,
            image=image,
            action=action,
            camera=camera,
            no_camera=no_camera,
            camera_fit=camera_fit,
            intrinsics=intrinsics,
            frames=frames,
            seconds=seconds,
            snap=snap,
            chunk_plan=chunk_plan,
        )
        resolved = resolve_plan(request)
        memory = estimate_memory(resolved.preset, resolved.plan, itemsize=ITEMSIZES[dtype])
        if save_camera is not None:
            if resolved.camera is None:
                raise UsageError("--save-camera needs a camera", hint="add --action or --camera")
            save_trajectory(save_camera, resolved.camera.poses, resolved.camera.intrinsics.values)
        if as_json:
            typer.echo(json.dumps(resolved.plan.as_json(memory.as_json())))
            return
        from sanawm_cli.cli.view import show_plan

        show_plan(resolved, memory)
