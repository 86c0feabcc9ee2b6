"""What is installed, and what this machine offers."""

import importlib.util
import json
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import bilateral
from bilateral.io import formats

_PACKAGES = ("numpy", "typer", "rich", "pillow", "imagecodecs", "tifffile", "OpenEXR", "torch")
_NEEDS = {"png": "imagecodecs", "jpeg_bmp": "PIL", "tiff": "tifffile", "exr": "OpenEXR"}


def facts() -> dict[str, Any]:
    """Everything, for machines."""
    return {
        "bilateral": bilateral.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": bilateral.get_num_threads(),
        "gpu": gpu(),
        "packages": {name: installed(name) for name in _PACKAGES},
        "formats": {known.name: available(known) for known in formats.FORMATS},
    }


def installed(package: str) -> str | None:
    """The version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def available(known: formats.Format) -> bool:
    """Whether the package that a format needs is there."""
    package = _NEEDS.get(known.module)
    return package is None or importlib.util.find_spec(package) is not None


def gpu() -> str | None:
    """The first NVIDIA GPU, as its driver names it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(found.stdout.splitlines()), None)


def show(as_json: bool) -> int:
    """Print it."""
    found = facts()
    if as_json:
        print(json.dumps(found, indent=1))
        return 0
    print(f"bilateral {found['bilateral']}, Python {found['python']}, {found['platform']}")
    print(f"threads   {found['threads']}")
    print(f"GPU       {found['gpu'] or 'none found'}; the commands compute on the CPU")
    width = max(map(len, _PACKAGES))
    for name, number in found["packages"].items():
        print(f"  {name:{width}}  {number or 'not installed'}")
    for known in formats.FORMATS:
        ready = found["formats"][known.name]
        missing = f'pip install "bilateral[{known.extra}]"'
        print(f"  {known.name:{width}}  {' '.join(known.suffixes) if ready else missing}")
    return 0
