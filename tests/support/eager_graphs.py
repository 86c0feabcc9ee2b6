"""Recordings without a GPU: a replay computes everything from the recording's memory."""

import pytest
import torch

from bilateral.torch.cuda import device_memory, graphs, recorded, recording


class EagerGraph:
    """Stand-in for `Graph` without a GPU: each replay calls the function."""

    def __init__(self, function, pool=None, *, ready=False):
        if not ready:
            function()
        self.pool, self.replay = pool, function


class NoStream:
    """Stand-in for CUDA streams and events, which have nothing to wait for."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __getattr__(self, _):
        return lambda *_, **__: None


def use_eager_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let recordings call their functions at each replay, without streams."""
    for module in (graphs, recording, recorded):
        monkeypatch.setattr(module, "Graph", EagerGraph)
    monkeypatch.setattr(device_memory, "can_record", lambda _: True)
    monkeypatch.setattr(recorded, "_caches", {})
    for name in ("Event", "Stream", "current_stream", "stream"):
        monkeypatch.setattr(torch.cuda, name, NoStream)
