"""What surrounds every command: errors become one line and an exit code."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from sanawm_cli.errors import SanaWMError


@contextmanager
def user_errors(*, as_json: bool = False) -> Iterator[None]:
    """End the program with an error's line and code; with `as_json`, also as JSON on stdout."""
    try:
        yield
    except SanaWMError as error:
        tell(error, as_json=as_json)
        raise typer.Exit(int(error.exit_code)) from error


def tell(error: SanaWMError, *, as_json: bool) -> None:
    """An error's line on stderr; with `as_json`, also as JSON on stdout."""
    typer.echo(f"error: {one_line(error)}", err=True)
    if as_json:
        told = {"error": error.message, "hint": error.hint, "exit_code": int(error.exit_code)}
        typer.echo(json.dumps(told))


def one_line(error: SanaWMError) -> str:
    """Message and hint. A message with a picture below (a caret) keeps its lines."""
    if error.hint is None:
        return error.message
    return f"{error.message}{chr(10) if chr(10) in error.message else '; '}{error.hint}"
