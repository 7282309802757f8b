"""Training on a machine that is lent for minutes at a time, without internet and bare at each start.

    python bench/sittings.py pack carry    # here, once: wheels for that machine and the ROM
    python bench/sittings.py sit carry --back OUT --seconds 555 -- master --stages all --out STATE   # there, repeatedly
    python bench/sittings.py rest OUT    # there, where the state was too large for one answer
    python bench/sittings.py take OUT carry    # here, after each: what came back goes along next time
    python bench/sittings.py give carry    # there, before `sit`, where it is too large to travel at once

Where a call may be shorter than the sitting, and the machine stays between calls that follow each other closely:

    python bench/sittings.py start carry --seconds 1500 -- master --stages all --out STATE    # there: goes on by itself
    python bench/sittings.py look OUT --seconds 570    # there, repeatedly, until it says that all has come back

`sit --slim` leaves the plan, the agent and the trails of a master alone, about two megabytes: it goes on from them with
new runs. `sit --weights` leaves the best weights of every run too, about a megabyte each: runs begin with those.

Let the calls of `look` follow each other at once: what goes on by itself is lost with the machine, which is soon given
to others. Try all of it here first, with `--state` in a folder of its own and a few seconds.

`sit` installs what `pack` collected, unpacks where the last sitting stopped, runs a command of warpzone or a script of
ours until so many seconds after its own start, stops it as Ctrl-C would, and leaves the folder STATE in BACK in pieces
of 13 MB, four at a time. That machine needs Python, torch, NumPy, a compiler and CMake.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = [
    "gymnasium", "farama-notifications", "cloudpickle", "typing-extensions", "tyro", "docstring-parser", "typeguard",
    "rich", "markdown-it-py", "mdurl", "pygments", "psutil", "safetensors", "nvidia-ml-py", "scikit-build-core",
    "nanobind", "pathspec", "packaging",
]  # fmt: skip
"""What training needs beside torch and NumPy, and what builds the engine beside a compiler and CMake. No video is
recorded there."""
SAID, OVER = "sitting.txt", "over"
"""What a sitting that was started says, and the file by which it says that it has ended."""
PIECE_BYTES = 13 << 20
PIECES_AT_ONCE = 4
STOP_S = 40.0
"""How long a command may take to stop before it is killed: all its runs save."""
LEFT_BEHIND = ("tensorboard", "videos", "frames", "diagnostics", "episodes.jsonl")
"""What nothing resumes from in a run's folder."""
BEST = Path("checkpoints") / "best.pt"
KEEP_WEIGHTS = f"""
import pathlib, sys
from warpzone.checkpoints.saving import load_checkpoint, save_checkpoint
for best in pathlib.Path(sys.argv[1]).glob("*/{BEST}"):
    checkpoint = load_checkpoint(best)
    policy = checkpoint.of_training()["learner"]["policy"]
    rounded = {{name: weight.half().to(weight.dtype) for name, weight in policy.items()}}
    save_checkpoint(best.parent, "best", {{"learner": {{"policy": rounded}}}}, checkpoint.meta)
"""
"""Of the best checkpoints below a folder, leave what teaching and evaluation need: weights in half precision, which
then compress to half of their size."""
SLIM = ("master.json", "agent.*", "eval.*", "game.json", "trails")
ROUND_AGENT = """
import pathlib, sys
from safetensors import safe_open
from safetensors.torch import save_file
for path in pathlib.Path(sys.argv[1]).glob("agent.safetensors"):
    with safe_open(path, "pt") as agent:
        weights = {name: agent.get_tensor(name) for name in agent.keys()}
        about = agent.metadata()
    save_file({name: weight.half().to(weight.dtype) for name, weight in weights.items()}, path, about)
"""
"""The same for the agent of a master."""


def pack(carry: Path, machine: str, python: str) -> None:
    wheels = carry / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    wanted = ["--only-binary", ":all:", "--no-deps", "--python-version", python]
    for glibc in ("2_28", "2_27", "2_17", "2014", "2_12", "2010", "2_5", "1"):
        wanted += ["--platform", f"manylinux{'_' * ('_' in glibc)}{glibc}_{machine}"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *wanted, "--dest", str(wheels), *PACKAGES]
    subprocess.run(command, check=True)
    rom = subprocess.run(
        [sys.executable, "-m", "warpzone.engine.rom"], check=True, capture_output=True, text=True
    ).stdout.strip()
    shutil.copy(rom, carry / "rom.nes")
    print(f"{size_mb(carry):.1f} MB in {carry}")


def sit(carry: Path, back: Path, state: Path, seconds: float, kept_of_it: str, words: list[str]) -> None:
    ends_at = time.monotonic() + seconds
    variables = install(carry, Path("build/sitting/site"))
    if not state.exists():
        unpack([*(carry / "state").glob("state.*"), *kept(state).glob("state.*")], state)
    back.mkdir(parents=True, exist_ok=True)
    words = [word.replace("STATE", str(state)) for word in words]
    module = [] if words[0].endswith(".py") else ["-m", "warpzone.cli.main"]
    log = back / "log.txt"
    with log.open("w") as lines:
        child = subprocess.Popen(
            [sys.executable, *module, *words], stdout=lines, stderr=subprocess.STDOUT, env=variables,
            # Where this runs in the background of a shell, the signal is ignored, and a child inherits that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        try:
            child.wait(max(ends_at - time.monotonic(), 1.0))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(STOP_S)
            except subprocess.TimeoutExpired:
                child.kill()
    print(log.read_text()[-3000:])
    pieces = pack_state(state, variables, kept_of_it)
    if (state / "master.json").exists():
        shutil.copy(state / "master.json", back)
    print(f"{words[0]} ended with {child.wait()}; {pieces} pieces, {size_mb(kept(state)):.1f} MB")
    rest(back, state)


def start(carry: Path, back: Path, words: list[str]) -> None:
    """`sit`, with the same words, in a process of its own."""
    shutil.rmtree(back, ignore_errors=True)
    back.mkdir(parents=True)
    own = [sys.executable, __file__, "sit", str(carry), "--back", str(back), *words]
    with (back / SAID).open("w") as said:
        subprocess.Popen(
            own, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
    print(f"begun; look for what it says with: {Path(__file__).name} look OUT --back {back}")


def look(out: Path, back: Path, state: Path, seconds: float) -> None:
    """Wait for the end of a sitting that was started, and bring what there is: in the end as many pieces as one answer
    may hold."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not (back / OVER).exists():
        time.sleep(0.5)
    over = (back / OVER).exists()
    out.mkdir(parents=True, exist_ok=True)
    for path in (state / "master.json", back / "log.txt", back / SAID):
        if path.exists():
            shutil.copy(path, out)
            print(path.read_text()[-1500:] if path.suffix == ".txt" else "", end="")
    if over:
        for piece in back.glob("state.*"):
            shutil.move(piece, kept(state) / piece.name)
        rest(out, state)
    else:
        print("it goes on: look again at once")


def install(carry: Path, site: Path) -> dict[str, str]:
    """The environment variables under which Python has the package, built here. No pip is needed."""
    variables = {
        **os.environ, "PYTHONPATH": str(site.resolve()), "PYTHONUNBUFFERED": "1",
        "WARPZONE_ROM": str((carry / "rom.nes").resolve()),
    }  # fmt: skip
    if not any(site.glob("warpzone-*")):
        built = site.with_name("built")
        for wheel in (carry / "wheels").glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(site)
        build = f"import scikit_build_core.build as build; build.build_wheel({str(built.resolve())!r})"
        subprocess.run([sys.executable, "-c", build], check=True, cwd=ROOT, env=variables)
        for wheel in built.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(site)
    return variables


def kept(state: Path) -> Path:
    """Where that machine keeps pieces that still have to travel."""
    return state.with_name(f"{state.name}-pieces")


def pack_state(state: Path, variables: dict[str, str], kept_of_it: str = "all") -> int:
    """Pack what a run or a master resumes from, in pieces; of a best checkpoint, its weights; of a slim state, what a
    master can't do without; of one with weights, no more than these of any run."""
    slim, weights = kept_of_it == "slim", kept_of_it == "weights"
    to = kept(state)
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    if not state.exists():
        return 0
    master = state / "master.json"
    learners = json.loads(master.read_text()) if master.exists() else {"specialists": {}, "policies": {}}
    runs = {f"specialist-{name}": one for name, one in learners["specialists"].items()} | learners["policies"]
    over = {
        run
        for run, one in runs.items()
        if (weights or one["status"] == "done" or run.startswith("polished"))
        and (state / run / BEST).exists()
    }
    with tempfile.TemporaryDirectory(dir=to) as together:
        copy = Path(together) / "state"
        shutil.copytree(state, copy, ignore=lambda folder, names: {
            name for name in names if is_left_behind((Path(folder) / name).relative_to(state), over, slim)
        })  # fmt: skip
        if master.exists():
            script = ROUND_AGENT if slim else KEEP_WEIGHTS
            subprocess.run([sys.executable, "-c", script, str(copy)], check=True, env=variables)
        archive = to / "state.tar.xz"
        with tarfile.open(archive, "w:xz", preset=0) as tar:
            tar.add(copy, arcname=".")
    whole, pieces = archive.read_bytes(), 0
    archive.unlink()
    for start in range(0, len(whole), PIECE_BYTES):
        (to / f"state.{pieces:02d}").write_bytes(whole[start : start + PIECE_BYTES])
        pieces += 1
    return pieces


def rest(back: Path, state: Path) -> None:
    """Move as many pieces as one answer may hold."""
    back.mkdir(parents=True, exist_ok=True)
    for piece in sorted(kept(state).glob("state.*"))[:PIECES_AT_ONCE]:
        shutil.move(piece, back / piece.name)
    left = len(list(kept(state).glob("state.*")))
    print(f"{left} pieces still to fetch" if left else "that was the last piece")


def give(carry: Path, state: Path) -> None:
    """Keep pieces that came along for the sitting to come."""
    kept(state).mkdir(parents=True, exist_ok=True)
    for piece in (carry / "state").glob("state.*"):
        shutil.copyfile(piece, kept(state) / piece.name)
    print(f"{len(list(kept(state).glob('state.*')))} pieces here")


def is_left_behind(path: Path, over: set[str], slim: bool) -> bool:
    """Whether training resumes as well without this file or folder; the runs in `over` are not trained on."""
    if slim and not any(fnmatch(path.parts[0], pattern) for pattern in SLIM):
        return True
    if any(part in LEFT_BEHIND for part in path.parts) or path.suffix == ".mp4":
        return True
    if path.parent.name != "checkpoints":
        return False
    # `latest` is as new as the numbered ones; a specialist that is done only teaches.
    return path.stem != "best" if path.parts[0] in over else path.stem.startswith("step_")


def unpack(pieces: list[Path], state: Path) -> None:
    named = {piece.name: piece for piece in pieces}
    whole = b"".join(named[name].read_bytes() for name in sorted(named))
    if not whole:
        return
    archive = state.with_suffix(".tar.xz")
    archive.write_bytes(whole)
    with tarfile.open(archive) as tar:
        tar.extractall(state, filter="data")
    archive.unlink()


def take(back: Path, carry: Path) -> None:
    pieces = sorted(back.glob("state.*"))
    if not pieces:
        sys.exit(
            f"{back} has no pieces of a state: the sitting did not end as it should; keep those of the last."
        )
    if pieces[0].name == "state.00":
        shutil.rmtree(carry / "state", ignore_errors=True)
    (carry / "state").mkdir(parents=True, exist_ok=True)
    for piece in pieces:
        shutil.copyfile(piece, carry / "state" / piece.name)
    print(f"{len(pieces)} pieces; {size_mb(carry):.1f} MB in {carry}")


def size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def add_flags_of_a_sitting(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seconds", type=float, default=555.0, help="until the stop, the set-up included")
    command.add_argument(
        "--slim", action="store_const", const="slim", dest="keep", default="all",
        help="keep only the plan, the agent and the trails of a master",
    )  # fmt: skip
    command.add_argument(
        "--weights", action="store_const", const="weights", dest="keep",
        help="keep of every run only its best weights",
    )  # fmt: skip


def main() -> None:
    own, words = sys.argv[1:], []
    if "--" in own:
        own, words = own[: own.index("--")], own[own.index("--") + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="collect wheels and the ROM")
    packing.add_argument("carry", type=Path)
    packing.add_argument("--machine", default="x86_64", help="its architecture")
    packing.add_argument("--python", default="3.12")
    sitting = commands.add_parser("sit", help="train for a while; the command after --")
    sitting.add_argument("carry", type=Path)
    sitting.add_argument("--back", type=Path, required=True, help="folder for what comes back")
    starting = commands.add_parser("start", help="sit in a process of its own, with the flags of sit")
    starting.add_argument("carry", type=Path)
    starting.add_argument("--back", type=Path, default=Path("/tmp/back"), help="folder for what comes back")
    looking = commands.add_parser("look", help="wait for what was started, and bring what there is")
    looking.add_argument("out", type=Path)
    looking.add_argument("--back", type=Path, default=Path("/tmp/back"), help="the one of start")
    looking.add_argument("--seconds", type=float, default=570.0, help="to wait at most")
    for command in (sitting, starting):
        add_flags_of_a_sitting(command)
    resting = commands.add_parser("rest", help="further pieces, where they were too many for one answer")
    resting.add_argument("back", type=Path)
    giving = commands.add_parser("give", help="keep the pieces that came along for the sitting to come")
    giving.add_argument("carry", type=Path)
    for command in (sitting, starting, looking, resting, giving):
        command.add_argument("--state", type=Path, default=Path("/tmp/state"), help="the folder that is kept")
    taking = commands.add_parser("take", help="what came back goes along next time")
    taking.add_argument("back", type=Path)
    taking.add_argument("carry", type=Path)
    given = parser.parse_args(own)
    if given.command in ("sit", "start") and not words:
        parser.error("name the command after --, such as -- master --stages all --out STATE")
    if given.command == "pack":
        pack(given.carry, given.machine, given.python)
    elif given.command == "start":
        how = [] if given.keep == "all" else [f"--{given.keep}"]
        flags = ["--seconds", str(given.seconds), "--state", str(given.state), *how]
        start(given.carry, given.back, [*flags, "--", *words])
    elif given.command == "look":
        look(given.out, given.back, given.state, given.seconds)
    elif given.command == "sit":
        try:
            sit(given.carry, given.back, given.state, given.seconds, given.keep, words)
        finally:  # also where it could not even begin: nobody is to wait for it
            given.back.mkdir(parents=True, exist_ok=True)
            (given.back / OVER).touch()
    elif given.command == "rest":
        rest(given.back, given.state)
    elif given.command == "give":
        give(given.carry, given.state)
    else:
        take(given.back, given.carry)


if __name__ == "__main__":
    main()
