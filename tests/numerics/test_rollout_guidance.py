"""Guidance: v_neg + s·(v_pos − v_neg), from one batch [negative, positive]."""

from dataclasses import replace

import pytest
import torch
from toy import error, render, toy_clip, toy_noise, toy_plan, toy_session, toy_text

from sanawm_cli.conditioning.clip import Clip, TextEmbeds, guided_text
from sanawm_cli.errors import ExitCode, UsageError
from sanawm_cli.model.dit import Network
from sanawm_cli.rollout.loop import StepDone

PLAN = toy_plan(3)
NOISE = toy_noise(PLAN)
NEGATIVE = toy_text(2, tokens=3, seed=31)


def steps_of(network: Network, clip: Clip, cfg_scale: float) -> list[StepDone]:
    return render(toy_session(network, cfg_scale=cfg_scale), clip, PLAN, NOISE)[1]


@pytest.mark.parametrize("scale", [0.0, 1.5, 4.5, -1.0])
def test_the_first_step_from_two_single_runs(network: Network, scale: float) -> None:
    clip = toy_clip(3, negative=NEGATIVE)
    guided = steps_of(network, clip, scale)[0]
    positive = steps_of(network, clip, 1.0)[0]
    negative = steps_of(network, replace(clip, text=NEGATIVE), 1.0)[0]
    assert error(positive.output, negative.output) > 1e-3
    assert error(guided.output, torch.cat((negative.output, positive.output))) <= 1e-9
    # The step is linear in the velocity, so the law holds for what it makes of it too.
    want = negative.latents + scale * (positive.latents - negative.latents)
    assert error(guided.latents, want) <= 1e-9


def test_scale_one_is_no_guidance(network: Network) -> None:
    clip = toy_clip(3, negative=NEGATIVE)
    with_negative = steps_of(network, clip, 1.0)
    without = steps_of(network, replace(clip, negative=None), 1.0)
    almost = steps_of(network, clip, 1.0 + 2.0**-50)
    for a, b, c in zip(with_negative, without, almost, strict=True):
        assert a.output.shape[0] == 1
        assert torch.equal(a.latents, b.latents)
        assert c.output.shape[0] == 2
        assert error(c.latents, b.latents) <= 1e-9


def test_a_later_chunk_is_guided_against_both_pasts(network: Network) -> None:
    """Each row of the batch remembers what it saw: with one prompt for both, guidance is void."""
    plan = toy_plan(3, 2)
    clip, noise = toy_clip(5), toy_noise(plan)
    plain = render(toy_session(network), clip, plan, noise)[0]
    twice = replace(clip, negative=clip.text)
    guided = render(toy_session(network, cfg_scale=3.0), twice, plan, noise)[0]
    for a, b in zip(guided, plain, strict=True):
        assert error(a.latents, b.latents) <= 1e-9


def test_guidance_needs_a_negative_prompt(network: Network) -> None:
    session = toy_session(network, cfg_scale=4.5)
    with pytest.raises(UsageError, match=r"cfg scale 4\.5\) needs a negative prompt") as caught:
        session.start(toy_clip(3), PLAN, NOISE)
    assert caught.value.exit_code == ExitCode.USAGE
    assert caught.value.hint is not None
    assert "--negative-prompt" in caught.value.hint


@pytest.mark.parametrize("extra", [1, 3, 7])
def test_padding_the_shorter_prompt_changes_nothing(network: Network, extra: int) -> None:
    """Whoever pads: the batch of two, or the prompt that already came with masked tokens."""
    rest = torch.full((1, extra, NEGATIVE.embeds.shape[2]), 1e3, dtype=torch.float64)
    padded = TextEmbeds(
        torch.cat((NEGATIVE.embeds, rest), 1),
        torch.cat((NEGATIVE.mask, torch.zeros(1, extra, dtype=torch.bool)), 1),
    )
    clip = toy_clip(3, negative=NEGATIVE)
    got = steps_of(network, replace(clip, negative=padded), 3.0)
    for a, b in zip(got, steps_of(network, clip, 3.0), strict=True):
        assert error(a.latents, b.latents) <= 1e-9


def test_guided_text_is_negative_then_positive() -> None:
    long, short = toy_text(5), toy_text(2, tokens=3, seed=31)
    for text, negative in ((long, short), (short, long)):
        both = guided_text(text, negative)
        assert both.embeds.shape == (2, 6, 20)
        assert both.mask.dtype == torch.bool
        for row, part in enumerate((negative, text)):
            length = part.embeds.shape[1]
            assert torch.equal(both.embeds[row, :length], part.embeds[0])
            assert torch.equal(both.mask[row, :length], part.mask[0])
            assert not both.embeds[row, length:].any()
            assert not both.mask[row, length:].any()
