"""Choices that options offer, apart from what they do: `--help` needs no numpy."""

from typing import Literal

Fit = Literal["error", "hold", "repeat", "truncate"]
