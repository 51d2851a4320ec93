"""Prompts side by side under guidance, cameras from memory, and fingerprints."""

import pytest
import torch
from toy import error, toy_camera, toy_clip, toy_network, toy_plan, toy_session, toy_text

from sanawm_cli.conditioning.clip import TextEmbeds, guided_text, tensor_fingerprint
from sanawm_cli.model.dit import Network
from sanawm_cli.rollout.noise import TensorNoise


def prompt(used: int, tokens: int, *, seed: int) -> TextEmbeds:
    return toy_text(used, tokens=tokens, seed=seed)


@pytest.mark.parametrize(("tokens", "others"), [(4, 7), (7, 4), (5, 5)])
def test_the_negative_prompt_comes_first_and_padding_is_masked(tokens: int, others: int) -> None:
    text, negative = prompt(3, tokens, seed=1), prompt(2, others, seed=2)
    both, length = guided_text(text, negative), max(tokens, others)
    assert both.embeds.shape == (2, length, text.embeds.shape[2])
    assert both.mask.shape == (2, length)
    assert both.mask.dtype == torch.bool
    for row, part in enumerate((negative, text)):
        own = part.embeds.shape[1]
        assert torch.equal(both.embeds[row, :own], part.embeds[0])
        assert torch.equal(both.mask[row, :own], part.mask[0])
        assert not both.mask[row, own:].any()
        assert not both.embeds[row, own:].any()


def test_masks_of_numbers_count_as_well() -> None:
    text = prompt(3, 4, seed=1)
    numbers = TextEmbeds(text.embeds, text.mask.long())
    assert torch.equal(guided_text(numbers, numbers).mask[0], text.mask[0])


def test_padding_changes_nothing(network: Network) -> None:
    """A prompt alone, and as the shorter one of two, is read alike."""
    text, negative = prompt(3, 3, seed=1), prompt(6, 6, seed=2)
    both = guided_text(text, negative)
    x = torch.randn(1, 1, 5, 48, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    cross = network.layers[0].cross_attn
    alone = network.text_context(text.embeds, text.mask)
    together = network.text_context(both.embeds, both.mask)
    want = cross(x, alone.blocks[0], alone.mask)
    got = cross(x.repeat(2, 1, 1, 1), together.blocks[0], together.mask)[1:]
    assert error(got, want) <= 1e-12


def test_a_longer_negative_prompt_does_not_change_what_the_prompt_says() -> None:
    """Guidance at scale 1 + ε is next to none at all, however long the negative prompt."""
    network, plan = toy_network(), toy_plan(3)
    noise = TensorNoise(toy_clip(3).first_latent.repeat(1, 1, 3, 1, 1))
    outputs = []
    for scale, negative in ((1.0, None), (1.0 + 1e-9, toy_text(9, tokens=9, seed=8))):
        session = toy_session(network, cfg_scale=scale)
        session.start(toy_clip(3, negative=negative), plan, noise)
        outputs.append(session.step().latents)
    assert error(outputs[1], outputs[0]) <= 1e-7


def test_a_camera_in_memory_gives_its_latents() -> None:
    camera = toy_camera(1, 7, (2, 3))
    stretches = [(0, 3), (3, 4), (4, 7)]
    parts = [camera.chunk(start, stop) for start, stop in stretches]
    assert torch.equal(torch.cat([part.raymap for part in parts], 1), camera.raymap)
    assert torch.equal(torch.cat([part.plucker for part in parts], 2), camera.plucker)


def test_a_fingerprint_is_of_values_shapes_and_kinds() -> None:
    base = torch.arange(6, dtype=torch.float32)
    changed = base.clone()
    changed[3] = torch.nextafter(changed[3], torch.tensor(9.0))
    cases = [
        (base,),
        (base.reshape(2, 3),),
        (base.reshape(3, 2),),
        (base.to(torch.float64),),
        (base.view(torch.int32),),
        (changed,),
        (base, base),
        (base.bfloat16(),),
        (),
    ]
    assert len({tensor_fingerprint(*case) for case in cases}) == len(cases)


def test_a_fingerprint_does_not_depend_on_how_values_lie_in_memory() -> None:
    base = torch.arange(6.0).reshape(2, 3)
    apart = torch.empty(2, 6)[:, ::2]
    apart.copy_(base)
    turned = base.T.contiguous().T
    assert not apart.is_contiguous()
    assert not turned.is_contiguous()
    prints = {tensor_fingerprint(t) for t in (base, apart, turned, base.requires_grad_())}
    assert len(prints) == 1
