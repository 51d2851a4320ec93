"""TOML values against type hints: does a value fit, what was expected, and its frozen form."""

import math
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

_PLAIN = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
_LONGEST_SHOWN = 120


def fits(value: object, hint: Any) -> bool:
    """Whether a TOML value is of a type hint's kind.

    A bool is no integer, an integer is a number, lists stand for tuples; infinities and NaN are
    no numbers.
    """
    if hint is bool or hint is str:
        return isinstance(value, hint)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return _is_number(value)
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, member) for member in get_args(hint) if member is not type(None))
    members = _members(value, hint)
    return members is not None and all(fits(v, h) for v, h in members)


def freeze(value: object, hint: Any) -> object:
    """A value that fits, as the settings hold it: tuples for lists, floats where floats belong."""
    if hint is float and isinstance(value, int):
        return float(value)
    if get_origin(hint) in (Union, UnionType):
        members = [m for m in get_args(hint) if m is not type(None)]
        return freeze(value, next(m for m in members if fits(value, m)))
    members_of = _members(value, hint) if get_origin(hint) is tuple else None
    return tuple(freeze(v, h) for v, h in members_of) if members_of is not None else value


def expected(hint: Any) -> str:
    """A type hint in words."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    arguments = [a for a in get_args(hint) if a is not type(None)]
    if get_origin(hint) is Literal:
        return " or ".join(f'"{a}"' for a in arguments)
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(expected(a) for a in arguments)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return f"a list, each {expected(arguments[0])}"
    return f"a list of {len(arguments)}, each {expected(arguments[0])}"


def shown(value: object) -> str:
    """A TOML value for an error message, cut when long."""
    try:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return "a number too long to show"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def _members(value: object, hint: Any) -> list[tuple[object, Any]] | None:
    """Each entry of a list with the hint it has to fit; None where the length is wrong."""
    if not isinstance(value, list):
        return None
    hints = get_args(hint)
    if len(hints) == 2 and hints[1] is Ellipsis:
        return [(v, hints[0]) for v in value]
    return list(zip(value, hints, strict=True)) if len(value) == len(hints) else None
