"""The options that several commands share, and their way into a request."""

from pathlib import Path
from typing import Annotated

import typer

from sanawm_cli.camera.choices import Fit
from sanawm_cli.plan.request import Snap
from sanawm_cli.preset.settings import Dialect, NoiseRule

_INPUTS = "Inputs"
_CAMERA = "Camera"
_LENGTH = "Length"
_SAMPLING = "Sampling and memory"
_VIDEO = "Video"
_MACHINE = "Machine"
_TALK = "Output"

Preset = Annotated[
    str, typer.Option("--preset", help="Name or TOML file of a preset.", rich_help_panel=_INPUTS)
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model", metavar="DIR", help="Model folder (model.json).", rich_help_panel=_INPUTS
    ),
]
Image = Annotated[
    Path | None,
    typer.Option("--image", metavar="FILE", help="First frame.", rich_help_panel=_INPUTS),
]
Prompt = Annotated[
    str | None, typer.Option("--prompt", help="What the scene is.", rich_help_panel=_INPUTS)
]
PromptFile = Annotated[
    Path | None,
    typer.Option(
        "--prompt-file", metavar="FILE", help="The prompt, as UTF-8 text.", rich_help_panel=_INPUTS
    ),
]
TextEmbeds = Annotated[
    Path | None,
    typer.Option(
        "--text-embeds",
        metavar="FILE",
        help="The prompt, encoded: safetensors with embeds and mask.",
        rich_help_panel=_INPUTS,
    ),
]
NegativePrompt = Annotated[
    str | None,
    typer.Option("--negative-prompt", help="For --cfg-scale above 1.", rich_help_panel=_INPUTS),
]
Action = Annotated[
    str | None,
    typer.Option(
        "--action",
        metavar="KEYS-FRAMES,…",
        help='Keys held, and for how many frames: "w-24,dw-12,none-8".',
        rich_help_panel=_CAMERA,
    ),
]
Camera = Annotated[
    Path | None,
    typer.Option(
        "--camera", metavar="FILE", help="Trajectory, .npy or .npz.", rich_help_panel=_CAMERA
    ),
]
NoCamera = Annotated[
    bool,
    typer.Option("--no-camera", help="Camera branch off.", rich_help_panel=_CAMERA),
]
ActionDialect = Annotated[
    Dialect | None,
    typer.Option("--action-dialect", help="What the keys mean.", rich_help_panel=_CAMERA),
]
CameraFit = Annotated[
    Fit,
    typer.Option("--camera-fit", help="If poses and frames do not agree.", rich_help_panel=_CAMERA),
]
TranslationSpeed = Annotated[
    float | None,
    typer.Option("--translation-speed", help="Per frame.", rich_help_panel=_CAMERA),
]
RotationSpeed = Annotated[
    float | None,
    typer.Option("--rotation-speed", help="Degrees per frame.", rich_help_panel=_CAMERA),
]
Intrinsics = Annotated[
    str | None,
    typer.Option(
        "--intrinsics",
        metavar="FX,FY,CX,CY",
        help="Pixels of the image as given; or fov=70, or a file.",
        rich_help_panel=_CAMERA,
    ),
]
Frames = Annotated[
    int | None, typer.Option("--frames", help="Length in frames.", rich_help_panel=_LENGTH)
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="Length in seconds.", rich_help_panel=_LENGTH)
]
SnapOption = Annotated[
    Snap,
    typer.Option(
        "--snap", help="Where a count between two renderable ones goes.", rich_help_panel=_LENGTH
    ),
]
ChunkPlan = Annotated[
    str | None,
    typer.Option(
        "--chunk-plan", metavar="N,N,…", help="Latents per chunk.", rich_help_panel=_LENGTH
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", rich_help_panel=_SAMPLING)]
Noise = Annotated[
    NoiseRule | None,
    typer.Option(
        "--noise",
        help="frame: the same on every device and for every length; horizon: as upstream draws.",
        rich_help_panel=_SAMPLING,
    ),
]
Steps = Annotated[
    str | None,
    typer.Option(
        "--steps", metavar="N,N,…,0", help="Noise steps, of 1000.", rich_help_panel=_SAMPLING
    ),
]
CfgScale = Annotated[
    float | None,
    typer.Option("--cfg-scale", help="Guidance; 1 is off.", rich_help_panel=_SAMPLING),
]
KvWindow = Annotated[
    str | None,
    typer.Option(
        "--kv-window",
        metavar="N|all",
        help="Earlier chunks that softmax blocks attend to.",
        rich_help_panel=_SAMPLING,
    ),
]
Sink = Annotated[
    bool | None,
    typer.Option(
        "--sink/--no-sink",
        help="Chunk 0 stays in the window.",
        show_default=False,
        rich_help_panel=_SAMPLING,
    ),
]
Height = Annotated[int | None, typer.Option("--height", rich_help_panel=_VIDEO)]
Width = Annotated[int | None, typer.Option("--width", rich_help_panel=_VIDEO)]
Fps = Annotated[int | None, typer.Option("--fps", help="Of the file only.", rich_help_panel=_VIDEO)]
Crf = Annotated[
    int | None,
    typer.Option("--crf", help="x264 quality, lower is better.", rich_help_panel=_VIDEO),
]
Device = Annotated[
    str, typer.Option("--device", help="auto, cpu, cuda, cuda:N.", rich_help_panel=_MACHINE)
]
Dtype = Annotated[
    str, typer.Option("--dtype", help="auto, float32, bfloat16.", rich_help_panel=_MACHINE)
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", help="Compute threads; default: all cores.", rich_help_panel=_MACHINE
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=_TALK)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing on success.", rich_help_panel=_TALK)
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT.mp4",
        help="Default: the image's name in this folder.",
        rich_help_panel=_TALK,
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace OUT.mp4.", rich_help_panel=_TALK)
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Check everything, show the plan, stop.", rich_help_panel=_TALK),
]
SaveCamera = Annotated[
    Path | None,
    typer.Option(
        "--save-camera",
        metavar="FILE.npz",
        help="Write (or replace) FILE.npz: poses and intrinsics of every frame.",
        rich_help_panel=_CAMERA,
    ),
]
