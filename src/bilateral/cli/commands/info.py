"""The command `info`: print versions, threads, the GPU and the available formats."""

import importlib.util
import json
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import bilateral
from bilateral.cli.display.console import print_message
from bilateral.cli.errors import FAILED
from bilateral.io import formats

_PACKAGES = (
    "numpy",
    "typer",
    "rich",
    "pillow",
    "imagecodecs",
    "tifffile",
    "OpenEXR",
    "av",
    "distributed",
    "torch",
)
_CODEC_OF_MODULE = {
    "png": "imagecodecs",
    "jpeg_bmp": "PIL",
    "tiff": "tifffile",
    "exr": "OpenEXR",
}


def collect() -> dict[str, Any]:
    """Return all information as a dictionary that JSON can hold."""
    return {
        "bilateral": bilateral.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": bilateral.get_num_threads(),
        "gpu": gpu_name(),
        "packages": {name: installed_version(name) for name in _PACKAGES},
        "formats": {entry.name: is_available(entry) for entry in formats.FORMATS},
    }


def installed_version(package: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def is_available(entry: formats.Format) -> bool:
    """Return whether the package that a format needs is installed."""
    package = _CODEC_OF_MODULE.get(entry.module)
    return package is None or importlib.util.find_spec(package) is not None


def gpu_name() -> str | None:
    """Return the name of the first NVIDIA GPU, or None without a driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(completed.stdout.splitlines()), None)


def warm_up(capability: int | None) -> int:
    """Compile the CUDA kernels of usual calls; return the exit code."""
    for package in ("torch", "triton"):
        if importlib.util.find_spec(package) is None:
            print_message(f"--warm-up needs {package}: pip install 'bilateral[torch]' {package}")
            return FAILED
    import bilateral.torch

    try:
        count = bilateral.torch.warm_up(capability=capability)
    except RuntimeError as error:
        print_message(str(error))
        return FAILED
    print(f"compiled {count} kernels" if count else "all kernels were compiled before")
    return 0


def print_info(as_json: bool) -> int:
    """Print all information as text or as JSON; return the exit code."""
    facts = collect()
    if as_json:
        print(json.dumps(facts, indent=1))
        return 0
    print(f"bilateral {facts['bilateral']}, Python {facts['python']}, {facts['platform']}")
    print(f"threads   {facts['threads']}")
    print(f"GPU       {facts['gpu'] or 'none found'}; the commands use only the CPU")
    width = max(map(len, _PACKAGES))
    for name, number in facts["packages"].items():
        print(f"  {name:{width}}  {number or 'not installed'}")
    for entry in formats.FORMATS:
        available = facts["formats"][entry.name]
        remedy = f'pip install "bilateral[{entry.extra}]"'
        print(f"  {entry.name:{width}}  {' '.join(entry.suffixes) if available else remedy}")
    return 0
