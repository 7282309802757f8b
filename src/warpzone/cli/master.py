"""`warpzone master`: from the ROM to one policy for many stages."""

from __future__ import annotations

import shlex
from dataclasses import replace

from rich.console import Console

from warpzone.cli.flags import parse
from warpzone.cli.info import gather
from warpzone.cli.master_board import Board, summary
from warpzone.cli.train import settings as train_settings
from warpzone.cluster.commands import spawn_on
from warpzone.cluster.connection import check_nodes, connected
from warpzone.envs.config import cores
from warpzone.master.children import Spawn
from warpzone.master.opening import open_state
from warpzone.master.phases import polish_words, specialist_words, student_words
from warpzone.master.plan import MasterConfig, Plan, make_plan
from warpzone.master.run import master, rom_digest
from warpzone.master.state import run_name
from warpzone.master.work import Work
from warpzone.run.stopping import EXIT_OK

SETTINGS = {"": MasterConfig}


def run(argv: list[str]) -> int:
    config = parse(MasterConfig(), argv, "warpzone master")
    if not config.cluster or config.dry_run:
        return work_on(config, cores(), None)
    with connected(config.cluster, local_cpus=cores()) as cluster:
        check_nodes(cluster, config.rom)
        return work_on(replace(config, out=config.out.resolve()), max(1, cluster.cpus()), spawn_on(cluster))


def work_on(config: MasterConfig, cpus: int, spawn: Spawn | None) -> int:
    """Plan for so many CPUs, and work."""
    plan = make_plan(config, cpus)
    commands = planned_commands(config, plan)
    for words in commands.values():
        train_settings(words[1:], {})
    if config.dry_run:
        for phase, share in plan.shares().items():
            print(f"[master] {phase}: {plan.seconds * share / 60:.1f} minutes")
        print(f"[master] {len(plan.groups)} specialists, {plan.parallel} at once")
        for words in commands.values():
            print("warpzone", shlex.join(words))
        return EXIT_OK
    console = Console()
    with Board(console, plain=config.plain) as board:
        code, state = master(config, plan, gather(), board.show, board.say, spawn)
    for line in summary(state, config.out):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return code


def planned_commands(config: MasterConfig, plan: Plan) -> dict[str, list[str]]:
    """The trainings by their run's name; what is only known later (seconds, schedules) is left out."""
    state = open_state(config, plan, rom_digest(config))
    work = Work(config, plan, state, lambda: False, lambda state: None, lambda line: None)
    threads = max(1, plan.cores // plan.parallel)
    commands = {run_name(name): specialist_words(work, name, threads) for name in plan.groups}
    if len(plan.groups) > 1:
        commands["student"] = student_words(work)
    commands[state.polished_run] = polish_words(work)
    return {name: work.train_words(name, words) for name, words in commands.items()}
