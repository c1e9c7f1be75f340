"""Runs the scenarios with the official Python client and prints one line for each.

The server is the one that PUBSUB_EMULATOR_HOST names; ORDERLY_RESTART is explained in the README.
"""

import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from scenarios import CONCURRENT, DISRUPTIVE
from stage import Stage


def play(name, scenario):
    """Plays one scenario; whether it passed."""
    began = time.monotonic()
    stage = Stage(name)
    try:
        scenario(stage)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        report(name, "failed", time.monotonic() - began, reason)
        traceback.print_exc(limit=3, chain=False)
        return False
    finally:
        stage.close()
    report(name, "passed", time.monotonic() - began)
    return True


def report(name, outcome, seconds=0.0, reason=""):
    # One write for the line and its end: scenarios report from threads of their own.
    line = f"{name} {outcome} {seconds:.1f}s {reason}".rstrip()
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def main():
    wanted = set(sys.argv[1:]) or {*CONCURRENT, *DISRUPTIVE}
    with ThreadPoolExecutor(len(CONCURRENT)) as pool:
        playing = [
            pool.submit(play, name, scenario)
            for name, scenario in CONCURRENT.items()
            if name in wanted
        ]
    passed = [future.result() for future in playing]
    for name, scenario in DISRUPTIVE.items():
        if name not in wanted:
            continue
        if "ORDERLY_RESTART" in os.environ:
            passed.append(play(name, scenario))
        else:
            report(name, "skipped", reason="ORDERLY_RESTART is not set")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
