"""A mixer that reads its past is the mixer run over past and present together.

Exact for the frames of the last chunk: inside one, frames see later ones, so earlier chunks come
out otherwise. The key convolution must not mix frames here, since it stops at a chunk's end.
"""

import copy
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from toy import SIZE, contexts, error, generator, toy_camera, toy_text

from sanawm_cli.model.context import ChunkContext
from sanawm_cli.model.dit import Network
from sanawm_cli.model.memory import AttentionMemory, DeltaMemory, KeyValue
from sanawm_cli.model.mixers import DeltaMixer, SoftmaxMixer

CAMERA = toy_camera(2, 7, SIZE)
CUTS = [(0, 4, 7), (0, 1, 7), (0, 3, 6, 7)]


def tokens(latents: int) -> Tensor:
    shape = (2, latents, SIZE[0] * SIZE[1], 48)
    return torch.randn(shape, generator=generator(3), dtype=torch.float64)


def context(network: Network, start: int, stop: int, *, camera: bool) -> ChunkContext:
    seen = CAMERA if camera else None
    return contexts(network, toy_text(5, 3), seen, range(start, stop))


def joined(parts: list[KeyValue]) -> KeyValue:
    keys, values = [part.key for part in parts], [part.value for part in parts]
    return KeyValue(torch.cat(keys, 2), torch.cat(values, 2))


@pytest.mark.parametrize("camera", [True, False], ids=["camera", "no camera"])
@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_softmax(network: Network, cuts: tuple[int, ...], camera: bool) -> None:
    mixer, nothing = network.layers[3].attn, network.empty_memory(2, 6)[3]
    assert isinstance(mixer, SoftmaxMixer)
    assert isinstance(nothing, AttentionMemory)
    u = tokens(7)
    whole, _ = mixer(u, nothing, context(network, 0, 7, camera=camera))
    memory, main, seen = nothing, [nothing.main], [nothing.camera]
    for start, stop in pairwise(cuts):
        part, own = mixer(u[:, start:stop], memory, context(network, start, stop, camera=camera))
        main.append(own.main)
        seen.append(own.camera)
        memory = AttentionMemory(joined(main), joined(seen), nothing.ffn_tail)
    assert error(part, whole[:, cuts[-2] :]) <= 1e-9


@pytest.mark.parametrize("camera", [True, False], ids=["camera", "no camera"])
@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_delta_rule(network: Network, cuts: tuple[int, ...], camera: bool) -> None:
    mixer, memory = copy.deepcopy(network.layers[0].attn), network.empty_memory(2, 6)[0]
    assert isinstance(mixer, DeltaMixer)
    assert isinstance(memory, DeltaMemory)
    for conv in (mixer.conv_k, mixer.conv_k_cam):
        conv.weight[..., :3] = 0
    u = tokens(7)
    whole, after = mixer(u, memory, context(network, 0, 7, camera=camera))
    for start, stop in pairwise(cuts):
        part, memory = mixer(u[:, start:stop], memory, context(network, start, stop, camera=camera))
    assert error(part, whole[:, cuts[-2] :]) <= 1e-9
    for name in ("state", "norm", "camera"):
        assert error(getattr(memory, name), getattr(after, name)) <= 1e-9
