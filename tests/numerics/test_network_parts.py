"""Laws of the parts: key convolution, ray transforms, RMS limit, temporal convolution."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from toy import SIZE, Size, error, generator, toy_camera

from sanawm_cli.model.dit import Network
from sanawm_cli.model.ffn import TemporalFFN
from sanawm_cli.model.key_conv import key_convolution, key_tail
from sanawm_cli.model.memory import DeltaMemory
from sanawm_cli.model.mixers import DeltaMixer
from sanawm_cli.model.rays import encode_rays, limit_rms, ray_transforms
from sanawm_cli.model.rope import rotation


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


# --- key convolution ----------------------------------------------------------------------------


def two_convolutions(key: Tensor, weight: Tensor, tail: Tensor) -> Tensor:
    """Causal over [tail, key], anti-causal over key alone, less one centre tap."""

    def conv(line: Tensor) -> Tensor:  # b t s c → b t s c, three frames shorter
        rows = line.permute(0, 2, 3, 1).flatten(0, 1)
        done = F.conv1d(rows, weight, groups=weight.shape[0])
        return done.unflatten(0, (line.shape[0], -1)).permute(0, 3, 1, 2)

    zeros = torch.zeros_like(tail)
    past = conv(torch.cat((tail, key), 1))
    future = conv(torch.cat((zeros, key.flip(1)), 1)).flip(1)
    return past + future - weight[:, 0, -1] * key


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("past", [True, False], ids=["past", "no past"])
def test_key_convolution_is_two_convolutions(frames: int, past: bool) -> None:
    key, weight = normal(2, frames, 3, 5), normal(5, 1, 4, seed=1)
    tail = normal(2, 3, 3, 5, seed=2) if past else torch.zeros(2, 3, 3, 5).double()
    got = key_convolution(key, weight, tail)
    assert error(got, two_convolutions(key, weight, tail)) <= 1e-12


def test_key_convolution_changes_no_input() -> None:
    given = (normal(2, 4, 3, 5), normal(5, 1, 4, seed=1), normal(2, 3, 3, 5, seed=2))
    before = [x.clone() for x in given]
    key_convolution(*given)
    assert all(torch.equal(x, y) for x, y in zip(given, before, strict=True))


@pytest.mark.parametrize("frames", [1, 2, 3, 5])
def test_key_tail_is_the_chunks_own_last_three(frames: int) -> None:
    """A short chunk's is filled with zeros on the left: [0, f0, f1], [0, 0, f0]."""
    key = normal(2, frames, 3, 5)
    tail = key_tail(key)
    assert tail.shape == (2, 3, 3, 5)
    for place in range(3):
        frame = frames - 3 + place
        want = key[:, frame] if frame >= 0 else torch.zeros(2, 3, 5).double()
        assert torch.equal(tail[:, place], want)


def test_the_cameras_key_convolution_does_not_look_back(network: Network) -> None:
    """Upstream behaviour: with another key tail the camera branch stays the same."""
    mixer = network.layers[0].attn
    assert isinstance(mixer, DeltaMixer)
    camera = toy_camera(1, 3, SIZE)
    x = normal(1, 3, 6, 48)
    beta, decay = mixer.gates(x)
    text = network.text_context(normal(1, 2, 20), torch.ones(1, 2))
    context = network.chunk_context(text, camera.chunk(0, 3), latents=range(3), size=SIZE)
    memory = network.empty_memory(1, 6)[0]
    assert context.camera is not None
    assert isinstance(memory, DeltaMemory)
    results, mains = [], []
    for tail in (torch.zeros(1, 3, 6, 48).double(), normal(1, 3, 6, 48, seed=3)):
        past = replace(memory, key_tail=tail)
        results.append(mixer.camera(x, beta, decay, past, context.camera))
        mains.append(mixer.main(x, beta, decay, past, context)[0])
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert error(mains[0], mains[1]) > 1e-3


# --- ray transforms -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(2, 3), (3, 2), (1, 5)], ids=str)
def test_into_and_out_undo_each_other(size: Size) -> None:
    rays = ray_transforms(toy_camera(2, 4, size).raymap, size)
    assert rays.into.shape == rays.out.shape == (2, 4 * size[0] * size[1], 4, 4)
    identity = torch.eye(4, dtype=torch.float64).expand_as(rays.into)
    assert error(rays.into @ rays.out, identity) <= 1e-9
    assert error(rays.into[..., 3, :], identity[..., 3, :]) == 0


def test_a_ray_frame_looks_along_the_ray_and_is_level_with_the_camera() -> None:
    size, camera = (2, 3), toy_camera(1, 2, (2, 3))
    rays = ray_transforms(camera.raymap, size)
    out = rays.out.unflatten(1, (2, 2, 3))  # b t rows columns 4 4
    for frame in range(2):
        pose = camera.raymap[0, frame, :16].view(4, 4)
        fx, fy, cx, cy = camera.raymap[0, frame, 16:].tolist()
        for row in range(2):
            for column in range(3):
                ray = torch.tensor([(column - cx) / fx, (row - cy) / fy, 1.0], dtype=pose.dtype)
                x, y, z, place = out[0, frame, row, column, :3].unbind(-1)
                assert error(z, F.normalize(pose[:3, :3] @ ray, dim=0)) <= 1e-9
                assert error(place, pose[:3, 3]) == 0
                assert abs(float(x @ pose[:3, 1])) <= 1e-9  # level with the camera
                assert float(y @ pose[:3, 1]) > 0  # and not upside down
                assert error(torch.linalg.cross(x, y), z) <= 1e-9


def test_a_ray_along_the_down_axis_gets_the_identity_and_no_other() -> None:
    """Such a pose is no rotation; upstream's answer to it is kept."""
    size = (2, 3)
    raymap = toy_camera(1, 2, size).raymap
    pose = torch.eye(4, dtype=torch.float64)
    pose[:3, 2] = pose[:3, 1]  # forward is down: the middle column of rays is parallel to it
    pose[:3, 3] = torch.tensor([1.0, 2.0, 3.0])
    raymap[0, 1] = torch.cat((pose.flatten(), torch.tensor([1.0, 1.0, 1.0, 0.0]).double()))
    rays = ray_transforms(raymap, size)
    for matrices in (rays.into, rays.out):
        assert matrices.isfinite().all()
        identity = (matrices == torch.eye(4, dtype=torch.float64)).all(-1).all(-1)
        found = identity.unflatten(1, (2, 2, 3))[0].nonzero().tolist()
        assert found == [[1, 0, 1], [1, 1, 1]]  # frame 1, both rows, the middle column
    clean = ray_transforms(raymap[:, :1], size)
    assert torch.equal(rays.into[:, :6], clean.into)


def test_ucpe_multiplies_groups_of_four_and_turns_the_rest() -> None:
    x = normal(2, 6, 3, 24)
    matrix = normal(2, 6, 4, 4, seed=1)
    table = rotation(24, 12, range(4, 5), (2, 3), torch.device("cpu"))
    got = encode_rays(x, matrix, table)
    want = torch.einsum("bnij,bnhgj->bnhgi", matrix, x[..., :12].unflatten(-1, (3, 4)))
    assert error(got[..., :12], want.flatten(-2)) <= 1e-12
    assert torch.equal(got[..., 12:], table.apply(x[..., 12:]))


def test_ucpe_there_and_back() -> None:
    camera = toy_camera(1, 1, SIZE)
    rays = ray_transforms(camera.raymap, SIZE)
    table = rotation(24, 12, range(4, 5), SIZE, torch.device("cpu"))
    x = normal(1, 6, 2, 24)
    back = encode_rays(encode_rays(x, rays.out, table), rays.into, table.inverse())
    assert error(back, x) <= 1e-6  # tables are float32


def test_limit_rms_never_scales_up() -> None:
    original = normal(2, 5, 3, 16)
    factor = torch.tensor([0.0, 1e-3, 0.5, 2.0, 1e4]).double()[:, None, None]
    encoded = original.roll(1, -1) * factor
    limited = limit_rms(encoded, original)
    assert torch.equal(limited[:, :3], encoded[:, :3])
    before = original.square().mean(-1).add(1e-6).sqrt()
    after = limited.square().mean(-1).sqrt()
    assert (after <= before).all()
    assert error(after[:, 3:], before[:, 3:]) <= 1e-5
    # And it only scales: the direction stays.
    assert error(F.normalize(limited[:, 3:], dim=-1), F.normalize(encoded[:, 3:], dim=-1)) <= 1e-9


def test_limit_rms_is_per_token_and_head() -> None:
    original, encoded = normal(1, 2, 2, 8), 3 * normal(1, 2, 2, 8, seed=1)
    changed = encoded.clone()
    changed[0, 1, 1] *= 100
    same = limit_rms(changed, original) == limit_rms(encoded, original)
    assert same.all(-1)[0].tolist() == [[True, True], [True, False]]


def test_inflation_is_one_number_per_frame_and_head_and_at_least_one() -> None:
    key = normal(1, 2, 3, 6, 8)
    stretch = torch.tensor([0.5, 1.0, 3.0]).double()[None, None, :, None, None]
    got = DeltaMixer.inflation(key * stretch, key)
    want = torch.tensor([1.0, 1.0, 9.0]).double()[None, None, :, None].expand(1, 2, 3, 1)
    assert error(got, want) <= 1e-12
    nothing = torch.zeros_like(key)
    assert torch.equal(DeltaMixer.inflation(nothing, nothing), torch.ones(1, 2, 3, 1).double())


# --- temporal convolution -----------------------------------------------------------------------


def ffn(network: Network) -> TemporalFFN:
    part = network.layers[0].mlp
    assert isinstance(part, TemporalFFN)
    return part


@pytest.mark.parametrize("frames", [1, 2, 4])
def test_temporal_convolution_is_a_convolution(network: Network, frames: int) -> None:
    """Over [tail, f, zeros]: the tail counts for the first frame, and is no frame itself."""
    f, tail = normal(2, frames, 6, 48), normal(2, 1, 6, 48, seed=1)
    line = torch.cat((tail, f, torch.zeros_like(tail)), 1).permute(0, 3, 1, 2)  # b c t s
    conv = F.conv2d(line, ffn(network).t_conv.weight).permute(0, 2, 3, 1)
    assert error(ffn(network).temporal(f, tail), f + conv) <= 1e-12


def test_the_ffns_tail_is_its_last_frame_before_the_temporal_convolution(
    network: Network,
) -> None:
    x, tail = normal(2, 3, 6, 48), normal(2, 1, 6, 48, seed=1)
    _, after = ffn(network)(x, tail, SIZE)
    assert error(after, ffn(network).spatial(x[:, -1:], SIZE)) <= 1e-12


def test_the_spatial_part_sees_one_frame_at_a_time(network: Network) -> None:
    x = normal(1, 3, 6, 48)
    changed = x.clone()
    changed[:, 1] += 1
    got, want = ffn(network).spatial(changed, SIZE), ffn(network).spatial(x, SIZE)
    assert error(got[:, ::2], want[:, ::2]) <= 1e-12
    assert error(got[:, 1], want[:, 1]) > 1e-3
