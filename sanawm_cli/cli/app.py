"""The commands."""

from typing import Annotated

import typer

from sanawm_cli import __version__
from sanawm_cli.cli.inspect import inspect
from sanawm_cli.cli.plan import plan
from sanawm_cli.cli.presets import presets
from sanawm_cli.cli.render import render
from sanawm_cli.cli.verify import verify

app = typer.Typer(
    help="Render SANA-WM world-model videos, offline: first frame + prompt + camera path → MP4.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a bug shows Python's own traceback, complete and plain
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"sanawm {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


app.command()(render)
app.command()(plan)
app.command()(inspect)
app.command()(verify)
app.add_typer(presets, name="presets")
