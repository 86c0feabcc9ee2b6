"""What the host does before a launch: describe arguments, and keep binaries on disk."""

import inspect
import struct

import pytest

from support.kernel_device import DEVICE

# isort: split
import torch
import triton.language as tl

from bilateral.backends.cuda import kernel as kernels
from bilateral.backends.cuda.compiler import disk, driver
from bilateral.backends.cuda.compiler.variant import Variant
from bilateral.backends.cuda.kernel import kernel


@kernel(ones=("channels",))
def values_and_more(values, step, address, channels, room, scale, flag, BLOCK: tl.constexpr):
    """Parameters with the names of everything that the generated code might use itself."""


def described(*arguments, **constants):
    kinds, numbers = values_and_more._describe(*arguments, **constants)
    return values_and_more._variant(kinds), numbers


@pytest.fixture
def tensor():
    return torch.zeros(64, device=DEVICE)


def test_integers_are_not_compiled_in(tensor):
    variants = {
        described(tensor, tensor, None, channels, room, 0.5, True, BLOCK=8)[0]
        for channels in (2, 3, 16)
        for room in (0, 1, 2, 16, 17, -5)
    }
    (variant,) = variants
    assert variant.types == ["*fp32", "*fp32", "i32", "i32", "fp32", "i1"]
    assert variant.kinds[2] == (None,)
    assert variant.kinds[-1] == (8,)


def test_a_one_is_compiled_in_only_where_asked_for(tensor):
    one, numbers = described(tensor, tensor, tensor, 1, 1, 0.5, False, BLOCK=8)
    assert one.kinds[3] == (1,)
    assert one.kinds[4] == "i32"
    assert numbers == [*[tensor.data_ptr()] * 3, 1, 0.5, False]


def test_large_integers_are_long(tensor):
    variant, _ = described(tensor, tensor, None, 2, 1 << 31, 0.5, True, BLOCK=8)
    assert variant.types[3] == "i64"


def test_misaligned_tensors_have_a_variant_except_where_allowed(tensor):
    def aligned(*tensors):
        return described(*tensors, 2, 3, 0.5, True, BLOCK=8)[0].aligned

    assert aligned(tensor, tensor, tensor)
    assert not aligned(tensor[1:], tensor, tensor)
    assert not aligned(tensor, tensor, tensor[3:])
    assert "step" in kernels.UNALIGNED
    assert aligned(tensor, tensor[1:], tensor)


def test_options_and_parameters_of_tensors_count(tensor):
    parameter = torch.nn.Parameter(tensor)
    variant, _ = described(
        parameter, tensor, None, 2, 3, 0.5, True, BLOCK=8, num_warps=2, maxnreg=64
    )
    assert variant.types[0] == "*fp32"
    assert variant.aligned
    shifted = torch.nn.Parameter(tensor[1:])
    assert not described(shifted, tensor, None, 2, 3, 0.5, True, BLOCK=8)[0].aligned
    assert variant.options == (("maxnreg", 64), ("num_warps", 2))


def test_an_unknown_name_is_refused():
    with pytest.raises(TypeError, match="no parameters \\['rows'\\]"):
        kernel(ones=("rows",))(lambda: None)


def test_each_value_takes_one_place():
    for form in (*driver._FORMATS.values(), "Q"):
        assert struct.calcsize("=" + form) == 8, form
    packed = struct.Struct("".join(driver._FORMATS.values()))
    assert packed.size == 8 * len(driver._FORMATS)


def test_binaries_survive_on_disk_and_damaged_ones_are_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    variant = Variant("grid.edges:_clear", ("*i32", (10,)))
    assert disk.read(variant, 90) is None
    facts = {"name": "_clear", "shared": 0, "threads": 128}
    disk.write(variant, 90, facts, b"\n\0code\n")
    assert disk.exists(variant, 90)
    assert disk.read(variant, 90) == (facts, b"\n\0code\n")
    assert disk.read(variant, 80) is None
    (path,) = tmp_path.rglob("*.kernel")
    for damaged in (path.read_bytes()[:-1] + b"?", b"", b"{}\n", b"[1]\n", b"[1, 2]\n", b"\xff\n"):
        path.write_bytes(damaged)
        assert disk.read(variant, 90) is None, damaged
    assert [p.suffix for p in path.parent.iterdir()] == [".kernel"]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(file))
    variant = Variant("grid.edges:_clear", ("*i32", (10,)))
    disk.write(variant, 90, {"name": "", "shared": 0, "threads": 32}, b"code")
    assert disk.read(variant, 90) is None


def test_tensors_of_the_host_are_refused(tensor):
    parameters = inspect.signature(values_and_more.function.fn).parameters
    describe = kernels._make_describe(parameters, ("channels",), on_device=True)
    with pytest.raises(ValueError, match="step: expected a tensor on a CUDA device"):
        describe(None, tensor.cpu(), None, 2, 3, 0.5, True, BLOCK=8)
