"""`sanawm presets`: what can be rendered with."""

from typing import Annotated

import typer

from sanawm_cli.cli.shell import user_errors
from sanawm_cli.preset.finding import list_presets, load_preset, preset_file
from sanawm_cli.preset.writing import preset_toml

presets = typer.Typer(help="List the presets, show one, or tell where it lies.")

Name = Annotated[str, typer.Argument(help="Name or TOML file of a preset.")]


@presets.command("list")
def list_all() -> None:
    """List the shipped presets."""
    with user_errors():
        names = list_presets()
        width = max(map(len, names))
        for name in names:
            typer.echo(f"{name:<{width}}  {load_preset(name).title}")


@presets.command()
def show(name: Name) -> None:
    """Print a preset, complete, as TOML."""
    with user_errors():
        typer.echo(preset_toml(load_preset(name)), nl=False)


@presets.command()
def path(name: Name) -> None:
    """Print where a preset's file lies."""
    with user_errors():
        typer.echo(preset_file(name))
