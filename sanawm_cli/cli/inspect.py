"""`sanawm inspect`: what a video is and how it was made."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sanawm_cli.cli import options
from sanawm_cli.cli.shell import user_errors


def inspect(
    video: Annotated[Path, typer.Argument(metavar="OUT.mp4", help="A rendered video.")],
    as_json: options.Json = False,
) -> None:
    """Show what a rendered video is and how it was made (from OUT.json beside it)."""
    with user_errors(as_json=as_json):
        from sanawm_cli.output.ffmpeg import bundled_ffmpeg
        from sanawm_cli.output.sidecar import SCHEMA, check_belongs, read_sidecar, sidecar_path
        from sanawm_cli.output.verify import read_facts

        facts = read_facts(video, ffmpeg=bundled_ffmpeg())
        sidecar = read_sidecar(sidecar_path(video))
        check_belongs(sidecar, video, frames=facts.frames, size=(facts.width, facts.height))
        if as_json:
            told = {"video": asdict(facts), "sidecar": {"schema": SCHEMA, **sidecar}}
            typer.echo(json.dumps(told, indent=2))
            return
        from sanawm_cli.cli.view import show_inspection

        show_inspection(video, facts, sidecar)
