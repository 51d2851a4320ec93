"""The two verbs: `velocity` changes nothing, `absorb` returns storage of its own."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from toy import (
    CONFIG,
    SIZE,
    all_tensors,
    assert_same,
    at_timestep,
    contexts,
    nothing_yet,
    toy_camera,
    toy_latents,
    toy_network,
    toy_text,
)

from sanawm_cli.cache.window import WindowMemory
from sanawm_cli.conditioning.clip import TensorCamera, TextEmbeds
from sanawm_cli.model.context import ChunkContext
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import AttentionMemory, BlockMemory, DeltaMemory

CAMERA: TensorCamera = toy_camera(2, 7, SIZE)
TEXT: TextEmbeds = toy_text(5, 3)


def clones(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def tensors_in(context: ChunkContext) -> Iterator[tuple[str, torch.Tensor]]:
    for index, text in enumerate(context.text.blocks):
        yield f"text.{index}.key", text.key
        yield f"text.{index}.value", text.value
    if context.text.mask is not None:
        yield "mask", context.text.mask
    yield from (("cos", context.rotation.cos), ("sin", context.rotation.sin))
    if context.camera is not None:
        yield from (("into", context.camera.rays.into), ("out", context.camera.rays.out))
        yield "camera.cos", context.camera.rotation.cos
        yield "camera.sin", context.camera.rotation.sin
        yield "plucker", context.camera.plucker


def first_memory(network: Network, x: torch.Tensor) -> tuple[BlockMemory, ...]:
    context = contexts(network, TEXT, CAMERA, range(4))
    time = at_timestep(network, 0, 4)
    return network.absorb(x, time, context, nothing_yet(network, 2, SIZE))


def test_velocity_changes_nothing(network: Network) -> None:
    absorbed = first_memory(network, toy_latents(2, 4, SIZE))
    nothing = WindowMemory(network.empty_memory(2, 6), {})
    memory = nothing.extend(0, absorbed, keep=(0,))
    x = toy_latents(2, 3, SIZE, seed=9)
    context = contexts(network, TEXT, CAMERA, range(4, 7))
    time = at_timestep(network, 700, 3)

    def everything() -> dict[str, torch.Tensor]:
        inputs = {"x": x, "embedding": time.embedding, "modulation": time.modulation}
        return {**inputs, **dict(memory.named_tensors()), **dict(tensors_in(context))}

    before = clones(everything())
    first = network.velocity(x, time, context, memory.view((0,)))
    assert_same(everything(), before)
    assert torch.equal(network.velocity(x, time, context, memory.view((0,))), first)
    network.absorb(x, time, context, memory.view((0,)))
    assert_same(everything(), before)


def test_the_past_matters(network: Network) -> None:
    """Else the law above would say little."""
    absorbed = first_memory(network, toy_latents(2, 4, SIZE))
    memory = WindowMemory(network.empty_memory(2, 6), {}).extend(0, absorbed, keep=(0,))
    x = toy_latents(2, 3, SIZE, seed=9)
    context = contexts(network, TEXT, CAMERA, range(4, 7))
    time = at_timestep(network, 700, 3)
    with_past = network.velocity(x, time, context, memory.view((0,)))
    without = network.velocity(x, time, context, nothing_yet(network, 2, SIZE))
    assert float((with_past - without).abs().max()) > 1e-3


@pytest.mark.parametrize("latents", [1, 4])
@pytest.mark.parametrize("camera", [True, False], ids=["camera", "no camera"])
@pytest.mark.parametrize("blocks", [4, 5])
def test_memory_has_storage_of_its_own(blocks: int, latents: int, camera: bool) -> None:
    """A slice of a pass's activations would keep all of them alive until the next chunk.

    With 5 blocks the softmax block is not the last, which goes another way.
    """
    network = toy_network(replace(CONFIG, blocks=blocks))
    x = toy_latents(2, latents, SIZE)
    seen = CAMERA if camera else None
    context = contexts(network, TEXT, seen, range(latents))
    past = nothing_yet(network, 2, SIZE)
    absorbed = network.absorb(x, at_timestep(network, 0, latents), context, past)
    tensors = all_tensors(absorbed)
    for name, tensor in tensors.items():
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size(), name
        assert tensor.is_contiguous(), name
    places = [t.untyped_storage().data_ptr() for t in tensors.values() if t.numel()]
    assert len(set(places)) == len(places)


def test_memory_does_not_follow_its_sources(network: Network) -> None:
    x = toy_latents(2, 4, SIZE)
    past = WindowMemory(network.empty_memory(2, 6), {})
    context = contexts(network, TEXT, CAMERA, range(4))
    time = at_timestep(network, 0, 4)
    absorbed = network.absorb(x, time, context, past.view(()))
    before = clones(all_tensors(absorbed))
    sources = [x, time.embedding, time.modulation, *(t for _, t in past.named_tensors())]
    for tensor in [*sources, *(t for _, t in tensors_in(context))]:
        tensor.zero_()
    assert_same(all_tensors(absorbed), before)


def test_without_a_camera_its_memory_stays_empty(network: Network) -> None:
    context = contexts(network, TEXT, None, range(3))
    x, time = toy_latents(2, 3, SIZE), at_timestep(network, 0, 3)
    past = WindowMemory(network.empty_memory(2, 6), {})
    past = past.extend(0, network.absorb(x, time, context, past.view(())), keep=(0,))
    for memory in network.absorb(x, time, context, past.view((0,))):
        if isinstance(memory, DeltaMemory):
            assert not memory.camera.any()
            assert memory.state.any()
        else:
            assert memory.camera.key.shape[2] == memory.camera.value.shape[2] == 0
            assert memory.main.key.shape[2] == 18


def test_every_block_remembers_its_kind(network: Network) -> None:
    kinds = {"delta": DeltaMemory, "softmax": AttentionMemory}
    absorbed = first_memory(network, toy_latents(2, 4, SIZE))
    for memories in (absorbed, network.empty_memory(2, 6)):
        assert [type(m) for m in memories] == [kinds[kind] for kind in network.config.kinds]
