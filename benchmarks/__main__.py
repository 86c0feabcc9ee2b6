"""Run one benchmark: ``python -m benchmarks NAME [options]``, from the repository's root."""

import importlib
import sys

BENCHMARKS = {
    "speed": "benchmarks.speed.bench",
    "cuda": "benchmarks.cuda.bench",
    "cuda-cold": "benchmarks.cuda.cold",
    "torch": "benchmarks.speed.layer",
    "cli": "benchmarks.speed.cli",
    "scale": "benchmarks.speed.scale",
    "cluster": "benchmarks.speed.cluster",
    "studio": "benchmarks.studio.bench",
    "filters": "benchmarks.quality.filters",
    "supplement": "benchmarks.quality.supplement",
    "superres": "benchmarks.quality.superres",
    "colorization": "benchmarks.quality.colorization",
    "segmentation": "benchmarks.quality.segmentation",
    "depth": "benchmarks.quality.depth",
    "sparse": "benchmarks.quality.sparse",
    "completion": "benchmarks.quality.completion",
    "planar": "benchmarks.quality.planar",
    "alignment": "benchmarks.quality.alignment",
    "compat": "benchmarks.compat.bench",
    "camera": "benchmarks.camera.bench",
    "paper": "benchmarks.paper.command",
}


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in BENCHMARKS:
        raise SystemExit(f"usage: python -m benchmarks {{{','.join(BENCHMARKS)}}} [--help]")
    # First the benchmark: `paper` sets an environment variable that NumPy reads at its import.
    module = importlib.import_module(BENCHMARKS[name])
    from benchmarks.common import command

    run = module.main if name == "paper" else command.main
    run(name, module, sys.argv[2:])


if __name__ == "__main__":
    main()
