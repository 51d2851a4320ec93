"""Guessing what a misspelt name was meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches

# Comparing is quadratic in the length; no name of ours is longer.
_LONGEST_NAME = 64


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` resembles most, or None where it resembles none."""
    close = get_close_matches(name[:_LONGEST_NAME].lower(), sorted(known), n=1, cutoff=0.5)
    return close[0] if close else None


def suggestion(name: str, known: Iterable[str], *, listing: str) -> str:
    """A hint for an unknown name: the nearest known one, if any, then all of them.

    `listing` introduces the list: "available", "known keys".
    """
    names = sorted(known)
    near = nearest(name, names)
    guess = f"did you mean {near}? " if near else ""
    return f"{guess}{listing}: {', '.join(names) or 'none'}"
