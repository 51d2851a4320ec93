"""The diffusion transformer: weights, forward passes and what its blocks remember."""
