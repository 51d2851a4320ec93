"""The miniature VAE's sizes, and how many bytes its file may have."""

from sanawm_cli.configs import VaeConfig

MOST_BYTES = 9_600_000

# The encoder spends its weights where the picture is coarse, the decoder keeps enough channels at
# every scale to hold what 128 linear components can say.
TINY_VAE = VaeConfig(
    latent_channels=128,
    encoder_channels=(64, 64, 128, 256),
    encoder_layers=(0, 0, 0, 0, 0),
    decoder_channels=(32, 64, 128),
    decoder_layers=(2, 2, 1, 0),
    decoder_factors=(2, 2, 1),
)
