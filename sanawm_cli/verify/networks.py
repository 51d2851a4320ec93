"""Networks from a case's own sizes and weights."""

from collections.abc import Mapping
from typing import Any

import torch

from sanawm_cli.configs import AttentionScale, NetworkConfig
from sanawm_cli.errors import InputError
from sanawm_cli.model.dit import Network
from sanawm_cli.verify.cases import Case, load_tensors
from sanawm_cli.weights.keymaps import from_diffusers, is_ignored, keeps_float32

MOST = 65_536  # layers, heads and channels alike


def network_config(arch: Mapping[str, Any], scale: AttentionScale) -> NetworkConfig:
    """The sizes in a case's `arch` (upstream's names)."""
    try:
        refuse_absurd(arch)
        if int(arch["hidden_size"]) < 1 or int(arch["hidden_size"]) % int(
            arch["num_attention_heads"]
        ):
            raise ValueError("hidden_size does not divide by num_attention_heads")
        return NetworkConfig(
            latent_channels=int(arch["in_channels"]),
            width=int(arch["hidden_size"]),
            heads=int(arch["num_attention_heads"]),
            blocks=int(arch["num_layers"]),
            softmax_every=int(arch["softmax_every_n"]),
            ffn_ratio=float(arch["mlp_ratio"]),
            text_channels=int(arch["caption_channels"]),
            attention_scale=scale,
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise InputError(f"the case's sizes cannot be read: {error!r}") from error


def refuse_absurd(arch: Mapping[str, Any]) -> None:
    """Raise ValueError for a size that no model has: building it would take for ever."""
    for key, value in arch.items():
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int) and not 0 <= number <= MOST:
                raise ValueError(f"{key} {number}")


def case_network(
    case: Case, config: NetworkConfig, device: torch.device, dtype: torch.dtype
) -> Network:
    """The network of a case: its weights, with its overrides on top, strictly matched."""
    tensors = load_tensors(case.named("weights"))
    if case.facts.get("weight_overrides"):
        tensors |= load_tensors(case.named("weight_overrides"))
    tensors = {from_diffusers(name): tensor for name, tensor in tensors.items()}
    used = {name: t for name, t in tensors.items() if not is_ignored(name, config)}
    with torch.device("meta"):
        network = Network(config)
    wide = torch.promote_types(dtype, torch.float32)
    placed = {
        name: tensor.to(device, wide if keeps_float32(name) else dtype)
        for name, tensor in used.items()
    }
    try:
        network.load_state_dict(placed, strict=True, assign=True)
    except RuntimeError as error:
        first = str(error).splitlines()[1:2]
        raise InputError(f"case {case.name}: weights do not fit: {' '.join(first)}") from error
    return network.requires_grad_(False)
