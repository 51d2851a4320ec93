"""What waiting OpenMP threads cost when another process holds a core.

    python -m benchmarks.threads [--threads 2] [--runs 3]

Renders of the tiny preset, with OMP_WAIT_POLICY unset and with PASSIVE (as the command line sets
it), each on a machine left alone and beside a process that computes all the time. They take turns.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.memory import IMAGE

POLICIES = ("unset", "PASSIVE")
BESIDE = ("nothing", "a busy process")
# Not the program's entry, which sets the policy.
RUN = "import sys; from sanawm_cli.cli.main import run; sys.exit(run(sys.argv[1:]))"


def main(arguments: Sequence[str]) -> None:
    """Measure and print a table of the seconds that the network takes per chunk."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--threads", type=int, default=2, help="compute threads of a render")
    parser.add_argument("--runs", type=int, default=3, help="renders of each kind")
    options = parser.parse_args(arguments)
    kinds = list(product(POLICIES, BESIDE))
    seconds: dict[tuple[str, str], list[float]] = {kind: [] for kind in kinds}
    for _, (policy, beside) in product(range(options.runs), kinds):
        with busy_process(wanted=beside != BESIDE[0]):
            seconds[policy, beside] += chunk_seconds(policy, options.threads)
    print(f"{'OMP_WAIT_POLICY':<17}{'beside':<16}{'least':>8}{'median':>8}{'most':>8}")
    for (policy, beside), all_of_it in seconds.items():
        told = "".join(f"{f(all_of_it):>8.2f}" for f in (min, median, max))
        print(f"{policy:<17}{beside:<16}{told}")


def chunk_seconds(policy: str, threads: int) -> list[float]:
    """Network seconds of each chunk of a render."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    if policy != POLICIES[0]:
        environment["OMP_WAIT_POLICY"] = policy
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / "clip.mp4"
        command = ["render", "--image", str(IMAGE), "--prompt", "a courtyard", "--quiet"]
        command += ["--action", "w-72", "--threads", str(threads), "--output", str(video)]
        subprocess.run([sys.executable, "-c", RUN, *command], env=environment, check=True)
        sidecar = json.loads(video.with_suffix(".json").read_text(encoding="utf-8"))
    return [chunk["network"] for chunk in sidecar["chunk_seconds"]]


@contextmanager
def busy_process(*, wanted: bool) -> Iterator[None]:
    """Have another process compute all the time, if it is `wanted`."""
    if not wanted:
        yield
        return
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
