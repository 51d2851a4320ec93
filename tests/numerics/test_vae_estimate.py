"""The numbers a plan prints about the VAE, against the real thing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sanawm_cli.configs import VaeConfig
from sanawm_cli.errors import PlanError
from sanawm_cli.vae.autoencoder import CausalVae
from sanawm_cli.vae.estimate import (
    decoder_memory_bytes,
    decoder_peak_bytes,
    decoder_tail_shapes,
    parameter_count,
)

FIXTURES = Path(__file__).parents[1] / "fixtures"
TINY = VaeConfig(
    latent_channels=8,
    encoder_channels=(16, 16, 32, 32),
    encoder_layers=(1, 2, 1, 1, 1),
    decoder_channels=(8, 16, 32),
    decoder_layers=(1, 2, 1, 1),
)
CASES = [(TINY, 64, 96, 3), (TINY, 192, 320, 1), (VaeConfig(), 704, 1280, 3)]


class LiveBytes(TorchDispatchMode):
    """Follows the storages made inside the block; `peak` is the most bytes alive at one time."""

    def __init__(self):
        super().__init__()
        self.live = {}
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self.live[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.live = {key: entry for key, entry in self.live.items() if not entry[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self.live.values()))
        return out


def second_chunk_on_meta(config, height, width, latents):
    """Decode two chunks without numbers. Returns the memory and the second one's peak bytes."""
    stride = config.spatial_stride
    with torch.device("meta"), torch.inference_mode():
        vae = CausalVae(config).to(torch.bfloat16)
        z = torch.empty(1, config.latent_channels, latents, height // stride, width // stride)
        _, memory = vae.decode(z, vae.empty_memory())
        with LiveBytes() as watch:
            _, memory = vae.decode(z, memory)
    return memory, watch.peak


def test_parameter_count_of_the_published_model():
    totals = json.loads((FIXTURES / "keys_vae.json").read_text())["totals"]
    assert parameter_count(VaeConfig()) == totals["params"] == 1_222_479_601


def test_parameter_count_of_the_miniature():
    with torch.device("meta"):
        parameters = dict(CausalVae(TINY).named_parameters())
    assert parameter_count(TINY) == sum(p.numel() for p in parameters.values())
    with safe_open(FIXTURES / "vae_a.weights.safetensors", "pt") as weights:
        assert {*parameters, "latents_mean", "latents_std"} == set(weights.keys())


@pytest.mark.parametrize(("config", "height", "width", "latents"), CASES)
def test_memory_and_peak(config, height, width, latents):
    memory, peak = second_chunk_on_meta(config, height, width, latents)
    shapes = decoder_tail_shapes(config, height, width)
    assert {name: tuple(x.shape) for name, x in memory.tails.items()} == shapes
    assert list(memory.tails) == list(shapes)
    assert decoder_memory_bytes(config, height, width, 2) == memory.nbytes
    # The count holds what there is of the new memory when the peak is reached, and small change.
    estimate = decoder_peak_bytes(config, height, width, latents=latents, itemsize=2)
    assert estimate <= peak <= 1.001 * (estimate + memory.nbytes)


def test_size_off_the_grid_is_refused():
    with pytest.raises(PlanError, match="height 700"):
        decoder_memory_bytes(TINY, 700, 1280, 2)


def test_estimates_need_no_torch():
    code = "import sys, sanawm_cli.vae.estimate; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
