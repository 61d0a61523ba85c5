"""A peer's process: imports its module, then forks for each job, so that every run has its own memory and threads.

A job is a line of JSON on stdin, its answer a line of JSON on stdout. The output of libraries goes to stderr.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from python import measure
from python.peers import Request

JOB_LIMIT_S = 600.0
WORDS = 200  # maximum length of an error message


def perform(module: ModuleType, job: dict[str, Any]) -> dict[str, Any]:
    if job["kind"] == "write":
        return measure.write(module, Path(job["data"]), job["n_samples"], Path(job["folder"]), job["chunk"])
    request = Request(**job["request"] | {"folder": Path(job["request"]["folder"])})
    if job["kind"] == "check":
        return measure.check(module, request)
    return measure.run(module, request, **job["options"])


def child(module: ModuleType, job: dict[str, Any], answers: int) -> None:
    """Runs a job in the forked process, writes the answer to the pipe `answers`, and exits."""
    os.setsid()
    try:
        answer = perform(module, job)
    except BaseException as error:
        traceback.print_exc()
        words = (str(error).strip().splitlines() or [""])[0]
        answer = {"error": f"{type(error).__name__}: {words[:WORDS]}"}
    os.write(answers, json.dumps(answer).encode())
    # Endless threads of the peer must not keep the process alive.
    os._exit(0)


def forked(module: ModuleType, job: dict[str, Any]) -> dict[str, Any]:
    """Runs a job in a separate process. Returns its answer."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        child(module, job, writing)
    os.close(writing)
    answered = select.select([reading], [], [], JOB_LIMIT_S)[0]
    text = os.read(reading, 1 << 16) if answered else b""
    os.close(reading)
    # The peer's worker processes are in its process group and could outlive it.
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not text:
        how = f"ended with status {status}" if answered else f"took longer than {JOB_LIMIT_S:g} s"
        return {"error": f"{how} and printed nothing"}
    answer: dict[str, Any] = json.loads(text)
    return answer


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    start = time.perf_counter()
    name = sys.argv[1]
    module = importlib.import_module(name if "." in name else f"python.peers.{name}")
    tell({"import_s": time.perf_counter() - start})
    for line in sys.stdin:
        tell(forked(module, json.loads(line)))


if __name__ == "__main__":
    main()
