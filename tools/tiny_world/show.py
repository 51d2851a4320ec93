"""A contact sheet of a clip: its caption, its action string, and a dozen of its frames.

python -m tools.tiny_world.show SEED OUT.png [FRAMES]
"""

import sys
from pathlib import Path
from textwrap import wrap

import numpy as np
import torch
from PIL import Image, ImageDraw

from tools.tiny_world.batch import pack_scenes
from tools.tiny_world.cast_torch import cast
from tools.tiny_world.clip import Clip, make_clip
from tools.tiny_world.lens import HEIGHT, WIDTH

COLUMNS, ROWS = 4, 3
LINE = 14  # pixels


def contact_sheet(clip: Clip) -> Image.Image:
    """COLUMNS × ROWS frames, evenly spread over the clip, below its words."""
    shown = np.linspace(0, len(clip.poses) - 1, COLUMNS * ROWS).round().astype(int)
    poses = torch.from_numpy(clip.poses[shown])[None]
    frames = cast(pack_scenes([clip.scene]), poses)[0].numpy()
    grid = frames.reshape(ROWS, COLUMNS, HEIGHT, WIDTH, 3).transpose(0, 2, 1, 3, 4)
    words = [f"seed {clip.scene.seed}, {len(clip.poses)} frames: {clip.action}", clip.caption]
    lines = [line for text in words for line in wrap(text, COLUMNS * WIDTH // 7)]
    top = LINE * len(lines) + 8
    sheet = Image.new("RGB", (COLUMNS * WIDTH, top + ROWS * HEIGHT), "white")
    sheet.paste(Image.fromarray(grid.reshape(ROWS * HEIGHT, COLUMNS * WIDTH, 3)), (0, top))
    ImageDraw.Draw(sheet).text((6, 4), "\n".join(lines), fill="black")
    return sheet


if __name__ == "__main__":
    length = int(sys.argv[3]) if len(sys.argv) > 3 else 97
    contact_sheet(make_clip(int(sys.argv[1]), frames=length)).save(Path(sys.argv[2]))
