"""Windows over earlier chunks: which keys and values stay, and how they are read."""
