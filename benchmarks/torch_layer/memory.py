"""Peak memory of forward and backward in a fresh process (this module, run as a script)."""

import json
import subprocess
import sys
from typing import Any

import torch

import bilateral.torch
from benchmarks.speed.memory import _forget_peak, _peak


def peaks(side: int, steps: tuple[int, ...]) -> list[dict[str, Any]]:
    """Bytes that forward and backward take at their peak, for each number of steps."""
    rows = []
    for count in steps:
        command = [sys.executable, "-m", __spec__.name, str(side), str(count)]
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append({"steps": count, "bytes": json.loads(answer.stdout)})
    return rows


def measure(side: int, steps: int) -> int:
    generator = torch.Generator().manual_seed(0)
    small = torch.rand(1, 3, side // 16, side // 16, generator=generator)
    photo = torch.nn.functional.interpolate(small, (side, side), mode="bilinear")
    target = torch.rand(1, 1, side, side, generator=generator)
    confidence = torch.rand(1, 1, side, side, generator=generator)

    def train(size: int, steps: int) -> None:
        t, c = (x[..., :size, :size].clone().requires_grad_() for x in (target, confidence))
        options: dict[str, Any] = {"tolerance": 0.0, "max_iterations": steps}
        y = bilateral.torch.solve(photo[..., :size, :size], t, c, **options)
        y.square().sum().backward()

    train(32, 2)
    _forget_peak()
    before = _peak()
    train(side, steps)
    return _peak() - before


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
