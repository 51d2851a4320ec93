"""Timesteps as the network is told them: integers, in float32 whatever the network's precision."""

import math

import pytest
import torch
from torch import Tensor
from toy import error, toy_network

from sanawm_cli.model.dit import Network

TIMESTEPS = torch.tensor([[0, 1, 251, 727, 999, 1000]])


def sinusoid(network: Network) -> Tensor:
    """What the embedder's layers are given."""
    seen: list[Tensor] = []
    mlp = network.get_submodule("t_embedder.mlp")
    handle = mlp.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    network.time_vectors(TIMESTEPS)
    handle.remove()
    return seen[0]


def test_the_sinusoid_by_the_formula(network32: Network) -> None:
    """128 frequencies, cosines first. Float32 angles near 1000 are right to 6e-5."""
    got = sinusoid(network32)
    assert got.shape == (1, 6, 256)
    for place, step in enumerate(TIMESTEPS[0].tolist()):
        angles = [step * math.exp(-math.log(10000.0) * i / 128) for i in range(128)]
        want = [math.cos(a) for a in angles] + [math.sin(a) for a in angles]
        assert got[0, place].tolist() == pytest.approx(want, abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_the_sinusoid_is_float32_in_every_network(network32: Network, dtype: torch.dtype) -> None:
    """bfloat16 knows no 727, and float64 angles are not those the network was trained with."""
    got = sinusoid(toy_network(dtype=dtype))
    assert got.dtype == torch.float32
    assert torch.equal(got, sinusoid(network32))


def test_a_table_has_the_vectors_of_its_timesteps(network: Network) -> None:
    table = network.time_table((1000, 0, 727, 0))
    assert table.timesteps == (0, 727, 1000)
    for asked in ([0, 1000, 1000], [727], [0, 0]):
        got, want = table.frames(asked), network.time_vectors(torch.tensor([asked]))
        assert error(got.embedding, want.embedding) <= 1e-12
        assert error(got.modulation, want.modulation) <= 1e-12


def test_a_table_knows_no_other_timesteps(network: Network) -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        network.time_table((1000, 0)).frames([999])


def test_timesteps_have_influence_one_by_one(network: Network) -> None:
    table = network.time_table(range(0, 1001, 250))
    vectors = {str(t): table.frames([t]).modulation for t in table.timesteps}
    for name, one in vectors.items():
        for other in vectors.keys() - {name}:
            assert error(one, vectors[other]) > 1e-3
