"""`sanawm plan`: how a clip will be cut, and what it needs; loads no model."""

import json
import sys

import typer

from sanawm_cli.cli import options
from sanawm_cli.cli.shell import user_errors
from sanawm_cli.errors import UsageError
from sanawm_cli.jobs.request import clip_request

ITEMSIZES = {"auto": 4, "float32": 4, "bfloat16": 2}


def plan(
    ctx: typer.Context,
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
        resolved = resolve_plan(clip_request(ctx.params))
        memory = estimate_memory(resolved.preset, resolved.plan, itemsize=ITEMSIZES[dtype])
        if save_camera is not None:
            if resolved.camera is None:
                raise UsageError("--save-camera needs a camera", hint="add --action or --camera")
            save_trajectory(save_camera, resolved.camera.poses, resolved.camera.intrinsics.values)
            told = f"wrote {save_camera}: {len(resolved.camera.poses)} poses"
            if image is None:  # intrinsics count pixels of the picture they are used with
                wide, high = resolved.image_size
                told += f"; its intrinsics are for a {wide}×{high} image, since none was given"
            print(told, file=sys.stderr)
        if as_json:
            typer.echo(json.dumps(resolved.plan.as_json(memory.as_json())))
            return
        from sanawm_cli.cli.view import show_plan

        show_plan(resolved, memory)
