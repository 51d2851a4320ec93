"""How quickly clips are made and cast on one thread of this machine.

python -m tools.tiny_world.speed
"""

from time import perf_counter

import numpy as np
import torch

from tools.tiny_world.batch import pack_scenes
from tools.tiny_world.cast_torch import cast
from tools.tiny_world.clip import make_clip
from tools.tiny_world.lens import HEIGHT, WIDTH

CLIPS, FRAMES, REPEATS = 8, 97, 3


def main() -> None:
    """Print clips per second, then frames per second, the best of a few runs."""
    torch.set_num_threads(1)
    start = perf_counter()
    clips = [make_clip(seed, frames=FRAMES) for seed in range(CLIPS)]
    print(f"walks of {FRAMES} frames: {CLIPS / (perf_counter() - start):.0f} per second")
    scenes = pack_scenes([clip.scene for clip in clips])
    poses = torch.from_numpy(np.stack([clip.poses for clip in clips]))
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        cast(scenes, poses)
        times.append(perf_counter() - start)
    print(f"{HEIGHT}×{WIDTH}: {CLIPS * FRAMES / min(times):.0f} frames per second, one thread")


if __name__ == "__main__":
    main()
