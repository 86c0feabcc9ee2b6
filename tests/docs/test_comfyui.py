"""The nodes of examples/comfyui, called as ComfyUI calls them."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="ComfyUI's images are tensors")

FOLDER = Path(__file__).parents[2] / "examples" / "comfyui"
TYPES = {"IMAGE", "MASK", "FLOAT", "BOOLEAN"}


@pytest.fixture(scope="module")
def nodes() -> ModuleType:
    """The package, imported from its folder as ComfyUI imports custom nodes."""
    spec = importlib.util.spec_from_file_location("comfyui_bilateral", FOLDER / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def execute(nodes: ModuleType, name: str, **links: Any) -> Any:
    """Run a node on the outputs linked to it, with its defaults otherwise; return its output."""
    node = nodes.NODE_CLASS_MAPPINGS[name]
    inputs = {}
    for key, (kind, *options) in node.INPUT_TYPES()["required"].items():
        assert kind in TYPES
        inputs[key] = links.pop(key) if key in links else options[0]["default"]
    assert not links, "unknown inputs"
    outputs = getattr(node(), node.FUNCTION)(**inputs)
    assert isinstance(outputs, tuple)
    assert len(outputs) == len(node.RETURN_TYPES) == 1
    return outputs[0]


def box(batch: int) -> tuple[Any, Any]:
    """Photographs (B, H, W, 3) of a box, and where it is."""
    inside = torch.zeros(64, 96, dtype=torch.bool)
    inside[16:48, 32:72] = True
    photo = torch.full((batch, 64, 96, 3), 0.2)
    photo[:, inside] = 0.8
    return photo, inside


def test_every_node_has_a_name(nodes: ModuleType) -> None:
    assert nodes.NODE_CLASS_MAPPINGS.keys() == nodes.NODE_DISPLAY_NAME_MAPPINGS.keys()
    assert all(node.CATEGORY for node in nodes.NODE_CLASS_MAPPINGS.values())


@pytest.mark.parametrize(("photos", "maps"), [(1, 1), (3, 3), (1, 2), (2, 1)])
def test_depth_gets_the_edges_and_the_size_of_the_photograph(
    nodes: ModuleType, photos: int, maps: int
) -> None:
    photo, inside = box(photos)
    depth = torch.where(inside, 0.9, 0.1)[4::8, 4::8].expand(maps, -1, -1)
    image = depth[..., None].expand(-1, -1, -1, 3)
    out = execute(nodes, "BilateralAlignDepth", photo=photo, depth=image)
    assert out.shape == (max(photos, maps), 64, 96, 3)
    assert out.dtype == torch.float32
    assert torch.equal(out[..., 0], out[..., 2])
    # Enlarged bilinearly, the depth takes 8 pixels to rise by 0.8.
    assert (out[:, 20:44, 32, 0] - out[:, 20:44, 31, 0]).min() > 0.6
    assert (out[:, 15, 36:68, 0] - out[:, 16, 36:68, 0]).max() < -0.6


@pytest.mark.parametrize("hard", [False, True])
def test_mask_gets_the_edges_of_the_photograph(nodes: ModuleType, hard: bool) -> None:
    photo, inside = box(2)
    rough = torch.roll(inside, (3, -4), (0, 1)).float().expand(2, -1, -1)
    out = execute(nodes, "BilateralAlignMask", photo=photo, mask=rough, hard=hard)
    assert out.shape == (2, 64, 96)
    assert out.dtype == torch.float32
    assert out.min() >= 0
    assert out.max() <= 1
    wrong = ((out[0] > 0.5) != inside).sum()
    assert wrong < 0.25 * ((rough[0] > 0.5) != inside).sum()
    if hard:
        assert set(out.unique().tolist()) == {0.0, 1.0}


def test_other_numbers_of_photographs_are_an_error(nodes: ModuleType) -> None:
    with pytest.raises(ValueError, match="got 2 photographs for 3 maps"):
        execute(nodes, "BilateralAlignMask", photo=box(2)[0], mask=torch.zeros(3, 64, 96))
