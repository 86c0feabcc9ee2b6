"""Run the command in forked processes, each started within milliseconds, and send it signals.

This program runs as a process of its own. Each line on stdin is a JSON list: the arguments, the
seconds to wait, and the signal to send or null. The answer on stdout is the exit code.
"""

import json
import os
import sys
import time

import bilateral.cli.batch
import bilateral.io.jpeg_bmp
import bilateral.io.png  # noqa: F401
from bilateral.cli.main import main


def run(arguments: list[str], seconds: float, number: int | None) -> int:
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os._exit(main(arguments))
    if number is not None:
        time.sleep(seconds)
        os.kill(child, number)  # the child is not reaped yet, so its number is still its own
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


for line in sys.stdin:
    print(run(*json.loads(line)), flush=True)
