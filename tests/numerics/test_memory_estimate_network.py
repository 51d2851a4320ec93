"""The memory figures of a plan, against the network itself. Shapes alone: nothing is computed."""

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
    MemoryEstimate,
    estimate_memory,
    network_parameter_count,
    unused_parameter_count,
)
from sanawm_cli.model.context import CameraInputs, ChunkContext, TextContext
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import KeyValue
from sanawm_cli.plan import Chunk, FrameRequest, Plan, make_plan
from sanawm_cli.preset import Preset, load_preset

TINY, FULL = load_preset("tiny"), load_preset("sana-wm-streaming-720p")


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
    """A render without numbers: the network's memory and peak, chunk by chunk."""

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


def rendered(preset: Preset, latents: int, dtype: torch.dtype) -> tuple[int, int, MemoryEstimate]:
    """The most that is carried, the highest peak beside it, and what was estimated."""
    plan = make_plan(preset, FrameRequest(frames=preset.frame_grid.frames(latents)))
    carried = peak = 0
    with torch.device("meta"), torch.inference_mode():
        shapes = Shapes(preset, plan, dtype)
        for chunk in plan.chunks:
            with LiveBytes(shapes.old()) as live:
                shapes.absorb(chunk)
            carried, peak = max(carried, shapes.memory.resident_bytes()), max(peak, live.peak)
    return carried, peak, estimate_memory(preset, plan, itemsize=dtype.itemsize)


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
    preset: Preset, window: int, dtype: torch.dtype
) -> None:
    preset = replace(preset, stream=replace(preset.stream, window=window))
    carried, _, estimate = rendered(preset, 17, dtype)
    assert carried == estimate.recurrent + estimate.window


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("latents", [10, 14])
@pytest.mark.parametrize("preset", [TINY, guided(TINY), FULL], ids=["tiny", "guided", "published"])
def test_activations_are_estimated_from_above(
    preset: Preset, latents: int, dtype: torch.dtype
) -> None:
    carried, peak, estimate = rendered(preset, latents, dtype)
    assert peak <= estimate.activations <= 1.5 * peak, estimate.activations / peak
    assert carried == estimate.recurrent + estimate.window
