"""sanawm: an offline command-line renderer for the SANA-WM world model."""

__version__ = "0.1.0"
