"""Compile kernels in a process of its own, which `pool.py` starts, with several children.

It reads one request per line: a number, a compute capability and a variant. It answers "ready",
then the number of each request that is done, with its error if there was one.
"""

import multiprocessing
import os
import sys
from contextlib import suppress

from bilateral.backends.cuda.compiler import disk
from bilateral.backends.cuda.compiler.variant import Variant, compile_variant

_NICE = 10  # the compilers of kernels that nobody waits for leave the processors to others


def _compile(line: str) -> str:
    number, target, text = line.split(" ", 2)
    try:
        variant, capability = Variant.from_json(text), int(target)
        if not disk.exists(variant, capability):
            disk.write(variant, capability, *compile_variant(variant, capability))
    except Exception as error:  # the process that waits compiles it again, and shows the error
        return f"{number} {type(error).__name__}: {error}".replace("\n", " ")
    return number


def _answer(line: str) -> None:
    with suppress(BrokenPipeError):
        print(line, flush=True)


def main() -> None:
    """Serve requests until the input ends."""
    with suppress(OSError, AttributeError):
        os.nice(_NICE)
    Variant.import_all()
    with multiprocessing.get_context("fork").Pool(int(sys.argv[1])) as children:
        _answer("ready")
        for line in sys.stdin:
            children.apply_async(_compile, (line.rstrip("\n"),), callback=_answer)
        children.terminate()


if __name__ == "__main__":
    main()
