"""Errors in a typed string that show the string with carets under the part that is wrong."""

from dataclasses import dataclass
from unicodedata import combining, east_asian_width

from sanawm_cli.errors import InputError

CONTEXT = 40  # characters shown on either side; a long string must not flood the terminal
LONGEST = 40  # characters shown of the part itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The part [start, stop) of `text`."""

    text: str
    start: int
    stop: int

    def error(self, problem: str, *, hint: str | None = None) -> InputError:
        """An InputError of three lines: the problem, the text, the carets."""
        return InputError(f"{problem}\n{self.picture()}", hint=hint)

    def picture(self) -> str:
        """The text (cut to the surroundings of the part) and, below it, the carets."""
        first = max(self.start - CONTEXT, 0)
        stop = min(self.stop, self.start + LONGEST)
        last = min(stop + CONTEXT, len(self.text))
        before = ("…" if first else "") + _printable(self.text[first : self.start])
        part = _printable(self.text[self.start : stop])
        after = _printable(self.text[stop:last]) + ("…" if last < len(self.text) else "")
        carets = "^" * max(_columns(part), 1)
        return f"  {before}{part}{after}\n  {' ' * _columns(before)}{carets}"


def _printable(text: str) -> str:
    """`text` with line breaks, control characters and lone surrogates replaced, one for one."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def _columns(text: str) -> int:
    """Terminal columns of `text`: full-width characters take two, combining marks none."""
    wide = sum(east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(combining(c) != 0 for c in text)
