"""The VAE against published numbers, against diffusers, and against its own streaming laws."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from diffusers import AutoencoderKLLTX2Video
from safetensors.torch import load_file

from sanawm_cli.configs import VaeConfig
from sanawm_cli.errors import ChunkPlanError, PlanError, SessionError, WeightsError
from sanawm_cli.vae.autoencoder import CausalVae
from sanawm_cli.vae.decoder import DecoderConv
from sanawm_cli.vae.memory import DecoderMemory
from sanawm_cli.vae.parts import depth_to_space, patchify, space_to_depth, unpatchify

FIXTURES = Path(__file__).parents[1] / "fixtures"
TINY = VaeConfig(
    latent_channels=8,
    encoder_channels=(16, 16, 32, 32),
    encoder_layers=(1, 2, 1, 1, 1),
    decoder_channels=(8, 16, 32),
    decoder_layers=(1, 2, 1, 1),
)
# Unlike the published one wherever it can be: strides in both networks, factor, scaling, patch.
ODD = VaeConfig(
    latent_channels=6,
    encoder_channels=(12, 16, 32),
    encoder_layers=(2, 1, 0, 1),
    encoder_strides=((2, 1, 1), (1, 2, 2), (2, 2, 2)),
    decoder_channels=(16, 16, 32),
    decoder_layers=(0, 1, 2, 1),
    decoder_strides=((1, 2, 2), (2, 1, 1), (2, 2, 2)),
    decoder_factors=(2, 1, 1),
    patch=2,
    scaling_factor=0.7,
)
TYPES = {(1, 2, 2): "spatial", (2, 1, 1): "temporal", (2, 2, 2): "spatiotemporal"}
GRIDS_OF_5 = [(0, *(i for i in range(1, 5) if bits >> (i - 1) & 1), 5) for bits in range(1, 16)]


def fixture(name):
    return load_file(FIXTURES / f"vae_a.{name}.safetensors")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def io():
    return fixture("io")


def tiny_vae(dtype=torch.float32):
    vae = CausalVae(TINY)
    vae.load_state_dict(fixture("weights"), strict=True)
    return vae.to(dtype)


def random_vae(config):
    torch.manual_seed(5)
    vae = CausalVae(config)
    vae.latents_mean.normal_()
    vae.latents_std.uniform_(0.5, 2.0)
    return vae


@pytest.fixture(scope="module")
def vae():
    return tiny_vae()


def decode_grid(vae, latents, grid):
    memory, frames = vae.empty_memory(), []
    for start, stop in pairwise(grid):
        chunk, memory = vae.decode(latents[:, :, start:stop], memory)
        frames.append(chunk)
    return torch.cat(frames, dim=2), memory


def check(got, want, tolerance):
    assert got.shape == want.shape
    assert (got - want).abs().max().item() <= tolerance


def same(a, b):
    assert a.started == b.started
    assert a.tails.keys() == b.tails.keys()
    assert all(torch.equal(a.tails[name], b.tails[name]) for name in a.tails)


# Published numbers


def test_encode_image_as_published(vae, io):
    mode = vae.encode(io["in.image"])
    check(mode, io["out.posterior_mode"], 5e-6)
    check(vae.normalise(mode), io["out.latent_normalized"], 5e-6)


def test_encode_clip_as_published(vae, io):
    check(vae.encode(io["in.video17"]), io["out.video17_mode"], 5e-6)


def test_denormalise_as_published(vae, io):
    latents = io["in.latents_normalized"]
    check(vae.denormalise(latents), io["mid.latents_denormalized"], 5e-6)
    check(vae.normalise(vae.denormalise(latents)), latents, 5e-6)


def test_normalise_scales():
    vae = random_vae(ODD)
    latents = torch.randn(2, 6, 3, 2, 2, dtype=torch.float64)
    mean, std = (x.double().view(6, 1, 1, 1) for x in (vae.latents_mean, vae.latents_std))
    check(vae.normalise(latents), (latents - mean) * 0.7 / std, 1e-12)
    check(vae.denormalise(vae.normalise(latents)), latents, 1e-12)


def test_decode_chunks_as_published(vae, io):
    memory = vae.empty_memory()
    for i, (start, stop) in enumerate(pairwise((0, 4, 7, 10))):
        frames, memory = vae.decode(io["in.latents_normalized"][:, :, start:stop], memory)
        check(frames, fixture(f"pixels{i}")["out.pixels"], 1e-5)
        if i == 1:
            after_chunk_1 = memory
    flags = {name: x for name, x in fixture("cache_after_chunk1").items() if "trim" in name}
    tails = {name: x for name, x in fixture("cache_after_chunk1").items() if name not in flags}
    assert after_chunk_1.started == all(flag.item() == 1 for flag in flags.values())
    assert after_chunk_1.tails.keys() == tails.keys()
    for name, tail in tails.items():
        check(after_chunk_1.tails[name], tail, 1e-5)


# diffusers


def diffusers_twin(vae):
    config, scales = vae.config, len(vae.config.decoder_strides)
    twin = AutoencoderKLLTX2Video(
        latent_channels=config.latent_channels,
        block_out_channels=config.encoder_channels,
        down_block_types=("LTX2VideoDownBlock3D",) * len(config.encoder_channels),
        decoder_block_out_channels=config.decoder_channels,
        layers_per_block=config.encoder_layers,
        decoder_layers_per_block=config.decoder_layers,
        spatio_temporal_scaling=(True,) * len(config.encoder_strides),
        decoder_spatio_temporal_scaling=(True,) * scales,
        decoder_inject_noise=(False,) * (scales + 1),
        downsample_type=tuple(TYPES[s] for s in config.encoder_strides),
        upsample_type=tuple(TYPES[s] for s in config.decoder_strides),
        upsample_residual=(True,) * scales,
        upsample_factor=config.decoder_factors[::-1],
        patch_size=config.patch,
        scaling_factor=config.scaling_factor,
        encoder_causal=True,
        decoder_causal=True,
        encoder_spatial_padding_mode="zeros",
        decoder_spatial_padding_mode="reflect",
    )
    twin.load_state_dict(vae.state_dict(), strict=True)
    return twin.eval()


@pytest.mark.parametrize("make", [tiny_vae, lambda: random_vae(ODD)], ids=["tiny", "odd"])
def test_equals_diffusers(make, io):
    vae = make()
    twin, config = diffusers_twin(vae), vae.config
    clip = io["in.video17"][..., :64]
    check(vae.encode(clip), twin.encode(clip, return_dict=False)[0].mode(), 1e-5)
    latents = torch.randn(
        1, config.latent_channels, 7, 2, 3, generator=torch.Generator().manual_seed(1)
    )
    frames, _ = decode_grid(vae, latents, (0, 3, 4, 7))
    check(frames, twin.decode(vae.denormalise(latents), return_dict=False)[0], 1e-5)


# Laws of streaming


def test_every_cut_gives_the_same_frames(io):
    vae = tiny_vae(torch.float64)
    latents = io["in.latents_normalized"][:, :, :5].double()
    whole, memory = decode_grid(vae, latents, (0, 5))
    for grid in GRIDS_OF_5:
        frames, after = decode_grid(vae, latents, grid)
        check(frames, whole, 1e-9)
        for name in memory.tails:
            check(after.tails[name], memory.tails[name], 1e-9)


@pytest.mark.parametrize(
    "grid", [(0, 4, 7, 10), (0, 1, 2, 3, 10), (0, 3, 4, 10), tuple(range(11))], ids=str
)
def test_float32_cuts_agree(vae, io, grid):
    latents = io["in.latents_normalized"]
    check(decode_grid(vae, latents, grid)[0], decode_grid(vae, latents, (0, 10))[0], 1e-5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_only_the_first_latent_stands_for_one_frame(vae, io, size):
    frames, memory = vae.decode(io["in.latents_normalized"][:, :, :size], vae.empty_memory())
    assert frames.shape == (1, 3, 8 * (size - 1) + 1, 64, 96)
    frames, _ = vae.decode(io["in.latents_normalized"][:, :, :size], memory)
    assert frames.shape == (1, 3, 8 * size, 64, 96)


def test_decode_leaves_the_memory_it_was_given_alone(vae, io):
    latents = io["in.latents_normalized"]
    _, memory = vae.decode(latents[:, :, :3], vae.empty_memory())
    before = DecoderMemory({name: x.clone() for name, x in memory.tails.items()}, started=True)
    first, after = vae.decode(latents[:, :, 3:5], memory)
    same(memory, before)
    again, after_again = vae.decode(latents[:, :, 3:5], memory)
    assert torch.equal(first, again)
    same(after, after_again)


def test_memory_does_not_grow(vae, io):
    latents = io["in.latents_normalized"]
    _, first = vae.decode(latents[:, :, :1], vae.empty_memory())
    _, later = decode_grid(vae, latents, (0, 1, 4, 10))
    assert later.nbytes == first.nbytes
    for tail in later.tails.values():  # and no tail keeps a larger tensor alive
        assert tail.untyped_storage().nbytes() == tail.nbytes


def test_memory_survives_a_file(vae, io):
    latents = io["in.latents_normalized"]
    _, memory = vae.decode(latents[:, :, :3], vae.empty_memory())
    restored = DecoderMemory.from_tensors(memory.to_tensors())
    same(restored, memory)
    straight, resumed = (vae.decode(latents[:, :, 3:4], m)[0] for m in (memory, restored))
    assert torch.equal(straight, resumed)
    same(DecoderMemory.from_tensors(vae.empty_memory().to_tensors()), vae.empty_memory())


def test_frames_ignore_later_latents(vae, io):
    latents = io["in.latents_normalized"][:, :, :5].clone()
    whole, _ = vae.decode(latents, vae.empty_memory())
    latents[:, :, 3:] = float("nan")
    poisoned, _ = vae.decode(latents, vae.empty_memory())
    check(poisoned[:, :, :17], whole[:, :, :17], 1e-5)
    assert poisoned[:, :, 17:].isnan().all()


def test_first_latent_of_a_clip_is_its_first_frame_encoded(vae, io):
    clip = io["in.video17"]
    check(vae.encode(clip)[:, :, :1], vae.encode(clip[:, :, :1]), 5e-6)


def test_clips_of_a_batch_do_not_mix(vae, io):
    pair = io["in.latents_normalized"][:, :, :4].repeat(2, 1, 1, 1, 1)
    pair[1] = pair[1].flip(1)
    frames, _ = decode_grid(vae, pair, (0, 2, 4))
    for i in range(2):
        check(frames[i : i + 1], decode_grid(vae, pair[i : i + 1], (0, 2, 4))[0], 1e-5)


# Precision


def test_casting_leaves_the_statistics_alone(vae):
    half = tiny_vae(torch.bfloat16)
    assert {p.dtype for p in half.parameters()} == {torch.bfloat16}
    assert torch.equal(half.latents_mean, vae.latents_mean)
    assert torch.equal(half.latents_std, vae.latents_std)
    assert half.normalise(torch.zeros(1, 8, 1, 2, 2, dtype=torch.bfloat16)).dtype == torch.float32
    assert vae.normalise(torch.zeros(1, 8, 1, 2, 2, dtype=torch.float64)).dtype == torch.float64
    assert tiny_vae(torch.float64).latents_mean.dtype == torch.float64


def test_bfloat16_stays_close(vae, io):
    latents = io["in.latents_normalized"]
    frames, memory = decode_grid(tiny_vae(torch.bfloat16), latents, (0, 4, 7, 10))
    assert {frames.dtype, *(x.dtype for x in memory.tails.values())} == {torch.bfloat16}
    error = frames.float() - decode_grid(vae, latents, (0, 4, 7, 10))[0]
    assert error.square().mean().sqrt().item() < 0.01  # of a range of 2


# Shapes and names


def test_names_and_shapes_are_the_published_ones():
    with torch.device("meta"):
        vae = CausalVae(VaeConfig())
    published = json.loads((FIXTURES / "keys_vae.json").read_text())["keys"]
    shapes = {name: list(x.shape) for name, x in vae.state_dict().items()}
    assert shapes == {name: entry["shape"] for name, entry in published.items()}
    parameters = {name for name, entry in published.items() if entry["kind"] == "param"}
    assert {name for name, _ in vae.named_parameters()} == parameters


def test_tails_are_named_after_their_convolutions(vae):
    for path, module in vae.decoder.named_modules():
        if isinstance(module, DecoderConv):
            assert module.name == path.removesuffix(".conv")


def test_folding_orders():
    """Channel slowest, then time, height, width offsets; a patch has width before height."""
    c, t, y, x = torch.meshgrid(*(torch.arange(n) for n in (3, 2, 4, 4)), indexing="ij")
    video = (1000 * c + 100 * t + 10 * y + x).unsqueeze(0)
    folded = space_to_depth(video, (2, 2, 2))[0, :, 0, 1, 1].tolist()
    assert folded[:9] == [22, 23, 32, 33, 122, 123, 132, 133, 1022]
    assert patchify(video, 2)[0, :, 1, 1, 1].tolist()[:5] == [122, 132, 123, 133, 1122]
    assert torch.equal(depth_to_space(space_to_depth(video, (2, 2, 2)), (2, 2, 2)), video)
    assert torch.equal(unpatchify(patchify(video, 2), 2), video)


# Refusals


def test_refuses_an_empty_chunk(vae, io):
    with pytest.raises(ChunkPlanError, match="0 latents"):
        vae.decode(io["in.latents_normalized"][:, :, :0], vae.empty_memory())


def test_refuses_a_picture_of_one_row(vae, io):
    with pytest.raises(PlanError, match="1×3 latents"):
        vae.decode(io["in.latents_normalized"][..., :1, :], vae.empty_memory())


def test_refuses_the_memory_of_another_picture(vae, io):
    latents = io["in.latents_normalized"]
    _, memory = vae.decode(latents[:, :, :1], vae.empty_memory())
    with pytest.raises(SessionError, match="1 × 2×2 latents does not continue a clip of 1 × 2×3"):
        vae.decode(latents[:, :, 1:2, :, :2], memory)


@pytest.mark.parametrize(("frames", "width"), [(16, 96), (17, 95)])
def test_refuses_to_encode_off_the_grid(vae, io, frames, width):
    with pytest.raises(PlanError):
        vae.encode(io["in.video17"][:, :, :frames, :, :width])


@pytest.mark.parametrize(
    "config",
    [
        VaeConfig(encoder_layers=(4, 6, 6, 2)),
        VaeConfig(decoder_strides=((2, 2, 2), (2, 2, 2))),
        VaeConfig(decoder_channels=(256, 512, 768)),
        VaeConfig(decoder_factors=(3, 2, 2)),
        VaeConfig(encoder_channels=(250, 512, 1024, 2048)),
    ],
)
def test_refuses_a_config_whose_parts_do_not_fit(config):
    with torch.device("meta"), pytest.raises(WeightsError, match="VAE config"):
        CausalVae(config)
