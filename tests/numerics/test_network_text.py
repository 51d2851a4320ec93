"""The prompt: padding has no influence, and costs nothing where all rows have it."""

import math

import pytest
import torch
from torch import Tensor
from toy import (
    SIZE,
    at_timestep,
    contexts,
    error,
    nothing_yet,
    toy_latents,
    toy_text,
)

from sanawm_cli.conditioning.clip import TextEmbeds
from sanawm_cli.model.dit import Network


def velocity(network: Network, text: TextEmbeds) -> Tensor:
    batch = text.embeds.shape[0]
    x = toy_latents(1, 2, SIZE).repeat(batch, 1, 1, 1, 1)
    context = contexts(network, text, None, range(2))
    return network.velocity(x, at_timestep(network, 400, 2), context, nothing_yet(network, 2, SIZE))


def with_padding(text: TextEmbeds, number: float, *, only: slice = slice(None)) -> TextEmbeds:
    """Masked tokens (those in `only`) set to a number."""
    masked = ~text.mask
    masked[:, : only.start or 0] = False
    return TextEmbeds(text.embeds.masked_fill(masked[..., None], number), text.mask)


@pytest.mark.parametrize("number", [0.0, 1e6, math.inf, math.nan])
def test_what_all_rows_pad_is_never_looked_at(network: Network, number: float) -> None:
    text = toy_text(5, 3, tokens=9)
    changed = with_padding(text, number, only=slice(5, None))
    assert changed.embeds[:, 5:].isfinite().all() == math.isfinite(number)
    assert torch.equal(velocity(network, changed), velocity(network, text))


@pytest.mark.parametrize("number", [0.0, -1.0, 1e6])
def test_what_one_row_pads_has_no_influence(network: Network, number: float) -> None:
    text = toy_text(5, 3)
    assert error(velocity(network, with_padding(text, number)), velocity(network, text)) <= 1e-9


def test_every_token_of_the_text_has_influence(network: Network) -> None:
    text = toy_text(5, 3)
    clean = velocity(network, text)
    for row, used in enumerate((5, 3)):
        for token in range(used):
            embeds = text.embeds.clone()
            embeds[row, token] += 1
            got = velocity(network, TextEmbeds(embeds, text.mask))
            assert error(got[row], clean[row]) > 1e-4
            assert error(got[1 - row], clean[1 - row]) <= 1e-12


def test_a_longer_mask_has_influence(network: Network) -> None:
    text = toy_text(5, 3)
    longer = TextEmbeds(text.embeds, toy_text(5, 4).mask)
    clean, got = velocity(network, text), velocity(network, longer)
    assert error(got[0], clean[0]) <= 1e-12
    assert error(got[1], clean[1]) > 1e-4


def test_padding_is_dropped(network: Network) -> None:
    """Published prompts are padded to 300 tokens; a short one has some 40."""
    text = toy_text(5, 3, tokens=30)
    context = network.text_context(text.embeds, text.mask)
    assert [block.key.shape for block in context.blocks] == [(2, 2, 5, 24)] * 4
    assert [block.value.shape for block in context.blocks] == [(2, 2, 5, 24)] * 4
    assert context.mask is not None
    assert torch.equal(context.mask[:, 0, 0], toy_text(5, 3, tokens=5).mask)


def test_without_padding_there_is_no_mask(network: Network) -> None:
    text = toy_text(4, 4, tokens=7)
    context = network.text_context(text.embeds, text.mask)
    assert context.mask is None
    assert context.blocks[0].key.shape[2] == 4


def test_tokens_may_lie_anywhere(network: Network) -> None:
    """A prompt has no positions here: padding on the left is as good."""
    text = toy_text(4, 4)
    shifted = TextEmbeds(text.embeds.roll(2, 1), text.mask.roll(2, 1))
    assert error(velocity(network, shifted), velocity(network, text)) <= 1e-9


def test_masks_of_numbers_are_masks(network: Network) -> None:
    text = toy_text(5, 3)
    for dtype in (torch.int64, torch.float32):
        numbers = TextEmbeds(text.embeds, text.mask.to(dtype))
        assert torch.equal(velocity(network, numbers), velocity(network, text))
