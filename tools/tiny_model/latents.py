"""Training clips as latents on disk: rendered, encoded, and kept in shards small enough to move.

    python -m tools.tiny_model.latents --vae FOLDER --out .train/latents --first 0 --clips 6400

A shard is one safetensors file of 64 clips: latents n c t h w (normalised, float16), poses
n f 4 4 float32, and the captions in its metadata. Shards that exist are not made again.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from sanawm_cli.vae.autoencoder import CausalVae
from tools.tiny_model.vae_export import load_vae
from tools.tiny_world.batch import pack_scenes
from tools.tiny_world.cast_torch import cast
from tools.tiny_world.clip import make_clip

FRAMES = 97
SHARD = 64


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """Clips of one file."""

    latents: Tensor  # n c t h w float16
    poses: NDArray[np.float32]  # n f 4 4
    captions: list[str]


def encode_clip(vae: CausalVae, seed: int) -> tuple[Tensor, NDArray[np.float32], str]:
    """Normalised latents c t h w, poses and caption of a seed's clip."""
    clip = make_clip(seed, frames=FRAMES)
    frames = cast(pack_scenes([clip.scene]), torch.from_numpy(clip.poses[None]))
    pixels = frames.permute(0, 4, 1, 2, 3).float() / 127.5 - 1
    with torch.inference_mode():
        latents = vae.normalise(vae.encode(pixels).float())
    return latents[0].half(), clip.poses, clip.caption


def write_shard(path: Path, vae: CausalVae, seeds: range) -> None:
    """Render and encode the seeds' clips into one file."""
    made = [encode_clip(vae, seed) for seed in seeds]
    tensors = {
        "latents": torch.stack([latents for latents, _, _ in made]),
        "poses": torch.from_numpy(np.stack([poses for _, poses, _ in made])),
    }
    captions = json.dumps([caption for _, _, caption in made])
    part = path.with_suffix(".part")
    save_file(tensors, part, metadata={"captions": captions})
    part.replace(path)


def read_shard(path: Path) -> Shard:
    """A file's clips."""
    with safe_open(path, framework="pt") as file:
        captions = json.loads(file.metadata()["captions"])
        poses: NDArray[np.float32] = file.get_tensor("poses").numpy()
        return Shard(file.get_tensor("latents"), poses, captions)


def main() -> None:
    """Write the shards of a stretch of seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vae", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--clips", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    vae = load_vae(given.vae, torch.bfloat16)
    given.out.mkdir(parents=True, exist_ok=True)
    for start in range(given.first, given.first + given.clips, SHARD):
        path = given.out / f"{start:08d}.safetensors"
        if not path.exists():
            write_shard(path, vae, range(start, start + SHARD))
            print(path, flush=True)


if __name__ == "__main__":
    main()
