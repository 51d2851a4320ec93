"""How things look, on a terminal and in a log. The only module that knows Rich; torch-free.

Results go to stdout, talk to stderr. What comes from outside (paths, prompts) is printed as it
is, never as markup.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from sanawm_cli.jobs.events import ChunkDone, Event, OnEvent, PassDone, Remark, RenderBegan
from sanawm_cli.jobs.resolve import ResolvedClip, ResolvedPlan
from sanawm_cli.memory_estimate import MemoryEstimate
from sanawm_cli.plan.chunks import Chunk, Plan

if TYPE_CHECKING:  # these bring torch along
    from sanawm_cli.jobs.machine import Machine
    from sanawm_cli.jobs.report import RenderReport
    from sanawm_cli.output.verify import VideoFacts
    from sanawm_cli.verify.report import CaseReport

_SHOWN_CHUNKS = 24  # of longer plans the middle is left out


def _out() -> Console:
    return Console(highlight=False, soft_wrap=True)


def _err() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def show_bytes(count: int) -> str:
    """Bytes for people."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def counted(count: int, word: str) -> str:
    """1 chunk, 2 chunks."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


# --- plan -------------------------------------------------------------------------------------


def show_plan(resolved: ResolvedPlan, memory: MemoryEstimate) -> None:
    """A plan for people, on stdout."""
    console = _out()
    for line in plan_lines(resolved):
        console.print(escape(line))
    console.print(_chunk_table(resolved.plan))
    parts = [(name.replace("_", " "), size) for name, size in asdict(memory).items() if size]
    console.print("memory, estimated:")
    for name, size in [*parts, ("together", memory.total)]:
        console.print(f"  {name:<18}{show_bytes(size):>10}")
    console.print("  and what Python and torch take themselves, about 300 MB on a CPU")


def plan_lines(resolved: ResolvedPlan) -> list[str]:
    """What is going to be rendered, in a few lines; every one names the model's state."""
    preset, plan = resolved.preset, resolved.plan
    name = resolved.model.label if resolved.model is not None else f"{preset.name} (no weights)"
    video = f"{preset.video.width}×{preset.video.height}"
    asked = ""
    if plan.source in ("frames", "seconds") and plan.requested != plan.frames:
        asked = f" (asked: {plan.requested})"
    lines = [
        f"{name}: {plan.frames} frames{asked} at {plan.fps} fps = {plan.seconds:.2f} s, {video}, "
        f"{plan.latents} latents in {counted(len(plan.chunks), 'chunk')}"
    ]
    if resolved.camera is not None:
        camera = resolved.camera
        lines.append(f"camera: {camera.source}; intrinsics: {camera.intrinsics.source}")
    return lines + [f"note: {note}" for note in resolved.notes]


def _chunk_table(plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("chunk", "latents", "frames", "reads chunks"):
        table.add_column(column, justify="left" if column == "reads chunks" else "right")
    chunks = plan.chunks
    head: tuple[Chunk, ...] = chunks
    tail: tuple[Chunk, ...] = ()
    if len(chunks) > _SHOWN_CHUNKS:
        head, tail = chunks[: _SHOWN_CHUNKS - 4], chunks[-3:]
    for chunk in head:
        table.add_row(*_chunk_row(chunk))
    if tail:
        table.add_row("…", "", "", f"({len(chunks) - len(head) - len(tail)} more)")
    for chunk in tail:
        table.add_row(*_chunk_row(chunk))
    return table


def _chunk_row(chunk: Chunk) -> tuple[str, str, str, str]:
    context = [str(index) for index in chunk.context]
    if len(context) > 8:
        context = [*context[:3], "…", *context[-3:]]
    return (
        str(chunk.index),
        f"{chunk.start}–{chunk.stop - 1}",
        f"{chunk.first_frame}–{chunk.stop_frame - 1}",
        " ".join(context) or "–",
    )


# --- render -----------------------------------------------------------------------------------


@contextmanager
def progress(clip: ResolvedClip, machine: "Machine", *, quiet: bool) -> Iterator[OnEvent]:
    """Follow a render on stderr: a live bar on a terminal, a line per chunk elsewhere."""
    console = _err()
    if quiet:
        yield lambda event: None
        return
    for line in plan_lines(clip.resolved):
        console.print(escape(line))
    console.print(f"on {machine.device}, {machine.dtype_name}, {machine.threads} threads")
    if console.is_terminal and not console.is_dumb_terminal:
        with _LiveBar(console, clip.resolved.plan) as bar:
            yield bar.follow
    else:
        yield _Log(console, clip.resolved.plan).follow


class _LiveBar:
    """One bar over all passes of the network, with chunk, step, frames, fps and time to go.

    Drawn anew at each event, for nothing moves between two: no thread competes with the render.
    """

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console, self._plan = console, plan
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[tail]}"),
            console=console,
            transient=True,
            auto_refresh=False,
        )
        self._task = self._bar.add_task("loading", total=None, tail="")
        self._began = time.perf_counter()
        self._frames = 0

    def __enter__(self) -> "_LiveBar":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def follow(self, event: Event) -> None:
        match event:
            case RenderBegan(plan, passes):
                self._began = time.perf_counter()
                self._bar.update(self._task, total=len(plan.chunks) * passes, completed=0)
            case PassDone(chunk, passes, of):
                self._bar.update(
                    self._task,
                    completed=chunk.index * of + passes,
                    description=f"chunk {chunk.index + 1}/{len(self._plan.chunks)} "
                    + (f"step {passes}/{of - 1}" if passes < of else "decoding"),
                    tail=self._tail(),
                )
            case ChunkDone(chunk):
                self._frames = chunk.stop_frame
                self._bar.update(self._task, tail=self._tail())
            case Remark(text):
                self._console.print(f"note: {escape(text)}")
            case _:
                self._bar.update(self._task, description=event.stage)
        self._bar.refresh()

    def _tail(self) -> str:
        """Frames, rate and time to go, from the chunks finished so far."""
        seconds = time.perf_counter() - self._began
        told = f"{self._frames}/{self._plan.frames} frames"
        if not self._frames:
            return told
        rate = self._frames / seconds
        left = (self._plan.frames - self._frames) / rate
        return f"{told}, {rate:.1f} fps, {duration(left)} to go"


class _Log:
    """One plain line per chunk."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console, self._plan = console, plan
        self._began = time.perf_counter()

    def follow(self, event: Event) -> None:
        match event:
            case RenderBegan():
                self._began = time.perf_counter()
            case ChunkDone(chunk):
                rate = chunk.stop_frame / (time.perf_counter() - self._began)
                left = (self._plan.frames - chunk.stop_frame) / rate
                self._console.print(
                    f"chunk {chunk.index + 1}/{len(self._plan.chunks)} done in "
                    f"{event.seconds:.2f} s: {chunk.stop_frame}/{self._plan.frames} frames, "
                    f"{rate:.1f} fps, {duration(left)} to go"
                )
            case Remark(text):
                self._console.print(f"note: {escape(text)}")
            case _:
                pass


def duration(seconds: float) -> str:
    """Seconds for people: 8 s, 3 min 05 s, 2 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def show_report(report: "RenderReport", model: str) -> None:
    """A finished render, on stdout: the path first. `model` is its label."""
    peak = report.peak_memory_bytes
    memory = "" if peak is None else f", peak memory {show_bytes(peak)}"
    _out().print(
        escape(
            f"{report.output}: {model}, {report.frames} frames at {report.fps} fps "
            f"({report.frames / report.fps:.2f} s), {counted(report.chunks, 'chunk')}, rendered in "
            f"{report.wall_seconds:.1f} s ({report.render_fps:.1f} fps){memory}"
        )
    )


# --- inspect and verify -----------------------------------------------------------------------


def show_inspection(video: Path, facts: "VideoFacts", sidecar: Mapping[str, Any]) -> None:
    """A rendered video, on stdout. Of a sidecar that was edited by hand, what can be read."""
    console = _out()
    machine = _at(sidecar, "machine")
    trained = " (untrained)" if _at(sidecar, "model", "trained") is False else ""
    peak = _at(sidecar, "peak_memory_bytes")
    lines = {
        "video": f"{facts.width}×{facts.height}, {facts.frames} frames at {facts.fps:g} fps, "
        f"{facts.codec} {facts.pixel_format} ({facts.colour})",
        "model": f"{_at(sidecar, 'model', 'name')}{trained}, weights "
        f"{str(_at(sidecar, 'model', 'fingerprint'))[:12]}",
        "preset": _at(sidecar, "inputs", "preset"),
        "image": _at(sidecar, "inputs", "image", "path"),
        "prompt": _at(sidecar, "inputs", "prompt"),
        "negative prompt": _at(sidecar, "inputs", "negative_prompt"),
        "camera": _at(sidecar, "inputs", "camera_source") or "off",
        "seed": _at(sidecar, "settings", "sampler", "seed"),
        "chunks": _at(sidecar, "chunks"),
        "seconds": f"{_at(sidecar, 'wall_seconds')} ({_at(sidecar, 'render_fps')} fps)",
        "peak memory": show_bytes(peak) if isinstance(peak, int) else None,
        "machine": f"{_at(machine, 'device')}, {_at(machine, 'dtype')}, "
        f"{_at(machine, 'threads')} threads, torch {_at(machine, 'torch')}",
        "made by": f"sanawm {_at(machine, 'sanawm')}",
    }
    console.print(escape(str(video)))
    for name, value in lines.items():
        if value is not None:
            console.print(f"  {name:<16}{escape(str(value))}")
    notes = _at(sidecar, "notes")
    for note in notes if isinstance(notes, list) else ():
        console.print(f"  {'note':<16}{escape(str(note))}")


def _at(value: Any, *keys: str) -> Any:
    """What lies under keys within keys; None where there is no such place."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def show_verification(reports: "list[CaseReport]", tolerance: float) -> None:
    """The largest difference per quantity of every case, on stdout."""
    console = _out()
    for report in reports:
        verdict = "ok" if report.holds(tolerance) else "DIFFERS"
        console.print(escape(f"{report.case} ({report.kind}): {verdict}"))
        width = max(len(quantity.name) for quantity in report.quantities)
        for quantity in report.quantities:  # a table would be folded at 80 columns in a log
            mark = "" if quantity.largest <= tolerance else "  > tolerance"
            line = f"  {quantity.name:<{width}}  {quantity.largest:.1e}  {quantity.tensors:>3}"
            console.print(escape(f"{line}  worst: {quantity.worst}{mark}"))
    failed = sum(not report.holds(tolerance) for report in reports)
    counts = f"{len(reports) - failed} of {len(reports)} cases within {tolerance:g}"
    console.print(f"all {counts}" if not failed else counts)
