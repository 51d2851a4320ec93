"""Model folders: finding, checking and loading weights."""
