"""Why asynchronous nes-py environments hang: Gymnasium's AsyncVectorEnv under every start method and patch.

    python bench/async_hang.py --trials 3 --timeout 60 --out hang.jsonl

Each trial is a separate process that creates the vector, resets it and steps it. Patches: `none`; `view`, which
widens the sums but leaves `ram` as the emulator's own memory; `copy`, which changes the dtype of `ram` with `astype`,
which is a copy made once. Mode `single` creates one environment without a worker. At the time limit, py-spy takes the
stacks of the trial's processes (native ones too, where permitted) before they are killed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import psutil

MODES = ("single", "fork", "forkserver", "spawn")
PATCHES = ("none", "view", "copy")


def apply_patch(kind: str) -> None:
    """Make gym-super-mario-bros 7.4 run on NumPy 2, correctly (`view`) or in the tempting but wrong way (`copy`)."""
    warnings.simplefilter("ignore")
    import numpy as np
    from nes_py import _rom, nes_env

    if kind == "none":
        return
    _rom.ROM.prg_rom_size = property(lambda self: 16 * int(self.header[4]))
    _rom.ROM.chr_rom_size = property(lambda self: 8 * int(self.header[5]))
    if kind == "view":
        from gym_super_mario_bros import smb_env

        smb_env.SuperMarioBrosEnv._x_position = property(lambda s: int(s.ram[0x6D]) * 256 + int(s.ram[0x86]))
        smb_env.SuperMarioBrosEnv._y_position = property(
            lambda s: (510 if s.ram[0xB5] < 1 else 255) - int(s.ram[0x3B8])
        )
    else:
        emulator_memory = nes_env.NESEnv._ram_buffer
        nes_env.NESEnv._ram_buffer = lambda self: emulator_memory(self).astype(np.int64)


class OldGymEnv:
    """Builds one environment inside a worker; plain data, so that it can be pickled for spawn."""

    def __init__(self, patch: str) -> None:
        self.patch = patch

    def __call__(self) -> Any:
        import gymnasium
        import numpy as np

        apply_patch(self.patch)
        from gym_super_mario_bros import SuperMarioBrosEnv

        class Adapter(gymnasium.Env[Any, Any]):
            observation_space = gymnasium.spaces.Box(0, 255, (240, 256, 3), np.uint8)
            action_space = gymnasium.spaces.Discrete(256)

            def __init__(self) -> None:
                self.inner = SuperMarioBrosEnv(target=(1, 1))

            def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
                return self.inner.reset().copy(), {}

            def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
                screen, reward, done, _ = self.inner.step(int(action))
                return screen.copy(), reward, done, False, {}

        return Adapter()


def trial(mode: str, patch: str, num_envs: int, threads_first: bool) -> None:
    """Create, reset and step; runs in its own process."""
    if threads_first:
        import torch

        torch.ones(2000, 2000) @ torch.ones(2000, 2000)
    if mode == "single":
        env = OldGymEnv(patch)()
        env.reset()
        for _ in range(10):
            env.step(128)
        return
    from gymnasium.vector import AsyncVectorEnv

    envs = AsyncVectorEnv([OldGymEnv(patch) for _ in range(num_envs)], shared_memory=False, context=mode)
    envs.reset()
    for _ in range(10):
        envs.step([128] * num_envs)
    envs.close()


def stacks(parent: psutil.Process) -> list[str]:
    """Stacks of the process and its children, where py-spy is installed and permitted."""
    spy = shutil.which("py-spy") or str(Path(sys.executable).with_name("py-spy"))
    found = []
    for process in [parent, *parent.children(recursive=True)]:
        command = [spy, "dump", "--pid", str(process.pid)]
        if not os.path.exists(spy):
            return ["py-spy is not installed"]
        shown = subprocess.run([*command, "--native"], capture_output=True, text=True, timeout=60)
        if shown.returncode:
            shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
        found.append(shown.stdout or shown.stderr)
    return found


def cpu_seconds(process: psutil.Process) -> float:
    """Processor time used so far: a loop uses it, a lock does not."""
    try:
        return round(sum(process.cpu_times()[:2]), 1)
    except psutil.NoSuchProcess:
        return 0.0


def supervise(mode: str, patch: str, options: argparse.Namespace) -> dict[str, Any]:
    """One trial as a subprocess with a time limit; returns its record."""
    command = [sys.executable, __file__, "--one", mode, patch, "--num-envs", str(options.num_envs)]
    began = time.monotonic()
    process = subprocess.Popen(
        [*command, *(["--threads-first"] if options.threads_first else [])],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    record: dict[str, Any] = {"mode": mode, "patch": patch, "num_envs": options.num_envs}
    try:
        _, errors = process.communicate(timeout=options.timeout)
        record["result"] = "ok" if process.returncode == 0 else "error"
        if process.returncode:
            record["error"] = [line for line in errors.splitlines() if line.strip()][-1][:200]
    except subprocess.TimeoutExpired:
        tree = psutil.Process(process.pid)
        family = [*tree.children(recursive=True), tree]
        record["result"], record["stacks"] = "timeout", stacks(tree)
        record["cpu_s"] = [cpu_seconds(member) for member in family]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait()
    record["threads_first"] = options.threads_first
    record["seconds"] = round(time.monotonic() - began, 2)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--modes", nargs="+", default=list(MODES))
    parser.add_argument("--patches", nargs="+", default=list(PATCHES))
    parser.add_argument(
        "--threads-first", action="store_true", help="start torch's threads in the parent first"
    )
    parser.add_argument("--out", default="async_hang.jsonl")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        trial(*options.one, options.num_envs, options.threads_first)
        return
    with open(options.out, "a", encoding="utf-8") as out:
        for patch in options.patches:
            for mode in options.modes:
                for _ in range(options.trials):
                    record = supervise(mode, patch, options)
                    out.write(json.dumps(record) + "\n")
                    out.flush()
                    took, error = record["seconds"], record.get("error", "")
                    print(f"{patch:5} {mode:11} {record['result']:8} {took:6.1f} s  {error}")


if __name__ == "__main__":
    main()
