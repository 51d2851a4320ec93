"""Write the untrained tiny model folder: seeded random weights in the sizes of its preset.

    python tools/make_tiny_model.py presets/tiny

The numbers are drawn so that a render stays finite and lively; they know nothing of any world.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from sanawm_cli.conditioning.text import ByteTextEncoder
from sanawm_cli.jobs.models import NETWORK_FILE, TEXT_FILE, VAE_FILE
from sanawm_cli.model.dit import Network
from sanawm_cli.preset.finding import load_preset
from sanawm_cli.vae.autoencoder import CausalVae
from sanawm_cli.weights.folder import SCHEMA, file_sha256

SEED = 20260
NOTE = (
    "Seeded random weights, untrained: every shape and code path of the published model at a "
    "small size. What it renders is noise that follows the rules, not a world."
)


def draw(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Values of one parameter, by what its name says it does."""
    if name.endswith("latents_mean"):
        return np.zeros(shape)
    if name.endswith(("latents_std", "norm.weight", "norm_cam.weight")):
        return np.ones(shape)
    if name.endswith("A_log"):
        return np.log(random.uniform(0.5, 2.0, shape))
    if name.endswith("dt_bias"):
        return np.log(np.expm1(random.uniform(0.02, 0.2, shape)))
    if name.endswith(".bias"):
        return np.zeros(shape)
    if name.endswith("scale_shift_table"):
        table = random.normal(0, 0.02, shape)
        table[2::3] += 0.3  # gates: open enough that every block takes part
        return table
    if name == "embed.weight":
        return random.normal(0, 1, shape)
    fan_in = int(np.prod(shape[1:]))
    return random.normal(0, fan_in**-0.5, shape)


def fill(module: nn.Module, random: np.random.Generator) -> dict[str, Tensor]:
    """Tensors for every entry of a module's state, in float16 as the file holds them."""
    return {
        name: torch.from_numpy(draw(name, tuple(like.shape), random)).half().contiguous()
        for name, like in module.state_dict().items()
    }


def main(folder: Path) -> None:
    """Write the weights, then the model.json that names them."""
    preset = load_preset("tiny")
    random = np.random.default_rng(SEED)
    folder.mkdir(parents=True, exist_ok=True)
    with torch.device("meta"):
        parts: dict[str, nn.Module] = {
            NETWORK_FILE: Network(preset.network),
            VAE_FILE: CausalVae(preset.vae),
            TEXT_FILE: ByteTextEncoder(preset.text),
        }
    for name, module in parts.items():
        save_file(fill(module, random), folder / name)
    model = {
        "schema": SCHEMA,
        "name": "tiny",
        "trained": False,
        "note": NOTE,
        "license": "Apache-2.0",
        "provenance": f"tools/make_tiny_model.py, seed {SEED}",
        "network": asdict(preset.network),
        "vae": asdict(preset.vae),
        "text": asdict(preset.text),
        "files": {
            name: {
                "bytes": (folder / name).stat().st_size,
                "sha256": file_sha256(folder / name),
            }
            for name in parts
        },
    }
    (folder / "model.json").write_text(json.dumps(model, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
