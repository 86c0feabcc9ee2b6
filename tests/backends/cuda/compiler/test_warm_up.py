"""Kernels are compiled ahead of time, for a GPU that is not there."""

import pytest

from support import scripts
from support.kernel_device import COMPILED

pytestmark = pytest.mark.stress

SCRIPT = """
import bilateral.torch
from bilateral.backends.cuda.compiler import catalogue, disk, pool, store
few = catalogue.catalogue()[{first}::{step}]
assert few
store.catalogue = lambda: few
{before}
reports = []
assert bilateral.torch.warm_up(capability=90, progress=lambda *n: reports.append(n)) == len(few)
assert all(disk.exists(v, 90) for v in few)
described, code = disk.read(few[0], 90)
assert code[:4] == b"\\x7fELF" and described["threads"] >= 32, described
assert bilateral.torch.warm_up(capability=90) == 0
assert not list(disk.folder().rglob("tmp*"))
print(reports[-1] if reports else "alone")
"""


@pytest.mark.skipif(COMPILED, reason="other tests compile there")
@pytest.mark.parametrize("helpers", [True, False])
def test_usual_kernels_are_compiled_for_a_capability(tmp_path, helpers):
    cache = {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "TRITON_INTERPRET": "0"}
    before = "" if helpers else "pool.pool._dead = True"
    step = 40 if helpers else 200
    out = scripts.run(SCRIPT.format(first=7, step=step, before=before), tmp_path, **cache)
    assert ("alone" in out) == (not helpers)


@pytest.mark.skipif(COMPILED, reason="there is a GPU")
def test_without_a_gpu_the_error_says_what_to_do():
    bilateral_torch = pytest.importorskip("bilateral.torch")
    with pytest.raises(RuntimeError, match=r"no CUDA device.*capability=90"):
        bilateral_torch.warm_up()
    with pytest.raises(ValueError, match="either device or capability"):
        bilateral_torch.warm_up("cuda", capability=90)
    with pytest.raises((TypeError, ValueError), match="capability"):
        bilateral_torch.warm_up(capability=7.5)
