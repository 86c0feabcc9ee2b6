"""Refine depth maps in a plain loop: ``python -m benchmarks.speed.cli_loop FOLDER JOBS KIND``.

The kind "files" is the loop that any user of the library would write, on a pool of threads. The
kind "memory" neither reads nor writes files while the clock runs: it times the library alone.
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bilateral
from bilateral import io, tasks


def main() -> None:
    folder, jobs, kind = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    bilateral.set_num_threads(max(1, bilateral.get_num_threads() // jobs))
    names = sorted(os.listdir(folder / "depths"))

    def read(name: str) -> tuple[io.Array, io.Array]:
        return io.read(folder / "depths" / name), io.read(folder / "photos" / name)

    def from_files(name: str) -> None:
        depth, photo = read(name)
        io.write(folder / "loop" / name, tasks.refine_depth(depth, photo, invalid=0))

    (folder / "loop").mkdir(exist_ok=True)
    pairs = [read(name) for name in names] if kind == "memory" else []
    began = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        if kind == "memory":
            list(pool.map(lambda pair: tasks.refine_depth(*pair, invalid=0), pairs))
        else:
            list(pool.map(from_files, names))
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main()
