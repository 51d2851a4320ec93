"""The last step: a verified video and its sidecar take their final names together.

Where OUT.mp4 is, everything is, and the OUT.json beside it is its own. So the sidecar is renamed
first and the MP4 last. Over an older pair: the old MP4 steps aside, then the old sidecar, then the
new sidecar comes in, then the new MP4. Cut off anywhere, there is no OUT.mp4, or it is a whole one
beside its own OUT.json. The older pair waits under OUT.mp4.replaced and OUT.json.replaced, returns
if anything fails, and goes when all is done.
"""

import os
from pathlib import Path

from sanawm_cli.errors import OutputError
from sanawm_cli.output.files import (
    discard,
    make_folder_hint,
    output_errors,
    replace_durably,
    sync_folder,
    temporary,
)
from sanawm_cli.output.join import part_path
from sanawm_cli.output.sidecar import sidecar_path


def check_target(video: Path, *, overwrite: bool) -> None:
    """Raise OutputError, before anything is rendered, if `video` could not be written later."""
    if video.suffix.lower() != ".mp4":
        named = video.with_suffix(".mp4").name if video.name else "OUT.mp4"
        raise OutputError(f"{video} does not end in .mp4", hint=f"name it {named}")
    folder = video.absolute().parent
    if not folder.is_dir():
        raise OutputError(f"{folder} is not a folder", hint=make_folder_hint(folder))
    if not os.access(folder, os.W_OK):
        raise OutputError(f"cannot write into {folder}", hint="choose another folder")
    with output_errors(video):  # the longest name that will be needed may be too long
        temporary(part_path(video)).exists()
    for path in (video, sidecar_path(video)):
        if path.is_dir():
            raise OutputError(f"{path} is a folder", hint="choose another name")
        if path.exists() and not overwrite:
            raise OutputError(
                f"{path} exists already", hint="choose another name, or pass --overwrite"
            )


def publish(new_video: Path, new_sidecar: Path, video: Path) -> None:
    """Rename a verified MP4 and its sidecar, both in the folder of `video`, to their final names.

    Raises OutputError; whatever the exception, what was there before is there again.
    """
    final = (video, sidecar_path(video))
    placed: list[Path] = []
    try:
        for path in final:
            if path.exists():
                with output_errors(path):
                    os.replace(path, set_aside(path))
                sync_folder(path.parent)
        for source, path in ((new_sidecar, final[1]), (new_video, final[0])):
            placed.append(path)
            replace_durably(source, path)
    except BaseException:
        _restore(final, placed)
        raise
    for path in final:
        discard(set_aside(path))


def set_aside(path: Path) -> Path:
    """Where an older file waits while the new one comes in."""
    return path.with_name(f"{path.name}.replaced")


def _restore(final: tuple[Path, Path], placed: list[Path]) -> None:
    """Take back what was placed, then what stepped aside; the MP4 leaves first and returns last."""
    for path in reversed(placed):
        discard(path)
    for path in reversed(final):
        if set_aside(path).exists() and not path.exists():
            with output_errors(path):
                os.replace(set_aside(path), path)
