"""Image, prompt and camera, made ready for the network."""
