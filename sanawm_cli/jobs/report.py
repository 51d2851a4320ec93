"""What is told of a finished render: to people, to scripts, and in the sidecar."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sanawm_cli.jobs.events import ChunkDone
from sanawm_cli.jobs.machine import Machine, versions
from sanawm_cli.jobs.request import ClipRequest
from sanawm_cli.jobs.resolve import ResolvedClip
from sanawm_cli.preset.writing import preset_table
from sanawm_cli.weights.folder import file_sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderReport:
    """A finished render.

    `wall_seconds` run from the start, loading included, to the last frame's encoding; joining
    and verifying come after. `peak_memory_bytes` is the whole process's, None where nobody tells.
    """

    output: Path
    frames: int
    width: int
    height: int
    fps: int
    chunks: int
    wall_seconds: float
    peak_memory_bytes: int | None
    frame_hashes: tuple[str, ...]

    @property
    def render_fps(self) -> float:
        """Frames per second of the run, loading included."""
        return self.frames / self.wall_seconds

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "output": str(self.output),
            "frames": self.frames,
            "width": self.width,
            "height": self.height,
            "fps": self.fps,
            "chunks": self.chunks,
            "wall_seconds": round(self.wall_seconds, 3),
            "render_fps": round(self.render_fps, 3),
            "peak_memory_bytes": self.peak_memory_bytes,
            "frame_hashes": list(self.frame_hashes),
        }


def sidecar_content(
    clip: ResolvedClip,
    inputs: Mapping[str, Any],
    machine: Machine,
    ffmpeg_version: str,
    report: RenderReport,
    chunks: list[ChunkDone],
    remarks: Sequence[str],
) -> dict[str, Any]:
    """Everything about a render that a person may ask for later, or needs to repeat it."""
    resolved = clip.resolved
    plan = resolved.plan.as_json({})
    del plan["memory"]
    return {
        **report.as_json(),
        "output": report.output.name,
        "model": {
            "name": clip.model.name,
            "trained": clip.model.trained,
            "folder": str(clip.model.path),
            "fingerprint": clip.model.fingerprint,
            "files": {name: asdict(facts) for name, facts in clip.model.files.items()},
        },
        "settings": preset_table(resolved.preset),
        "settings_fingerprint": resolved.preset.fingerprint(),
        "inputs": inputs,
        "plan": plan,
        "chunk_seconds": [
            {
                "network": round(done.network_seconds, 4),
                "decode": round(done.decode_seconds, 4),
                "encode": round(done.encode_seconds, 4),
            }
            for done in chunks
        ],
        "notes": [*resolved.notes, *remarks],
        "machine": {
            "device": str(machine.device),
            "dtype": machine.dtype_name,
            "threads": machine.threads,
            **versions(),
            "ffmpeg": ffmpeg_version,
        },
    }


def input_facts(clip: ResolvedClip, request: ClipRequest) -> dict[str, Any]:
    """What was given, files with their hashes: taken before a render, which may outlive them."""
    camera = clip.resolved.camera
    inputs: dict[str, Any] = {
        "preset": request.preset,
        "image": _file(request.image),
        "prompt": clip.prompt,
        "negative_prompt": clip.negative_prompt,
        "text_embeds": _file(clip.text_embeds),
        "action": request.action,
        "camera": _file(request.camera),
        "no_camera": request.no_camera,
        "camera_fit": request.camera_fit,
        "intrinsics": request.intrinsics,
        "snap": request.snap,
        "frames": request.frames,
        "seconds": request.seconds,
        "chunk_plan": request.chunk_plan,
    }
    if camera is not None:
        inputs["camera_source"] = camera.source
        inputs["intrinsics_source"] = camera.intrinsics.source
        inputs["intrinsics_of_first_frame"] = camera.intrinsics.values[0].tolist()
    return inputs


def _file(path: Path | None) -> dict[str, str] | None:
    return None if path is None else {"path": str(path), "sha256": file_sha256(path)}
