"""Causal video VAE: frames to latents for the first frame, latents to frames chunk by chunk."""
