"""How the published checkpoints' tensors relate to the network's parameters."""

import re

from sanawm_cli.configs import NetworkConfig

Shape = tuple[int, ...]

# diffusers names two layers otherwise; everything else is the same (raw, diffusers).
_RENAMED = (
    ("t_embedder.mlp.0.", "t_embedder.linear_1."),
    ("t_embedder.mlp.2.", "t_embedder.linear_2."),
)

_SOFTMAX_GATES = ("A_log", "dt_bias", "beta_proj", "gate_proj")


def to_diffusers(name: str) -> str:
    """A network parameter's name in diffusers' folder."""
    for raw, diffusers in _RENAMED:
        if name.startswith(raw):
            return diffusers + name.removeprefix(raw)
    return name


def from_diffusers(name: str) -> str:
    """The network's name for a tensor of diffusers' folder; raw names stay as they are."""
    for raw, diffusers in _RENAMED:
        if name.startswith(diffusers):
            return raw + name.removeprefix(diffusers)
    return name


def is_ignored(name: str, config: NetworkConfig) -> bool:
    """Whether a published tensor is one the streaming network has no use for.

    Unused embedders and gates, and the beta and decay gates of softmax blocks, which exist in
    the checkpoints because every block was made from one class.
    """
    if name == "pos_embed" or name == "y_embedder.y_embedding":
        return True
    if name.startswith("raymap_embedder."):
        return True
    gate = re.fullmatch(r"blocks\.(\d+)\.attn\.(\w+)(\.weight|\.bias)?", name)
    if gate is None or int(gate[1]) >= config.blocks:
        return False
    softmax = config.kinds[int(gate[1])] == "softmax"
    return gate[2] == "recall_gate" or (softmax and gate[2] in _SOFTMAX_GATES)


def ignored_shapes(config: NetworkConfig, text_tokens: int) -> dict[str, Shape]:
    """Names and shapes of the published tensors that `is_ignored` passes over."""
    width, heads = config.width, config.heads
    shapes: dict[str, Shape] = {
        "y_embedder.y_embedding": (text_tokens, config.text_channels),
        "raymap_embedder.proj.weight": (width, 3, 1, 1, 1),
        "raymap_embedder.proj.bias": (width,),
    }
    for index, kind in enumerate(config.kinds):
        prefix = f"blocks.{index}.attn"
        shapes[f"{prefix}.recall_gate"] = (1,)
        if kind == "softmax":
            shapes[f"{prefix}.A_log"] = shapes[f"{prefix}.dt_bias"] = (heads,)
            for gate in ("beta_proj", "gate_proj"):
                shapes[f"{prefix}.{gate}.weight"] = (heads, width)
                shapes[f"{prefix}.{gate}.bias"] = (heads,)
    return shapes


def keeps_float32(name: str) -> bool:
    """Whether a parameter stays float32 in a 16-bit network: norms, decays, modulation tables.

    Few numbers, and float32 arithmetic uses them anyway.
    """
    return (
        name.endswith(("A_log", "dt_bias", "scale_shift_table", "latents_mean", "latents_std"))
        or re.search(r"norm(_cam)?\.weight$", name) is not None
    )
