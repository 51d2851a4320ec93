"""How the miniature's weights are made. The renderer never imports any of it."""
