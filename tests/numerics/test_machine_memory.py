"""Memory is counted right, and goes back to the system when it is freed."""

import platform
import subprocess
import sys
import textwrap

import numpy as np
import pytest

LINUX = sys.platform == "linux"
GLIBC = platform.libc_ver()[0] == "glibc"


def python(code: str) -> int:
    """The number that a new Python process prints."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_the_peak_is_our_own_and_not_that_of_whoever_started_us() -> None:
    """getrusage tells a child of a large process the large one's peak."""
    code = "from sanawm_cli.jobs.machine import peak_memory_bytes; print(peak_memory_bytes())"
    large = np.ones(1 << 27)  # 1 GiB
    peak = python(code)
    assert 30e6 < peak < large.nbytes


@pytest.mark.skipif(not GLIBC, reason="other C libraries do as they like")
def test_freed_blocks_go_back_though_a_later_one_is_in_use() -> None:
    """Of 32 blocks of 4 MiB all but the last are freed; glibc by itself keeps about 30."""
    kept = python("""
        import torch
        from sanawm_cli.jobs.machine import return_large_blocks

        def resident() -> int:
            pages = int(open("/proc/self/statm").read().split()[1])
            return pages * 4096

        return_large_blocks()
        torch.ones(1 << 21)  # the first block that is freed is what glibc learns from
        before = resident()
        blocks = [torch.ones(1 << 20) for _ in range(32)]
        assert resident() - before > 28 * 2**22
        del blocks[:-1]
        print((resident() - before) // 2**22)
    """)
    assert kept <= 2
