# SPDX-License-Identifier: MIT
"""Runs many command lines in one MPI job, and says of each how it ended on all ranks.

    mpiexec -n 2 python tests/support/bad_input_server.py jobs.json   # [[folder, [word, ...]], ...]

Rank 0 prints one line of JSON per command line, as soon as it is done.
"""
from __future__ import annotations

import faulthandler
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from controllers.cli import main
from hitmap.comm import default_communicator

PATIENCE_S = 60     # then a command line hangs, and the job is ended


def serve(jobs: Sequence[tuple[str, list[str]]]) -> None:
    """Run them in turn; collective."""
    comm = default_communicator()
    answers = os.fdopen(os.dup(1), "w")
    for folder, words in jobs:
        os.chdir(folder)
        comm.Barrier()
        faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
        with captured() as printed:
            code = main(words)
        faulthandler.cancel_dump_traceback_later()
        ends = comm.allgather((code, *printed))
        if comm.rank == 0:
            codes, outs, errors = zip(*ends, strict=True)
            answer = {"codes": codes, "out": "".join(outs), "error": "".join(errors)}
            print(json.dumps(answer), file=answers, flush=True)


@contextmanager
def captured() -> Iterator[list[str]]:
    """What is printed meanwhile, by this process and its drivers: stdout and stderr, at the end."""
    texts: list[str] = []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        kept = [_redirected(1, out), _redirected(2, error)]
        try:
            yield texts
        finally:
            for number, (stream, file) in enumerate(((sys.stdout, out), (sys.stderr, error)), 1):
                stream.flush()
                os.dup2(kept[number - 1], number)
                os.close(kept[number - 1])
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))


def _redirected(number: int, file: IO[bytes]) -> int:
    kept = os.dup(number)
    os.dup2(file.fileno(), number)
    return kept


if __name__ == "__main__":
    serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
