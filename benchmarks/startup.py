"""How long the commands that load no model take, beside an import of torch.

    python -m benchmarks.startup [--runs 5]

Each run is a process of its own; the commands take turns, after one round that does not count.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

COMMANDS = {
    "sanawm --help": ["-m", "sanawm_cli", "--help"],
    "sanawm plan --frames 961": ["-m", "sanawm_cli", "plan", "--frames", "961"],
    "python -c 'import torch'": ["-c", "import torch"],
}


@dataclass(frozen=True, slots=True)
class Timing:
    """One run of a command: seconds on the clock, and of processor time."""

    clock: float
    processor: float


def main(arguments: Sequence[str]) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds that count")
    runs = parser.parse_args(arguments).runs
    rounds = [
        {name: time_once(command) for name, command in COMMANDS.items()} for _ in range(1 + runs)
    ]
    print(f"median seconds of {runs} runs\n{'':<28}{'clock':>8}{'processor':>11}")
    for name in COMMANDS:
        timings = [each[name] for each in rounds[1:]]
        clock = median(timing.clock for timing in timings)
        processor = median(timing.processor for timing in timings)
        print(f"{name:<28}{clock:>8.2f}{processor:>11.2f}")


def time_once(command: Sequence[str]) -> Timing:
    """Run Python with these arguments."""
    began, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    clock, after = time.perf_counter() - began, os.times()
    used = after.children_user + after.children_system
    return Timing(clock, used - before.children_user - before.children_system)


if __name__ == "__main__":
    main(sys.argv[1:])
