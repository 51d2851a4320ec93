"""The memory figures of a plan, against the network itself. Only shapes matter, no numbers."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sanawm_cli.cache.window import WindowMemory
from sanawm_cli.configs import NetworkConfig
from sanawm_cli.memory_estimate import (
    estimate_memory,
    network_parameter_count,
    unused_parameter_count,
)
from sanawm_cli.model.context import CameraInputs, ChunkContext, TextContext
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import KeyValue
from sanawm_cli.plan import Chunk, FrameRequest, Plan, make_plan
from sanawm_cli.preset import Preset, Window, load_preset

TINY = load_preset("tiny")


class LiveBytes(TorchDispatchMode):
    """The most bytes alive at one time in storages made inside the block, beside `old` ones."""

    def __init__(self, old: list[Tensor]) -> None:
        super().__init__()
        self.old = {tensor.untyped_storage()._cdata for tensor in old}
        self.live: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and tensor.untyped_storage()._cdata not in self.old:
                storage = tensor.untyped_storage()
                self.live[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.live = {key: entry for key, entry in self.live.items() if not entry[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self.live.values()))
        return out


class Shapes:
    """A render of whatever lies in new tensors: the network's memory and peak, chunk by chunk."""

    def __init__(self, preset: Preset, plan: Plan, dtype: torch.dtype) -> None:
        self.plan, self.dtype = plan, dtype
        self.batch = 2 if preset.sampler.cfg_scale > 1 else 1
        self.size = preset.frame_grid.latent_size(preset.video.height, preset.video.width)
        self.network = Network(preset.network).to(dtype)
        self.memory = WindowMemory(
            self.network.empty_memory(self.batch, self.size[0] * self.size[1]), segments={}
        )
        heads, d = preset.network.heads, preset.network.head_dim
        prompt = torch.empty(self.batch, heads, preset.text.tokens, d, dtype=dtype)
        self.text = TextContext((KeyValue(prompt, prompt),) * preset.network.blocks, None)

    def context(self, chunk: Chunk) -> ChunkContext:
        raymap = torch.empty(self.batch, chunk.latents, 20)
        plucker = torch.empty(self.batch, 48, chunk.latents, *self.size, dtype=self.dtype)
        latents = range(chunk.start, chunk.stop)
        camera = CameraInputs(raymap, plucker)
        return self.network.chunk_context(self.text, camera, latents=latents, size=self.size)

    def absorb(self, chunk: Chunk) -> None:
        channels = self.network.config.latent_channels
        latents = torch.empty(self.batch, channels, chunk.latents, *self.size)
        time = self.network.time_vectors(torch.zeros(1, chunk.latents, dtype=torch.long))
        absorbed = self.network.absorb(
            latents, time, self.context(chunk), self.memory.view(chunk.context)
        )
        kept = self.plan.kept_after(chunk.index)
        self.memory = self.memory.extend(chunk.index, absorbed, keep=kept)

    def old(self) -> list[Tensor]:
        return [*self.network.parameters(), *(tensor for _, tensor in self.memory.named_tensors())]


def carried(preset: Preset, plan: Plan, dtype: torch.dtype) -> int:
    """The most that the network's memory holds between two chunks."""
    with torch.inference_mode():
        shapes, most = Shapes(preset, plan, dtype), 0
        for chunk in plan.chunks:
            shapes.absorb(chunk)
            most = max(most, shapes.memory.resident_bytes())
    return most


def peak(preset: Preset, plan: Plan, dtype: torch.dtype) -> int:
    """The most that lives beside weights and memory while the plan's last chunk is absorbed."""
    with torch.device("meta"), torch.inference_mode():
        shapes = Shapes(preset, plan, dtype)
        for chunk in plan.chunks[:-1]:
            shapes.absorb(chunk)
        with LiveBytes(shapes.old()) as live:
            shapes.absorb(plan.chunks[-1])
    return live.peak


def guided(preset: Preset) -> Preset:
    return replace(preset, sampler=replace(preset.sampler, cfg_scale=4.0))


@pytest.mark.parametrize(
    "config",
    [
        NetworkConfig(),
        TINY.network,
        NetworkConfig(width=48, heads=2, blocks=5, softmax_every=2, ffn_ratio=2.5, text_channels=7),
    ],
    ids=["published", "tiny", "odd"],
)
def test_weights_are_the_networks(config: NetworkConfig) -> None:
    with torch.device("meta"):
        held = sum(parameter.numel() for parameter in Network(config).parameters())
    assert held == network_parameter_count(config) - unused_parameter_count(config)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("window", [1, 2, 3, "all"])
@pytest.mark.parametrize("preset", [TINY, guided(TINY)], ids=["plain", "guided"])
def test_what_is_carried_is_estimated_to_the_byte(
    preset: Preset, window: Window, dtype: torch.dtype
) -> None:
    preset = replace(preset, stream=replace(preset.stream, window=window))
    plan = make_plan(preset, FrameRequest(chunk_plan=(5, 3, 3, 3)))
    estimate = estimate_memory(preset, plan, itemsize=dtype.itemsize)
    assert carried(preset, plan, dtype) == estimate.recurrent + estimate.window


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("preset", [TINY, guided(TINY)], ids=["tiny", "guided"])
def test_activations_are_estimated_from_above(preset: Preset, dtype: torch.dtype) -> None:
    plan = make_plan(preset, FrameRequest(chunk_plan=(3, 3, 3)))
    estimate = estimate_memory(preset, plan, itemsize=dtype.itemsize)
    found = peak(preset, plan, dtype)
    assert found <= estimate.activations <= 1.5 * found, estimate.activations / found
