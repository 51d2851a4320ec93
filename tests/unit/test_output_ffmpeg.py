"""The child process, with small scripts in ffmpeg's place."""

import os
import signal
import sys
from pathlib import Path
from select import select
from threading import Thread

import pytest

from sanawm_cli.errors import OutputError
from sanawm_cli.output.ffmpeg import bundled_ffmpeg, literal, run_checked, run_ffmpeg


@pytest.fixture
def fake(tmp_path):
    def write(body: str, *, interpreter: str = "/bin/sh") -> str:
        path = tmp_path / "fake ffmpeg"
        path.write_text(f"#!{interpreter}\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return write


def run(ffmpeg: str, folder: Path, stdin: bytes = b"") -> None:
    run_checked(ffmpeg, ["-x"], folder=folder, writing=folder / "out.mp4", stdin=memoryview(stdin))


def test_the_bundled_one_runs(tmp_path):
    finished = run_ffmpeg(bundled_ffmpeg(), ["-version"], folder=tmp_path)
    assert finished.failure is None
    assert "libx264" in finished.stdout


def test_arguments_reach_it_unchanged(tmp_path, fake):
    odd = ["-x", "a b", "it's", 'say "hi"', "$HOME", "new\nline", "é", "*", ";true"]
    ffmpeg = fake("printf '%s\\0' \"$@\"")
    assert run_ffmpeg(ffmpeg, odd, folder=tmp_path).stdout.split("\0")[:-1] == odd


def test_a_child_that_talks_while_it_is_fed_does_not_deadlock(tmp_path, fake):
    ffmpeg = fake("head -c 3000000 /dev/zero | tr '\\0' x >&2; wc -c; head -c 100000 /dev/zero")
    finished = run_ffmpeg(ffmpeg, [], folder=tmp_path, stdin=memoryview(bytes(5_000_000)))
    assert len(finished.stderr) == 3_000_000
    assert finished.stdout.split("\n")[0].strip() == "5000000"
    assert len(finished.stdout) > 100_000


def test_last_words_are_shown(tmp_path, fake):
    ffmpeg = fake('for i in 1 2 3 4 5; do echo "line $i" >&2; echo >&2; done; exit 7')
    with pytest.raises(OutputError) as caught:
        run(ffmpeg, tmp_path)
    assert caught.value.message == (
        f"ffmpeg failed while writing {tmp_path}/out.mp4: exit code 7: line 3 | line 4 | line 5"
    )
    assert caught.value.hint is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("exit 1", "exit code 1: it said nothing"),
        ("kill -9 $$", "killed by signal SIGKILL: it said nothing"),
        ("kill -7 $$", "killed by signal SIGBUS: it said nothing"),
        ("echo x264 died >&2; kill -9 $$", "killed by signal SIGKILL: x264 died"),
        ("echo write: No space left on device >&2; exit 1", "No space left on device"),
    ],
)
def test_a_silent_or_sudden_death_points_at_the_disk(tmp_path, fake, body, message):
    with pytest.raises(OutputError, match=message) as caught:
        run(fake(body), tmp_path, stdin=bytes(1_000_000))  # more than a pipe holds: it breaks
    assert f"full disk is the usual cause: free some space in {tmp_path}" in caught.value.hint


def test_complaints_with_exit_code_0_are_failures(tmp_path, fake):
    with pytest.raises(OutputError, match="exit code 0: skipping a file"):
        run(fake("echo skipping a file >&2"), tmp_path)


def test_what_cannot_be_started_is_named(tmp_path, fake):
    with pytest.raises(OutputError, match=r"cannot start /no/ffmpeg .*No such file"):
        run("/no/ffmpeg", tmp_path)
    plain = tmp_path / "plain"
    plain.write_text("text")
    with pytest.raises(OutputError, match="Permission denied"):
        run(str(plain), tmp_path)
    plain.chmod(0o755)
    with pytest.raises(OutputError, match="Exec format error"):
        run(str(plain), tmp_path)
    with pytest.raises(OutputError) as caught:
        run(fake("true"), tmp_path / "missing")
    assert caught.value.hint == f"make the folder first: mkdir -p {tmp_path / 'missing'}"


def test_it_has_a_session_of_its_own(tmp_path, fake):
    ffmpeg = fake("import os; print(os.getsid(0) == os.getpid())", interpreter=sys.executable)
    assert run_ffmpeg(ffmpeg, [], folder=tmp_path).stdout == "True\n"


def test_after_ctrl_c_neither_the_child_nor_its_children_run(tmp_path, fake):
    started, never = tmp_path / "started", tmp_path / "never"
    os.mkfifo(started)
    os.mkfifo(never)
    pids = []
    # `cat` waits for ever on a FIFO that nobody writes to; both processes hold `started` open.
    ffmpeg = fake(f"exec 3> '{started}'; cat '{never}' & echo $$ >&3; wait")

    def interrupt_once_it_runs():
        with started.open("rb", buffering=0) as file:
            pids.append(int(file.read(100)))
            os.kill(os.getpid(), signal.SIGINT)
            ended, _, _ = select([file], [], [], 20)  # until no process has it open any more
            assert ended
            assert file.read(1) == b""
            pids.append(0)

    thread = Thread(target=interrupt_once_it_runs)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(ffmpeg, tmp_path, stdin=bytes(1_000_000))
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    thread.join()
    assert pids[1:] == [0]


@pytest.mark.parametrize("name", ["-x.mp4", "concat:a.mp4", "a:b|c.mp4", "%03d.mp4", "é '\".mp4"])
def test_any_file_name_can_be_taken_literally(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    source = ["-v", "error", "-f", "lavfi", "-i", "color=size=16x16:duration=0.1"]
    path = Path(name)
    finished = run_ffmpeg(bundled_ffmpeg(), [*source, "-f", "mp4", literal(path)], folder=tmp_path)
    assert finished.failure is None
    assert os.listdir(tmp_path) == [name]
    read = run_ffmpeg(
        bundled_ffmpeg(),
        ["-v", "error", "-i", literal(path), "-f", "framecrc", "-"],
        folder=tmp_path,
    )
    assert read.failure is None
