"""Reference numbers run through the real code: how a new machine, precision or GPU is checked."""
