"""The compiler neither traces the solver's functions nor is imported with them."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
import torch
from torch import Tensor

import bilateral.torch
from bilateral.torch.untraced import untraced


def test_import_and_calls_leave_the_compiler_alone() -> None:
    code = """
import sys
import torch
import bilateral.torch
photo, target = torch.rand(1, 3, 20, 26), torch.rand(1, 1, 20, 26, requires_grad=True)
bilateral.torch.solve(photo, target).sum().backward()
bilateral.torch.domain_transform(target, photo, 4.0, 0.5).sum().backward()
loaded = [name for name in ("torch._dynamo", "torch._inductor", "triton") if name in sys.modules]
sys.exit(f"imported: {loaded}" if loaded else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("called_before", [False, True])
def test_a_traced_caller_does_not_trace_the_function(called_before: bool) -> None:
    compiler = pytest.importorskip("torch._dynamo")
    compiler.reset()
    seen: list[bool] = []

    def inner(x: Tensor) -> Tensor:
        seen.append(torch.compiler.is_dynamo_compiling())
        return x * 2

    hidden = untraced(inner)
    if called_before:
        hidden(torch.ones(2))
        seen.clear()
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    def outer(x: Tensor) -> Tensor:
        return hidden(x + 1) + 1

    compiled = torch.compile(outer, backend=backend)
    for size in range(3, 15):  # more sizes than the compiler would compile frames for
        torch.testing.assert_close(compiled(torch.ones(size)), torch.full((size,), 5.0))
    assert seen == [False] * 12
    assert len(graphs) <= 4
    operations = {node.target for graph in graphs for node in graph.graph.nodes}
    assert not any("mul" in str(operation) for operation in operations)


def test_frames_after_a_graph_break_are_not_compiled() -> None:
    """The dispatcher calls the kernels frame by frame, with the compiler's callback active."""
    compiler = pytest.importorskip("torch._dynamo")
    compiler.reset()
    photo = torch.rand(1, 3, 20, 26)
    compiled: list[str] = []

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]) -> torch.fx.GraphModule:
        compiled.extend(str(node.stack_trace) for node in graph.graph.nodes)
        return graph

    def smooth(x: Tensor) -> Tensor:
        filtered = bilateral.torch.domain_transform(x, photo, 4.0, 0.5)
        compiler.graph_break()
        return bilateral.torch.solve(photo, filtered)

    fast = torch.compile(smooth, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as a limit of compilations that was reached
        for channels in range(1, 12):
            target = torch.rand(1, channels, 20, 26)
            torch.testing.assert_close(fast(target), smooth(target))
    inside = ("_arrays", "as_pixels", "_grid", "cpu_filters")
    assert not [trace for trace in compiled if any(name in trace for name in inside)]
