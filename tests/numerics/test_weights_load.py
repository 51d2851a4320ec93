"""Loading is strict, keeps what has to stay float32, and gives each tensor storage of its own."""

import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from toy import CONFIG, toy_network

from sanawm_cli.conditioning.text import ByteTextEncoder
from sanawm_cli.errors import WeightsError
from sanawm_cli.jobs.machine import Machine
from sanawm_cli.jobs.models import load_network, load_text_encoder, load_vae
from sanawm_cli.model.dit import Network
from sanawm_cli.preset import presets_folder
from sanawm_cli.vae.autoencoder import CausalVae
from sanawm_cli.weights.folder import open_model_folder
from sanawm_cli.weights.keymaps import (
    from_diffusers,
    ignored_shapes,
    is_ignored,
    keeps_float32,
    to_diffusers,
)
from sanawm_cli.weights.load import load_into

CPU = torch.device("cpu")
TINY = open_model_folder(presets_folder() / "tiny")
ALIGNMENT = 64


def weights(dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    state = toy_network(dtype=torch.float32).state_dict()
    return {name: tensor.to(dtype).clone() for name, tensor in state.items()}


def on_meta(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.device("meta"):
        return build()


def saved(folder: Path, tensors: dict[str, Tensor]) -> Path:
    save_file(tensors, folder / "w.safetensors")
    return folder / "w.safetensors"


def load(path: Path, dtype: torch.dtype = torch.float32, *, ignoring: bool = False) -> nn.Module:
    network = on_meta(lambda: Network(CONFIG))
    load_into(
        network,
        path,
        device=CPU,
        dtype=dtype,
        rename=from_diffusers,
        ignore=lambda name: ignoring and is_ignored(name, CONFIG),
    )
    return network


def refusal(path: Path, *, ignoring: bool = False) -> WeightsError:
    with pytest.raises(WeightsError) as caught:
        load(path, ignoring=ignoring)
    assert caught.value.message.startswith(str(path))
    assert "\n" not in caught.value.message
    return caught.value


def assert_holds(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    state = module.state_dict()
    assert state.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert state[name].dtype == tensor.dtype, name
        assert torch.equal(state[name], tensor), name


# --- what arrives -------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_value_arrives(tmp_path: Path, stored: torch.dtype) -> None:
    tensors = weights(stored)
    assert_holds(load(saved(tmp_path, tensors)), {n: t.float() for n, t in tensors.items()})


def test_in_sixteen_bits_norms_decays_and_tables_stay_float32(tmp_path: Path) -> None:
    tensors = weights()
    module = load(saved(tmp_path, tensors), torch.bfloat16)
    assert_holds(module, {n: t if keeps_float32(n) else t.bfloat16() for n, t in tensors.items()})
    dtypes = {name: tensor.dtype for name, tensor in module.state_dict().items()}
    for name in ("blocks.0.attn.A_log", "blocks.0.attn.dt_bias", "blocks.1.scale_shift_table"):
        assert dtypes[name] == torch.float32
    assert dtypes["x_embedder.proj.weight"] == torch.bfloat16
    assert {dtype for name, dtype in dtypes.items() if "norm" in name} == {torch.float32}


def test_the_statistics_of_the_vae_stay_float32_too() -> None:
    vae = load_vae(TINY, Machine(device=CPU, dtype=torch.bfloat16, threads=1))
    buffers = dict(vae.named_buffers())
    assert buffers.keys() >= {"latents_mean", "latents_std"}
    assert {buffer.dtype for buffer in buffers.values()} == {torch.float32}


def test_in_double_precision_everything_is_double(tmp_path: Path) -> None:
    module = load(saved(tmp_path, weights()), torch.float64)
    assert {tensor.dtype for tensor in module.state_dict().values()} == {torch.float64}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_each_tensor_has_aligned_storage_of_its_own(tmp_path: Path, dtype: torch.dtype) -> None:
    module = load(saved(tmp_path, weights(dtype)), dtype)
    seen = set()
    for name, tensor in module.state_dict().items():
        storage = tensor.untyped_storage()
        assert tensor.data_ptr() % ALIGNMENT == 0, name
        assert storage.nbytes() == tensor.numel() * tensor.element_size(), name
        assert storage.data_ptr() == tensor.data_ptr(), name
        seen.add(tensor.data_ptr())
    assert len(seen) == len(module.state_dict())


def test_the_file_may_go_once_it_is_loaded(tmp_path: Path) -> None:
    tensors = weights()
    path = saved(tmp_path, tensors)
    module = load(path)
    path.write_bytes(b"\xff" * path.stat().st_size)
    path.unlink()
    assert_holds(module, tensors)


def test_nothing_can_be_trained(tmp_path: Path) -> None:
    parameters = list(load(saved(tmp_path, weights())).parameters())
    assert parameters
    assert not [p for p in parameters if p.requires_grad]


# --- names --------------------------------------------------------------------------------------


def test_diffusers_names_give_the_same_network(tmp_path: Path) -> None:
    tensors = weights()
    renamed = {to_diffusers(name): tensor for name, tensor in tensors.items()}
    assert renamed.keys() != tensors.keys()
    assert_holds(load(saved(tmp_path, renamed)), tensors)


parts = st.sampled_from(
    ["t_embedder.", "mlp.0.", "mlp.2.", "linear_1.", "linear_2.", "weight", "."]
)


@given(st.lists(parts, max_size=5).map("".join) | st.text(max_size=12))
@settings(deadline=None)
def test_renaming_undoes_itself(name: str) -> None:
    raw = from_diffusers(name)
    assert from_diffusers(raw) == raw
    assert from_diffusers(to_diffusers(raw)) == raw
    assert to_diffusers(from_diffusers(to_diffusers(name))) == to_diffusers(name)


def test_tensors_to_ignore_may_be_there(tmp_path: Path) -> None:
    tensors = weights()
    spare = {name: torch.zeros(shape) for name, shape in ignored_shapes(CONFIG, 8).items()}
    path = saved(tmp_path, tensors | spare)
    assert_holds(load(path, ignoring=True), tensors)
    assert "blocks.0.attn.recall_gate is not expected" in refusal(path).message


# --- what does not fit --------------------------------------------------------------------------


def test_missing_unexpected_and_misshapen_tensors_are_named(tmp_path: Path) -> None:
    tensors = weights()
    del tensors["blocks.2.attn.qkv.weight"]
    tensors["blocks.2.attn.qvk.weight"] = torch.zeros(3)
    tensors["blocks.0.attn.A_log"] = torch.zeros(5)
    path = saved(tmp_path, tensors)
    error = refusal(path)
    assert error.message == (
        f"{path} does not fit: blocks.2.attn.qkv.weight is missing; "
        "blocks.2.attn.qvk.weight is not expected; "
        "blocks.0.attn.A_log is (5,), the network has (2,)"
    )
    assert "another preset or release" in (error.hint or "")


def test_an_unexpected_tensor_is_named_as_the_file_names_it(tmp_path: Path) -> None:
    path = saved(tmp_path, weights() | {"t_embedder.linear_1.scale": torch.zeros(1)})
    assert "t_embedder.linear_1.scale is not expected" in refusal(path).message


@pytest.mark.parametrize("count", [1, 9, 10, 11, 25])
def test_the_first_ten_are_listed_then_counted(tmp_path: Path, count: int) -> None:
    extra = {f"extra.{index:02}": torch.zeros(1) for index in range(count)}
    message = refusal(saved(tmp_path, weights() | extra)).message
    assert message.count("is not expected") == min(count, 10)
    assert message.count("; ") == min(count, 10) - 1 + (count > 10)
    assert message.endswith(f"; and {count - 10} more") == (count > 10)


def test_one_parameter_under_two_names_is_refused(tmp_path: Path) -> None:
    """Which of the two was meant? Nobody knows, so none is taken."""
    tensors = weights()
    twin = {"t_embedder.linear_1.bias": torch.zeros_like(tensors["t_embedder.mlp.0.bias"])}
    message = refusal(saved(tmp_path, tensors | twin)).message
    assert message.endswith("does not fit: t_embedder.mlp.0.bias is there 2 times")


@pytest.mark.parametrize("kind", [torch.int8, torch.float8_e4m3fn, torch.bool], ids=str)
def test_quantised_weights_are_refused(tmp_path: Path, kind: torch.dtype) -> None:
    """Read as plain numbers, without their scales, they would give a wrong video."""
    name = "blocks.0.attn.qkv.weight"
    tensors = weights()
    path = saved(tmp_path, tensors | {name: tensors[name].to(kind)})
    assert f"does not fit: {name} is " in refusal(path).message
    assert refusal(path).message.endswith("not one of F64, F32, F16, BF16")


def test_nothing_is_loaded_from_what_does_not_fit(tmp_path: Path) -> None:
    tensors = weights()
    del tensors[max(tensors)]
    network = on_meta(lambda: Network(CONFIG))
    with pytest.raises(WeightsError):
        load_into(
            network,
            saved(tmp_path, tensors),
            device=CPU,
            dtype=torch.float32,
            rename=from_diffusers,
            ignore=lambda name: False,
        )
    assert {tensor.device.type for tensor in network.state_dict().values()} == {"meta"}


def test_the_weights_of_another_size_do_not_fit(tmp_path: Path) -> None:
    other = toy_network(replace(CONFIG, blocks=8), dtype=torch.float32)
    path = saved(tmp_path, {name: t.clone() for name, t in other.state_dict().items()})
    assert "blocks.4." in refusal(path).message


# --- damaged files ------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 7, 8, 100, -100, -1])
def test_half_a_file_is_refused(tmp_path: Path, kept: int) -> None:
    path = saved(tmp_path, weights())
    data = path.read_bytes()
    path.write_bytes(data[:kept])
    assert "not a readable safetensors file: " in refusal(path).message


@pytest.mark.parametrize(
    "data",
    [
        b"<html><body>Not found</body></html>",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        struct.pack("<Q", 4) + b"{}  ",  # a whole file of nothing
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 1 << 62) + b"{}",
        b"PK\x03\x04" + bytes(99),
    ],
    ids=["a page", "a pointer", "nothing", "a list", "a huge header", "a zip"],
)
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(data)
    assert refusal(path).exit_code == 6


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.safetensors", tmp_path):
        assert "not a readable safetensors file: " in refusal(path).message


# --- the model that comes with the package ------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_tiny_model_loads_and_every_number_is_finite(dtype: torch.dtype) -> None:
    machine = Machine(device=CPU, dtype=dtype, threads=1)
    loaded = (load_network(TINY, machine), load_vae(TINY, machine), load_text_encoder(TINY))
    for module in loaded:
        for name, tensor in module.state_dict().items():
            assert tensor.device == CPU, name
            assert torch.isfinite(tensor).all(), name


@pytest.mark.parametrize(
    ("file", "build"),
    [
        ("dit.safetensors", lambda: Network(TINY.network)),
        ("vae.safetensors", lambda: CausalVae(TINY.vae)),
        ("text.safetensors", lambda: ByteTextEncoder(TINY.text)),
    ],
)
def test_the_tiny_models_files_are_in_half_precision_and_lively(
    file: str, build: Callable[[], nn.Module]
) -> None:
    tensors = load_file(TINY.file(file))
    assert tensors.keys() == on_meta(build).state_dict().keys()
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    matrices = {name: tensor.float() for name, tensor in tensors.items() if tensor.ndim > 1}
    assert matrices
    assert not [name for name, tensor in matrices.items() if tensor.std() == 0]


def test_loading_does_not_wake_the_compiler() -> None:
    """Some initial draws on the meta device import hundreds of modules: two seconds, 70 MB."""
    code = """
        import sys, torch
        from sanawm_cli.jobs.models import *
        from sanawm_cli.preset import presets_folder
        from sanawm_cli.weights.folder import open_model_folder

        before, folder = set(sys.modules), open_model_folder(presets_folder() / "tiny")
        machine = Machine(device=torch.device("cpu"), dtype=torch.float32, threads=1)
        load_network(folder, machine), load_vae(folder, machine), load_text_encoder(folder)
        print(*sorted(set(sys.modules) - before))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert len(loaded) < 50, loaded
