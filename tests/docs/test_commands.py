"""Commands and Python on the pages work as a reader would run them, with settings that make them short.

What can't be run in a test (it needs a GPU, a cluster, a network or many minutes) is marked on its page by
`<!--not run: why-->` above the block; of such commands only the flags are checked.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_play import save_replay
from tests.run.small_runs import SMALL, Quiet, small_run
from tests.warm import Process
from warpzone.cli.commands import BENCHMARKS, flags_of_commands
from warpzone.cli.main import main
from warpzone.starts import exploration

from .pages import PAGES, ROOT, Command, commands, files, scripts

LIMIT_S = 240
"""Of a process that takes seconds; a busy machine takes many times as long."""
SERVED = ("warpzone watch mario", "warpzone play", "warpzone levels play levels/seed-7.json")
"""Pages that are served and opened; the same commands with other flags only say what they would do."""
SHORTER = {
    "train": [*SMALL, "--total-updates", "3", "--plain"],
    "eval": ["--episodes", "2"],
    "record": ["--tries", "1", "--scale", "1"],
    "explore": ["--minutes", "0.02"],
    "sweep": ["--trials", "1", "--no-plots", "--", *SMALL, "--total-updates", "1"],
    "doctor sync": ["--trials", "1"],
    "watch": ["--dry-run"],
    "play": ["--dry-run"],
    "levels play": ["--dry-run"],
    "levels check": ["--count", "1"],
    "levels generate": ["--count", "1"],
}
"""What makes a command short, by its words."""
RUN_ELSEWHERE = {
    "examples/compat_dqn.py": "compat/test_examples.py",
    "examples/single_file_ppo.py": "examples/test_examples.py",
    "examples/stable_baselines3_ppo.py": "examples/test_examples.py",
}
"""Scripts of ours that take long, and the test that runs them in the same way."""
LONG_SEARCH = "2-4"
"""Castles look for a trail first, which takes half a minute in this one. That of 1-4 is looked for."""
MAY_FAIL = ("doctor", "explore", "checkpoints backfill")
"""Exit with 1 where they find something: a missing tool, no trail within the time, a file to repair."""
SEPARATE = [command for command in commands() if not command.line.startswith(("jq", "warpzone control"))]
"""All but those that need more than a folder: tests/watch/test_metrics.py runs jq."""
HIDDEN = re.compile(r"^(?:    )?(?:warpzone|python|make|pip|docker) ", re.MULTILINE)


def named(words: list[str]) -> str:
    """The command that some words begin with, such as `levels play`."""
    two = " ".join(words[:2])
    return two if two in flags_of_commands() else words[0]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a reader has by then: a clone, two runs, files of a play and of a generator."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("agents", "bench", "examples", "docs"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "plays").mkdir()
    for kind in ("replay", "start"):
        save_replay(folder / "plays" / f"pipe.{kind}.json")
    for name, text in files().items():
        (folder / name).write_text(text)
    for name in ("script.py", "train.py"):
        (folder / name).write_text(
            "import gym_super_mario_bros\nassert 'warpzone' in gym_super_mario_bros.__file__\n"
        )
    (folder / "package").mkdir()
    (folder / "package" / "train.py").symlink_to(folder / "train.py")
    for name in ("mario", "first"):
        small_run(folder / "runs", "--run-name", name, "--total-updates", "2", "--stall-limit", "20")
    (folder / "runs" / "demo").symlink_to("mario")
    (folder / ".venv").symlink_to(sys.prefix)
    assert (
        main(["levels", "generate", "--seed", "7", "--difficulty", "0.4", "--out", str(folder / "levels")])
        == 0
    )
    for name in ("mine.json", "2-1.json"):
        assert main(["levels", "export", "2-1", "--out", str(folder / name)]) == 0
    return folder


def environment() -> dict[str, str]:
    """Of a reader's shell: our own Python first, one thread for the sums, and nothing of a `make` around the tests."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return {**kept, "OMP_NUM_THREADS": "1", "PATH": path}


def shell(line: str, folder: Path) -> None:
    """Run a line as a shell does."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def script(path: Path, words: list[str], folder: Path) -> None:
    done = Process(str(path), *words, folder=folder, env=environment()).end(LIMIT_S)
    assert done.code == 0, done.out + done.err


def serve_and_look(words: list[str], folder: Path) -> None:
    """Start a command that serves a page, open the address it prints, and press Ctrl+C."""
    command = [sys.executable, "-m", "warpzone.cli.main", *words, "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = next(word for line in process.stdout for word in line.split() if word.startswith("http"))
        with urllib.request.urlopen(address, timeout=LIMIT_S) as page:
            assert b"<title>" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 0
    finally:
        process.kill()
        process.communicate()


def only_check(words: list[str]) -> None:
    """Of a command that is not run: is there such a command, with such flags?"""
    if words[0] == "make":
        done = subprocess.run(
            ["make", "-n", *words[1:]],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stderr
    elif words[0] == "python" and words[1] != "-m":
        assert (ROOT / words[1]).is_file()
    elif words[0] == "warpzone":
        own = words[1 : words.index("--")] if "--" in words else words[1:]
        known = {flag.name for flag in flags_of_commands()[named(own)]}
        given = {word.partition("=")[0] for word in own if word.startswith("--")}
        assert given <= known | {f"--no-{name.removeprefix('--')}" for name in known}


def run_it(line: str, folder: Path) -> None:
    tool, *rest = shlex.split(line)
    if tool == "make":
        # The recipe itself, in the environment that runs the tests instead of a new one.
        assert rest == ["train"]
        flags = shlex.join([*SHORTER["train"], "--runs-dir", str(folder / "made")])
        settings = ["-o", ".venv/.installed", f"BIN={Path(sys.executable).parent}", f"ARGS={flags}"]
        shell(shlex.join(["make", "-C", str(ROOT), *settings, *rest]), folder)
    elif tool == "source":
        shell(f"{line} && command -v warpzone", folder)
    elif tool == "python" and rest[0].endswith(".py"):
        words = [re.sub(r"^\d{4,}$", "64", word) for word in rest[1:]]
        script(folder / rest[0], words, folder)
    elif tool == "python":
        shell(re.sub(r" \d{4,}$", " 64", line), folder)
    else:
        assert tool == "warpzone", "mark it as not run: it is not ours"
        command = named(rest)
        if line in SERVED:
            serve_and_look(rest, folder)
            return
        whole = [*rest, *([] if {"-h", "--dry-run"} & set(rest) else SHORTER.get(command, []))]
        if LONG_SEARCH in rest:
            whole += ["--trails", ""]
        try:
            status = main(whole)
        except SystemExit as ended:
            status = int(ended.code or 0)
        assert status in ((0, 1) if command in MAY_FAIL else (0,))


@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize("command", SEPARATE, ids=lambda command: command.line[:80])
def test_a_command_on_a_page_works(
    command: Command, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    monkeypatch.setattr(exploration, "SEARCH_ON", 1)  # the first trail will do
    words = shlex.split(command.line)
    if command.why_not or not RUN_ELSEWHERE.keys().isdisjoint(words):
        only_check(words)
    else:
        run_it(command.line, workplace)


def test_requests_on_the_pages_are_granted_by_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [command.line for command in commands() if command.line.startswith("warpzone control")]
    assert len(lines) == 4
    statuses = []

    class Asking(Quiet):
        asking: threading.Thread | None = None

        def ask(self) -> None:
            statuses.extend(main(shlex.split(line)[1:]) for line in [*lines, "warpzone control mario stop"])

        def update(self, record: dict[str, Any]) -> None:
            if self.asking is None:
                self.asking = threading.Thread(target=self.ask)
                self.asking.start()

    display = Asking()
    small_run(Path("runs"), "--run-name", "mario", "--stages", "1-1,1-2", display=display)
    assert display.asking is not None
    display.asking.join(LIMIT_S)
    assert statuses == [0] * 5


def test_most_commands_run_and_those_of_a_readers_first_hour_all_do() -> None:
    found = commands()
    assert len([command for command in found if not command.why_not]) > 60
    for page in ("index.md", "tutorial.md"):
        ours = [c for c in found if c.page == page and c.line.startswith(("warpzone", "python"))]
        assert ours
        assert [command.line for command in ours if command.why_not] == []


@pytest.mark.parametrize(
    "page", [str(page.relative_to(ROOT)) for page in PAGES if "research" not in page.parts]
)
def test_no_command_hides_in_a_block_that_is_not_tested(page: str) -> None:
    text = (ROOT / page).read_text()
    plain = re.sub(r"^```(?:bash|sh|python)\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert HIDDEN.findall(plain) == []


@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES if scripts(page)])
def test_the_python_on_a_page_works(page: str, workplace: Path, tmp_path: Path) -> None:
    # All of it in one process: a later block may use names from an earlier one.
    (tmp_path / "page.py").write_text("\n\n".join(scripts(ROOT / page)))
    script(tmp_path / "page.py", [], workplace)


@pytest.mark.parametrize(("script", "tests"), RUN_ELSEWHERE.items())
def test_what_is_run_elsewhere_is_there(script: str, tests: str) -> None:
    source = (ROOT / script).read_text()
    lines = [shlex.split(command.line) for command in commands()]
    flags = {word for words in lines if script in words for word in words if word.startswith("--")}
    assert all(f'"{flag}"' in source for flag in flags)
    assert f'"{Path(script).name}"' in (ROOT / "tests" / tests).read_text()


def test_benchmarks_on_the_pages_exist() -> None:
    named_there = {name for page in PAGES for name in re.findall(r"warpzone bench (\w+)", page.read_text())}
    assert named_there <= BENCHMARKS.keys()
