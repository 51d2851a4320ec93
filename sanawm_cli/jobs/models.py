"""Models from a checked folder, each loaded straight to its device and precision."""

import torch

from sanawm_cli.conditioning.text import ByteTextEncoder
from sanawm_cli.jobs.machine import Machine
from sanawm_cli.model.dit import Network
from sanawm_cli.vae.autoencoder import CausalVae
from sanawm_cli.weights.folder import ModelFolder
from sanawm_cli.weights.keymaps import is_ignored
from sanawm_cli.weights.load import load_into

NETWORK_FILE = "dit.safetensors"
VAE_FILE = "vae.safetensors"
TEXT_FILE = "text.safetensors"


def check_listed(folder: ModelFolder) -> None:
    """Raise WeightsError unless the folder lists every file that a render loads."""
    folder.file(NETWORK_FILE)
    folder.file(VAE_FILE)
    if folder.text.kind == "bytes":
        folder.file(TEXT_FILE)


def load_network(folder: ModelFolder, machine: Machine) -> Network:
    """The diffusion transformer. Raises WeightsError when the file does not fit."""
    with torch.device("meta"):
        network = Network(folder.network)
    load_into(
        network,
        folder.file(NETWORK_FILE),
        device=machine.device,
        dtype=machine.dtype,
        rename=_same,
        ignore=lambda name: is_ignored(name, folder.network),
    )
    return network


def load_vae(folder: ModelFolder, machine: Machine) -> CausalVae:
    """The VAE. Raises WeightsError when the file does not fit."""
    with torch.device("meta"):
        vae = CausalVae(folder.vae)
    load_into(
        vae,
        folder.file(VAE_FILE),
        device=machine.device,
        dtype=machine.dtype,
        rename=_same,
        ignore=_none,
    )
    return vae


def load_text_encoder(folder: ModelFolder) -> ByteTextEncoder:
    """The built-in text encoder, on the CPU in float32: it runs once per clip."""
    with torch.device("meta"):
        encoder = ByteTextEncoder(folder.text)
    load_into(
        encoder,
        folder.file(TEXT_FILE),
        device=torch.device("cpu"),
        dtype=torch.float32,
        rename=_same,
        ignore=_none,
    )
    return encoder


def _same(name: str) -> str:
    return name


def _none(name: str) -> bool:
    return False
