"""How much memory a render needs, by part, before anything is loaded. Torch-free.

Exact: weights (of one precision throughout), what is carried between chunks, frames, and the
text's share where a prompt fills all its tokens. Activations and the decoder's peak are estimates:
they follow the largest tensors that live at once, and leave out allocators and libraries.
"""

from dataclasses import asdict, dataclass

from sanawm_cli.configs import NetworkConfig, TextConfig
from sanawm_cli.plan import Plan
from sanawm_cli.preset.settings import Preset
from sanawm_cli.vae.estimate import decoder_memory_bytes, decoder_peak_bytes
from sanawm_cli.vae.estimate import parameter_count as vae_parameter_count

TIME_CHANNELS = 256
PLUCKER_CHANNELS = 48
RAYMAP_CHANNELS = 3
KEY_TAPS = 4
BYTE_VALUES = 256
FLOAT32 = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes by part.

    recurrent, window: what blocks carry from chunk to chunk, at its largest: states and tails,
    and the softmax blocks' keys and values of earlier chunks. decoder_memory: what the decoder
    carries. text_context: the prompt and every block's keys and values of it. activations,
    decoder_peak: what comes and goes while a chunk is denoised and absorbed, and decoded.
    frames: one chunk's, as bytes.
    """

    network_weights: int
    vae_weights: int
    text_weights: int
    text_context: int
    recurrent: int
    window: int
    activations: int
    decoder_memory: int
    decoder_peak: int
    frames: int

    @property
    def total(self) -> int:
        """The sum. Denoising and decoding take turns, so the true peak is lower."""
        return sum(asdict(self).values())

    def as_json(self) -> dict[str, int]:
        """All parts by name, and `total`."""
        return {**asdict(self), "total": self.total}


def estimate_memory(preset: Preset, plan: Plan, *, itemsize: int) -> MemoryEstimate:
    """The estimate for a plan, with weights and activations of `itemsize` bytes per number.

    With guidance, everything of the network but its weights counts twice.
    """
    network, vae, video = preset.network, preset.vae, preset.video
    rows, columns = preset.frame_grid.latent_size(video.height, video.width)
    batch = 2 if preset.sampler.cfg_scale > 1.0 else 1
    sizes = _Sizes(
        config=network,
        itemsize=itemsize,
        latent=batch * rows * columns,
        batch=batch,
        chunk=max(chunk.latents for chunk in plan.chunks),
        window=max(sum(plan.chunks[i].latents for i in c.context) for c in plan.chunks),
    )
    held = network_parameter_count(network) - unused_parameter_count(network)
    size = (video.height, video.width)
    decoder_memory = decoder_memory_bytes(vae, *size, itemsize)
    decoding = decoder_peak_bytes(vae, *size, latents=sizes.chunk, itemsize=itemsize)
    return MemoryEstimate(
        network_weights=held * itemsize,
        vae_weights=vae_parameter_count(vae) * itemsize,
        text_weights=text_parameter_count(preset.text) * itemsize,
        text_context=_text_context(sizes, preset.text),
        recurrent=_recurrent(sizes),
        window=_window(sizes),
        activations=_activations(sizes),
        decoder_memory=decoder_memory,
        decoder_peak=decoding + decoder_memory,  # the next memory is made beside the last
        frames=max(chunk.frames for chunk in plan.chunks) * video.height * video.width * 3,
    )


def network_parameter_count(config: NetworkConfig) -> int:
    """Trainable parameters as published: 2,661,800,448 at full size.

    That counts those that checkpoints hold and nothing reads, see `unused_parameter_count`.
    """
    width, blocks = config.width, config.blocks
    delta_blocks = config.kinds.count("delta")
    embedders = _linear(config.latent_channels, width) + _linear(PLUCKER_CHANNELS, width)
    time = _linear(TIME_CHANNELS, width) + _linear(width, width) + _linear(width, 6 * width)
    text = _linear(config.text_channels, width) + _linear(width, width) + width
    final = 2 * width + _linear(width, config.latent_channels)
    key_convolutions = delta_blocks * 2 * KEY_TAPS * width
    shared = embedders + time + text + final + key_convolutions
    gates = delta_blocks * _gates(config)
    return shared + blocks * _block(config) + gates + unused_parameter_count(config)


def unused_parameter_count(config: NetworkConfig) -> int:
    """Parameters in checkpoints that no forward pass reads: they are not loaded.

    The ray map's embedder, and the softmax blocks' step sizes and decays.
    """
    softmax_blocks = config.kinds.count("softmax")
    return _linear(RAYMAP_CHANNELS, config.width) + softmax_blocks * _gates(config)


def text_parameter_count(config: TextConfig) -> int:
    """Parameters of the text encoder: one vector per byte, none for embeddings made elsewhere."""
    return BYTE_VALUES * config.channels if config.kind == "bytes" else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """Counts that the network's parts are multiples of. Latents of chunk and window: the most."""

    config: NetworkConfig
    itemsize: int
    latent: int  # tokens of one latent, over the batch
    batch: int
    chunk: int
    window: int

    @property
    def state(self) -> int:
        """Numbers in one delta state matrix per head."""
        return self.batch * self.config.width * self.config.head_dim

    @property
    def frame(self) -> int:
        """Bytes of one latent's tokens at full width."""
        return self.latent * self.config.width * self.itemsize


def _recurrent(sizes: _Sizes) -> int:
    """Two states and the normaliser in float32, three key frames and one FFN frame a block."""
    config = sizes.config
    wide = max(sizes.itemsize, FLOAT32)
    normaliser = sizes.batch * config.width
    delta = (2 * sizes.state + normaliser) * wide + 3 * sizes.frame
    return config.kinds.count("delta") * delta + config.blocks * sizes.frame


def _window(sizes: _Sizes) -> int:
    """Keys and values of main and camera branch, for the fullest context of the plan."""
    return sizes.config.kinds.count("softmax") * 4 * sizes.window * sizes.frame


def _text_context(sizes: _Sizes, text: TextConfig) -> int:
    width = 2 * sizes.config.blocks * sizes.config.width + text.channels
    return sizes.batch * text.tokens * width * sizes.itemsize


def _activations(sizes: _Sizes) -> int:
    """The worst moment of `absorb`: the hungriest part of a block, beside what lives through it.

    Through it live the tokens, their modulated copy, the rays, and the memory being made. Parts,
    in widths per token: the delta mixer's float32 copies of q, k, v for main and camera branch
    (11) and its matrices per frame (6); the FFN's hidden channels (8 times), or attention's
    inputs, beside the window put together.
    """
    config, kinds = sizes.config, sizes.config.kinds
    chunk = sizes.chunk * sizes.frame
    wide_chunk = sizes.chunk * sizes.latent * config.width * FLOAT32
    ffn = 8 * sizes.chunk * sizes.latent * config.ffn_hidden * sizes.itemsize
    window = sizes.window * sizes.frame
    attention = 2 * (window + chunk) + 6 * wide_chunk
    parts = [ffn]
    if "delta" in kinds:
        parts.append(11 * wide_chunk + 6 * sizes.chunk * sizes.state * FLOAT32)
    if "softmax" in kinds:
        parts.append(4 * window + 4 * chunk + max(attention, ffn))
    made = _recurrent(sizes) + kinds.count("softmax") * 4 * chunk
    return 3 * chunk + made + max(parts)


def _block(config: NetworkConfig) -> int:
    """Parameters of any block, without gates and key convolutions."""
    width, hidden = config.width, config.ffn_hidden
    square = _linear(width, width)
    mixer = 3 * width * width + 4 * width + 6 * square  # qkv, norms; camera q k v o, gate, proj
    cross = square + _linear(width, 2 * width) + square + 2 * width
    inverted, depthwise = _linear(width, 2 * hidden), 2 * hidden * (3 * 3 + 1)
    ffn = inverted + depthwise + width * hidden + 3 * width * width
    return 6 * width + mixer + cross + ffn + square


def _gates(config: NetworkConfig) -> int:
    """Parameters of a mixer's step sizes and decays."""
    return 2 * config.heads + 2 * _linear(config.width, config.heads)


def _linear(inputs: int, outputs: int) -> int:
    return outputs * (inputs + 1)
