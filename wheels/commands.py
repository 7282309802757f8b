"""Other programs: run them, find interpreters, report progress."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def say(line: str) -> None:
    print(f"[wheels] {line}", file=sys.stderr, flush=True)


def run(*command: object, given: str = "", **environ: str) -> str:
    """The output of a command that reads `given`; a failure ends the script with the command's last lines."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=ROOT,
        input=given,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-4000:]}\n[wheels] {words[0]} failed ({done.returncode}): {' '.join(words)}")
    return done.stdout


def interpreter(version: str) -> str | None:
    """A CPython of this version: on the PATH, or one of pyenv's, whose names on the PATH may not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [
        shutil.which(f"python{version}"),
        *sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")),
    ]
    for path in filter(None, found):
        if subprocess.run([path, "-V"], capture_output=True).returncode == 0:
            return str(path)
    return None
