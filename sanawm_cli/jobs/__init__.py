"""Whole tasks: a render from request to verified file."""
