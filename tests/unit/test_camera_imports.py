"""The camera package is for planning too: it must not drag in torch."""

import pkgutil
import subprocess
import sys

import sanawm_cli.camera


def test_the_camera_needs_no_torch():
    names = [
        f"sanawm_cli.camera.{m.name}" for m in pkgutil.iter_modules(sanawm_cli.camera.__path__)
    ]
    assert len(names) >= 6
    code = (
        f"import sys, {', '.join(names)}\n"
        "heavy = {'torch', 'PIL', 'diffusers', 'safetensors', 'scipy'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
