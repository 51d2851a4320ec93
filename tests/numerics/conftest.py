"""One thread for all numerics: small tensors are quickest so, and sums are always the same."""

from collections.abc import Iterator

import pytest
import torch
from toy import toy_network

from sanawm_cli.model.dit import Network


@pytest.fixture(scope="session", autouse=True)
def single_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def network() -> Network:
    """The toy network in float64. Nobody changes its weights."""
    return toy_network()


@pytest.fixture(scope="session")
def network32() -> Network:
    """The same weights in float32, the precision of a render."""
    return toy_network(dtype=torch.float32)
