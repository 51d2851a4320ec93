"""Install torch into this interpreter's environment, without CUDA where there is no GPU to use it.

    python tools/install_torch.py constraints.txt

The constraints name the version. Each way below is tried in turn, until one works:

1. a wheel that pip is configured to find on disk (no network; fails at once when there is none);
2. on Linux without an NVIDIA driver, PyTorch's index of CPU builds;
3. the package index that pip is configured with. Its build for Linux brings CUDA, some gigabytes,
   so it comes after the others.
"""

import shutil
import subprocess
import sys

# torch alone: what it needs comes from the usual index, with the rest of the package.
ON_DISK = ["--no-deps", "--no-index"]
# Few retries: behind a firewall this costs seconds, not minutes.
CPU_BUILD = ["--no-deps", "--index-url=https://download.pytorch.org/whl/cpu"]
CPU_BUILD += ["--retries=1", "--timeout=15"]
ANY_BUILD: list[str] = []


def ways(*, platform: str, nvidia: bool) -> list[list[str]]:
    """The pip options to try, in order, on a platform named as in `sys.platform`."""
    if platform == "linux" and not nvidia:
        return [ON_DISK, CPU_BUILD, ANY_BUILD]
    return [ON_DISK, ANY_BUILD]


def install(constraints: str, options: list[str], *, quiet: bool) -> bool:
    """Run pip once, its complaints dropped when `quiet`. Returns whether it worked."""
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    command = [*pip, "-c", constraints, *options, "torch"]
    return subprocess.run(command, stderr=subprocess.DEVNULL if quiet else None).returncode == 0


def main(constraints: str) -> int:
    """Try the ways; the last one's complaints are shown. Exit code 0 when one worked."""
    *firsts, last = ways(platform=sys.platform, nvidia=shutil.which("nvidia-smi") is not None)
    if any(install(constraints, options, quiet=True) for options in firsts):
        return 0
    if CPU_BUILD in firsts:
        print("torch: no CPU build found; taking the larger one from the package index", flush=True)
    return 0 if install(constraints, last, quiet=False) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
