"""Prompts: the byte encoder, and embeddings from files."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from sanawm_cli.conditioning.text import ByteTextEncoder, EncodedPrompt, load_text_embeds
from sanawm_cli.configs import TextConfig
from sanawm_cli.errors import InputError

CONFIG = TextConfig(kind="bytes", tokens=12, channels=6)
CHANNELS = 4


@pytest.fixture(scope="module")
def encoder() -> ByteTextEncoder:
    made = ByteTextEncoder(CONFIG).requires_grad_(False)
    values = torch.randn(256, CONFIG.channels, generator=torch.Generator().manual_seed(1))
    made.embed.weight.copy_(values)
    return made


# --- the byte encoder ---------------------------------------------------------------------------


def test_a_token_is_a_byte_and_its_place(encoder: ByteTextEncoder) -> None:
    got = encoder.encode("né").text.embeds[0]
    assert got.shape == (3, CONFIG.channels)
    for place, byte in enumerate("né".encode()):
        rates = [10000.0 ** (-i / 3) for i in range(3)]
        waves = [math.sin(place * r) for r in rates] + [math.cos(place * r) for r in rates]
        want = encoder.embed.weight[byte] + torch.tensor(waves)
        assert torch.allclose(got[place], want, atol=1e-6)


@given(st.text(max_size=20))
@settings(deadline=None)
def test_any_text_gives_tokens_and_tells_what_was_cut(text: str) -> None:
    encoded = ByteTextEncoder(CONFIG).requires_grad_(False).encode(text)
    size = len(text.encode())
    kept = min(max(size, 1), CONFIG.tokens)
    assert encoded.text.embeds.shape == (1, kept, CONFIG.channels)
    assert encoded.text.mask.shape == (1, kept)
    assert encoded.text.mask.dtype == torch.bool
    assert encoded.text.mask.all()
    assert encoded.dropped_tokens == max(size - CONFIG.tokens, 0)


def test_what_does_not_fit_is_left_out_at_the_end(encoder: ByteTextEncoder) -> None:
    whole, cut = encoder.encode("a" * 12), encoder.encode("a" * 12 + "xyz")
    assert (whole.dropped_tokens, cut.dropped_tokens) == (0, 3)
    assert torch.equal(cut.text.embeds, whole.text.embeds)


def test_a_character_may_be_cut_in_two(encoder: ByteTextEncoder) -> None:
    """Tokens are bytes: the twelfth may be half of a letter, and no letter is lost for it."""
    encoded = encoder.encode("a" * 11 + "é")
    assert (encoded.text.embeds.shape[1], encoded.dropped_tokens) == (12, 1)


def test_an_empty_prompt_is_one_zero_byte(encoder: ByteTextEncoder) -> None:
    empty: EncodedPrompt = encoder.encode("")
    assert empty.dropped_tokens == 0
    assert torch.equal(empty.text.embeds, encoder.encode("\0").text.embeds)


def test_places_differ(encoder: ByteTextEncoder) -> None:
    one, two = encoder.encode("ab").text.embeds, encoder.encode("ba").text.embeds
    assert not torch.allclose(one.flip(1), two)


# --- files --------------------------------------------------------------------------------------


def embeds(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def saved(folder: Path, **tensors: Tensor) -> Path:
    save_file(tensors, folder / "t.safetensors")
    return folder / "t.safetensors"


def refusal(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        load_text_embeds(path, CHANNELS)
    assert caught.value.message.startswith(f"{path}: ")
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("mask_batched", [False, True])
@pytest.mark.parametrize("kind", [torch.bool, torch.int64, torch.float32], ids=str)
def test_a_batch_of_one_may_be_left_out(
    tmp_path: Path, batched: bool, mask_batched: bool, kind: torch.dtype
) -> None:
    values, mask = embeds(5, CHANNELS), torch.tensor([1, 1, 0, 1, 0]).to(kind)
    found = load_text_embeds(
        saved(
            tmp_path,
            embeds=values[None].clone() if batched else values,
            mask=mask[None].clone() if mask_batched else mask,
        ),
        CHANNELS,
    )
    assert torch.equal(found.text.embeds, values[None])
    assert found.text.mask.tolist() == [[True, True, False, True, False]]
    assert found.negative is None


def test_without_a_mask_all_tokens_count(tmp_path: Path) -> None:
    found = load_text_embeds(saved(tmp_path, embeds=embeds(3, CHANNELS)), CHANNELS)
    assert found.text.mask.tolist() == [[True, True, True]]


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_any_precision_becomes_float32(tmp_path: Path, kind: torch.dtype) -> None:
    values = embeds(3, CHANNELS).to(kind)
    found = load_text_embeds(saved(tmp_path, embeds=values), CHANNELS)
    assert found.text.embeds.dtype == torch.float32
    assert torch.equal(found.text.embeds[0], values.float())


def test_a_negative_prompt_may_be_of_another_length(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        embeds=embeds(3, CHANNELS),
        negative_embeds=embeds(5, CHANNELS, seed=1),
        negative_mask=torch.tensor([1, 1, 1, 0, 0]),
    )
    negative = load_text_embeds(path, CHANNELS).negative
    assert negative is not None
    assert torch.equal(negative.embeds[0], embeds(5, CHANNELS, seed=1))
    assert negative.mask.sum() == 3


@pytest.mark.parametrize("shape", [(CHANNELS,), (3, 5), (2, 3, CHANNELS), (1, 1, 3, CHANNELS), ()])
def test_other_shapes_are_named(tmp_path: Path, shape: tuple[int, ...]) -> None:
    message = refusal(saved(tmp_path, embeds=embeds(*shape))).message
    assert message.endswith(f"embeds is {shape}, expected (tokens, {CHANNELS})")
    path = saved(tmp_path, embeds=embeds(3, CHANNELS), negative_embeds=embeds(*shape))
    assert f"negative_embeds is {shape}" in refusal(path).message


@pytest.mark.parametrize("shape", [(2,), (4,), (1, 4), (3, 1), (2, 3), (), (1, 1, 3)])
def test_a_mask_fits_its_embeddings(tmp_path: Path, shape: tuple[int, ...]) -> None:
    mask = torch.ones(shape)
    message = refusal(saved(tmp_path, embeds=embeds(3, CHANNELS), mask=mask)).message
    assert message.endswith("expected (3,)")
    path = saved(
        tmp_path,
        embeds=embeds(3, CHANNELS),
        negative_embeds=embeds(3, CHANNELS),
        negative_mask=mask,
    )
    assert "negative_mask is " in refusal(path).message


def test_a_prompt_has_a_token(tmp_path: Path) -> None:
    path = saved(tmp_path, embeds=embeds(3, CHANNELS), mask=torch.zeros(3))
    assert "mask leaves no token" in refusal(path).message
    assert "mask leaves no token" in refusal(saved(tmp_path, embeds=embeds(0, CHANNELS))).message


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
def test_numbers_are_finite(tmp_path: Path, value: float) -> None:
    """1e300 is, but not in float32."""
    values = embeds(3, CHANNELS).double()
    values[1, 2] = value
    assert "not finite" in refusal(saved(tmp_path, embeds=values)).message


@pytest.mark.parametrize("kind", [torch.int64, torch.bool], ids=str)
def test_token_numbers_are_no_embeddings(tmp_path: Path, kind: torch.dtype) -> None:
    path = saved(tmp_path, embeds=torch.ones(3, CHANNELS).to(kind))
    assert "embeds holds values that are not finite float32 numbers" in refusal(path).message


def test_the_tensor_is_called_embeds(tmp_path: Path) -> None:
    error = refusal(saved(tmp_path, prompt_embeds=embeds(3, CHANNELS)))
    assert error.message.endswith("no tensor named embeds")
    assert error.hint == "it holds embeds and mask"


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, tmp_path / "nul\0"):
        assert refusal(path).message.endswith("no such embeddings file")
    assert "not a readable safetensors file" in refusal(tmp_path / ("x" * 300)).message
    path = saved(tmp_path, embeds=embeds(3, CHANNELS))
    data = path.read_bytes()
    for damaged in (b"", b"<html></html>", data[:-1], data[: len(data) // 2], b"\x80\x04K\x01."):
        path.write_bytes(damaged)
        assert "not a readable safetensors file: " in refusal(path).message
