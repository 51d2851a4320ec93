"""Does a longer clip need more memory? Peak memory of real renders of the tiny preset.

    python -m benchmarks.memory [--frames 241 961] [--runs 3]

Each render is a process of its own; the lengths take turns. Exit code 1 if the longest clip's
median peak is more than 3 % above the shortest one's.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

IMAGE = Path(__file__).parents[1] / "examples" / "courtyard.png"
ALLOWED = 1.03
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Render:
    """One render: what `sanawm render --json` told."""

    frames: int
    chunks: int
    peak_bytes: int
    wall_seconds: float


def main(arguments: Sequence[str]) -> int:
    """Measure, print a table and the ratio; 1 if memory grows with the clip."""
    options = _parse(arguments)
    renders = measure(options.frames, runs=options.runs)
    peaks = {
        frames: [render.peak_bytes for render in renders if render.frames == frames]
        for frames in sorted(set(options.frames))
    }
    print(table(renders))
    growth = ratio(peaks)
    print(f"\n{max(peaks)} frames need {growth:.4f} × the peak of {min(peaks)} (at most {ALLOWED})")
    return int(growth > ALLOWED)


def measure(lengths: Sequence[int], *, runs: int) -> list[Render]:
    """`runs` rounds over all lengths."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            render_once(frames, Path(folder) / f"{frames}.mp4")
            for _ in range(runs)
            for frames in lengths
        ]


def render_once(frames: int, video: Path) -> Render:
    """Render `frames` frames on one thread, with a camera that moves all the time."""
    command = [sys.executable, "-m", "sanawm_cli", "render", "--image", str(IMAGE)]
    command += ["--prompt", "a courtyard", "--action", f"w-{frames - 1}", "--frames", str(frames)]
    command += ["--threads", "1", "--quiet", "--json", "--overwrite", "--output", str(video)]
    done = subprocess.run(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {done.returncode}:\n{done.stderr}")
    told = json.loads(done.stdout)
    if told["peak_memory_bytes"] is None:
        raise SystemExit("this system does not tell a process's peak memory")
    return Render(
        frames=told["frames"],
        chunks=told["chunks"],
        peak_bytes=told["peak_memory_bytes"],
        wall_seconds=told["wall_seconds"],
    )


def ratio(peaks: Mapping[int, Sequence[int]]) -> float:
    """Median peak of the longest clip over that of the shortest one."""
    return median(peaks[max(peaks)]) / median(peaks[min(peaks)])


def table(renders: Sequence[Render]) -> str:
    """A line per render, in the order of measuring."""
    lines = [f"{'frames':>8}{'chunks':>8}{'peak MB':>10}{'seconds':>10}"]
    lines += [
        f"{each.frames:>8}{each.chunks:>8}"
        f"{each.peak_bytes / MEGABYTE:>10.1f}{each.wall_seconds:>10.1f}"
        for each in renders
    ]
    return "\n".join(lines)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[241, 961], help="clip lengths")
    parser.add_argument("--runs", type=int, default=3, help="renders of each length")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
