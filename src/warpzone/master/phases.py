"""The phases, in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from warpzone.agents.weights_file import read_card
from warpzone.checkpoints.finding import best_checkpoint, find_resume
from warpzone.checkpoints.saving import read_meta
from warpzone.envs.stages import ALL_STAGES
from warpzone.errors import CheckpointError
from warpzone.master import recipes
from warpzone.master.card import finish
from warpzone.master.plan import LEAST_NEED, LEAST_S, anneal_steps, need, turn_s
from warpzone.master.state import Learner, run_name
from warpzone.master.work import Failed, Work
from warpzone.starts.trails import load_trail, of_seed, save_trail

TEACHER_RATE = 0.5
"""Clear rate from which on a specialist teaches; a worse one only where nobody has it."""
MEASURE_SHARE, MEASURE_S = 0.05, 20.0
"""Of a phase, and at least: training after which its speed, and so the length of its schedules, is known."""
ARRIVAL_SHARE, ARRIVAL_S = 0.1, 120.0
"""Of the time for polishing, spent on collecting arrivals, and how much there must be for that."""
FAR = 10**12
"""Decisions: a schedule of this length stays where it begins."""
MOST_TRIES = 3
CORES_PER_SEED = 8
"""A further seed of the longest searches for trails for so many cores: most others take a few seconds."""
NO_MEMORY = ("does not fit into memory", "out of memory")
KILLED = -9


def explore(work: Work) -> None:
    """Search for a trail through every stage, one process for each, as many at once as there are cores. Where there
    are many of them the hardest stages have several seeds: the shortest trail is the one, and the ends of the others
    are practised too. A further seed waits until every stage has had its turn: without a trail, a specialist may stand
    for minutes."""
    trails, minutes = work.folder / "trails", max(work.left_s(), 1.0) / 60
    seeds = range(work.config.seed, work.config.seed + 1 + work.plan.cores // CORES_PER_SEED)
    missing = [stage for stage in work.plan.stages if load_trail(trails, stage) is None]
    slow = [stage for stage in missing if stage in recipes.SLOW]
    several = [stage for stage in missing if stage in recipes.SEVERAL_TRAILS and len(seeds) > 1]
    searches = [(stage, seeds[0]) for stage in (*slow, *(stage for stage in missing if stage not in slow))]
    searches += [(stage, seed) for seed in seeds[1:] for stage in several]
    jobs = {
        f"explore-{stage}" + (f"-seed-{seed}" if seed != seeds[0] else ""): [
            "explore", "--stages", stage, "--out", str(of_seed(trails, seed) if stage in several else trails),
            "--minutes", f"{minutes:.3f}", "--threads", "1",
            "--seed", str(seed), *frame_skip_in(work.plan.train_flags),
        ]
        for stage, seed in searches
    }  # fmt: skip
    work.run_all(jobs, work.plan.cores, limited=True)
    for stage in several:
        found = [load_trail(of_seed(trails, seed), stage) for seed in seeds]
        if any(found):
            save_trail(min(filter(None, found), key=lambda trail: trail.decisions), trails)
    without = [stage for stage in work.plan.stages if load_trail(trails, stage) is None]
    work.state.phases["explore"].note = f"no trail of {', '.join(without)}" if without else ""


def frame_skip_in(flags: Sequence[str]) -> list[str]:
    """The flag with its value, if it is there: trails hold their buttons as long as the training does."""
    named = [(word, after) for word, after in pairwise((*flags, "")) if word.startswith("--frame-skip")]
    return [word for one, after in named[-1:] for word in ([one] if "=" in one else [one, after])]


def specialists(work: Work) -> None:
    """Train one specialist for each stage or pair, in turns, until each meets the target or the time is over."""
    state = work.state
    for name, one in state.specialists.items():
        if one.status == "waiting":
            work.read_outcome(run_name(name))
    while True:
        for child in work.crew.ended():
            work.settle(child)
            if child.stopped_at is None:
                _after_failure(work, child.name, child.process.returncode or 0, child.last_words())
        waiting = [name for name, one in state.specialists.items() if one.status == "waiting"]
        # Nobody is left without any turn, and a turn too short to learn from is not begun.
        ready = [
            n for n in waiting if work.left_s() >= LEAST_S["specialists"] or not state.specialists[n].turns
        ]
        if not ready and not len(work.crew):
            break
        while ready and len(work.crew) < state.parallel:
            first = staying(work)
            name = min(
                ready,
                key=lambda n: (
                    n not in first, -state.specialists[n].turn_left_s, state.specialists[n].spent_s,
                ),
            )  # fmt: skip
            ready.remove(name)
            start_turn(work, name)
        work.beat()
    if not work.earlier_agent() and all(_rate(work, run_name(name)) is None for name in state.specialists):
        errors = sorted({one.error for one in state.specialists.values() if one.error})
        raise Failed(f"no specialist has learned anything ({'; '.join(errors) or 'too little time'})")


def staying(work: Work) -> list[str]:
    """Specialists of slow stages: they train without a break while the others have at least half of the places."""
    slow = [name for name in unfinished_ones(work) if not recipes.SLOW.isdisjoint(work.plan.groups[name])]
    return slow if 2 * len(slow) <= work.state.parallel else []


def unfinished_ones(work: Work) -> list[str]:
    return [name for name, one in work.state.specialists.items() if one.status in ("waiting", "running")]


def start_turn(work: Work, name: str) -> None:
    """Give a specialist its turn, or the rest of one that was interrupted."""
    state, one, stay = work.state, work.state.specialists[name], staying(work)
    unfinished, left_s = unfinished_ones(work), max(work.left_s(), 0.0)
    if not one.turn_left_s:
        while len(state.rounds) <= one.turns:
            needs = [need(state.specialists[n], work.config.target) for n in unfinished if n not in stay]
            state.rounds.append(left_s * (state.parallel - len(stay)) / max(sum(needs), LEAST_NEED))
        turn = turn_s(state.rounds[one.turns] * need(one, work.config.target), left_s)
        one.turn_left_s = left_s if name in stay else turn
        one.turns += 1
    threads = max(1, work.plan.cores // min(state.parallel, len(unfinished)))
    seconds = min(one.turn_left_s, left_s)
    words = specialist_words(work, name, threads)
    if seconds >= left_s:
        words += last_schedule(work, run_name(name), seconds)
    work.train(run_name(name), words, seconds)


def last_schedule(work: Work, run: str, seconds: float) -> list[str]:
    """The flags of a turn that lasts to the end of the phase: schedules end with it, as a run is best at their end."""
    record = work.last_record(run)
    steps, per_s = record.get("global_step"), record.get("env_steps_per_sec")
    return ["--anneal-steps", str(anneal_steps(steps, per_s, seconds))] if steps and per_s else []


def specialist_words(work: Work, name: str, threads: int) -> list[str]:
    """The flags of a specialist."""
    stages, trails = work.plan.groups[name], work.folder / "trails"
    has_trail = any(load_trail(trails, stage) for stage in stages)
    return recipes.words(
        {"preset": work.plan.preset, "stages": ",".join(stages)}, recipes.EVERY_RUN[work.plan.preset],
        {"until-clear-rate": work.config.target, "env-threads": threads},
        {} if work.plan.preset == "gpu" else {"torch-threads": threads},
        recipes.specialist(work.plan.preset, stages), {"trails": trails} if has_trail else {},
        first_weights(work, run_name(name)),
    )  # fmt: skip


def first_weights(work: Work, run: str) -> recipes.Flags:
    """The flags of a run that can't be resumed: it begins with the best weights that are left of it, or with the agent
    that this master had made before it got more minutes."""
    best, agent = work.folder / run / "checkpoints" / "best.pt", work.earlier_agent()
    if find_resume(work.folder / run) is not None or not (best.exists() or agent):
        return {}
    return {"begin-with": best if best.exists() else agent, **recipes.WARMED_UP}


def _after_failure(work: Work, run: str, code: int, said: str) -> None:
    """Out of memory, one fewer trains at once and it is tried again; any other failure stays one."""
    one, state = work.learners()[run], work.state
    if one.status != "failed" or state.parallel == 1:
        return
    if code == KILLED or any(text in said.lower() for text in NO_MEMORY):
        state.parallel -= 1
        one.status, one.error = "waiting", ""
        work.say(f"[master] out of memory: {state.parallel} at once from now on")


def distil(work: Work) -> None:
    """Distil the specialists into one policy. A single specialist is that policy already."""
    if len(work.plan.groups) == 1:
        work.state.phases["distil"].status = "skipped"
        return
    _train_to_the_end(work, "student", student_words(work))


def student_words(work: Work) -> list[str]:
    """The flags of the student."""
    return recipes.words(
        {"preset": work.plan.preset, "stages": ",".join(work.plan.stages)},
        recipes.EVERY_RUN[work.plan.preset], _teachers(work),
        {"until-clear-rate": work.config.target}, recipes.STUDENT[work.plan.preset],
        first_weights(work, "student"),
    )  # fmt: skip


def polish(work: Work) -> None:
    """Train on with buttons that stick in half of the environments, at a low learning rate, teachers kept. A share of
    the episodes begins as the stage before ended, as in the whole game."""
    arrive(work)
    _train_to_the_end(work, work.state.polished_run, polish_words(work))


def arrive(work: Work) -> None:
    """Collect arrivals by the policy's own play in the stages that follow another one of the plan."""
    folder = work.folder / "arrivals"
    entered = [b for a, b in pairwise(ALL_STAGES) if {a, b} <= set(work.plan.stages)]
    if (
        not entered
        or folder.exists()
        or work.state.polished_run in work.state.policies
        or work.left_s() < ARRIVAL_S
    ):
        return
    minutes = ARRIVAL_SHARE * work.left_s() / 60
    job = [
        "explore", "--checkpoint", work.weights_to_polish(), "--runs-dir", str(work.folder),
        "--stages", ",".join(entered),
        "--out", str(folder), "--minutes", f"{minutes:.3f}", "--seed", str(work.config.seed),
        "--device", "cuda" if work.plan.preset == "gpu" else "cpu", "--trust-code",
    ]  # fmt: skip
    # Stages without an arrival are practised from their start alone.
    work.run_all({"arrivals": job}, 1, limited=True)


def polish_words(work: Work) -> list[str]:
    """The flags of the polished run: those of the run it begins with, changed."""
    stages, preset, arrivals = work.plan.stages, work.plan.preset, work.folder / "arrivals"
    distilled = len(work.plan.groups) > 1
    return recipes.words(
        {"preset": preset, "stages": ",".join(stages)}, recipes.EVERY_RUN[preset], _teachers(work),
        {"begin-with": work.weights_to_polish()},
        recipes.STUDENT[preset] if distilled else recipes.specialist(preset, stages), recipes.POLISH,
        {"trails": "", "arrivals": arrivals} if any(arrivals.glob("*.npz")) else {},
    )  # fmt: skip


def _teachers(work: Work) -> recipes.Flags:
    known = [_rate(work, run_name(name)) for name in work.state.specialists]
    rates = [rate for rate in known if rate is not None]
    if agent := work.earlier_agent():
        rates += read_card(agent).clear_rate.values()
    lowest = 0.0 if max(rates, default=0.0) < TEACHER_RATE else TEACHER_RATE
    return {"teachers": work.folder, "teacher-rate": lowest}


def _rate(work: Work, run: str) -> float | None:
    """The best clear rate of a run on one of its stages, by its best checkpoint; None if it has no checkpoint."""
    try:
        meta = read_meta(best_checkpoint(work.folder / run))
    except CheckpointError:
        return None
    return max(meta.clear_rate.values(), default=0.0)


def _train_to_the_end(work: Work, run: str, words: list[str]) -> None:
    """Train until the phase is over, with schedules that end with it: its first part measures the speed."""
    learner = work.state.policies.setdefault(run, Learner(list(work.plan.stages)))
    if learner.status == "failed":
        learner.status = "waiting"
    if learner.status == "waiting":
        work.read_outcome(run)
    measure_s = max(MEASURE_S, MEASURE_SHARE * work.state.phases[work.phase].planned_s)
    tries = 0
    while learner.status == "waiting" and (work.left_s() > LEAST_S["polish"] or _rate(work, run) is None):
        tries += _rate(work, run) is None
        if tries > MOST_TRIES:
            raise Failed(f"{run} did not learn anything in {MOST_TRIES} tries: see {work.folder / 'logs'}")
        record = work.last_record(run)
        steps, elapsed_s = record.get("global_step") or 0, record.get("elapsed_s") or 0.0
        seconds, schedule = max(work.left_s(), 0.0), []
        measures = elapsed_s < measure_s and seconds > 4 * measure_s
        if measures:
            schedule = ["--anneal-steps", str(FAR)]
        elif elapsed_s:
            schedule = ["--anneal-steps", str(anneal_steps(steps, steps / elapsed_s, seconds))]
        child = work.train(run, [*words, *schedule], seconds)
        while not (ended := work.crew.ended()):
            work.beat()
            # By the run's own clock, which does not count its start.
            if measures and (work.last_record(run).get("elapsed_s") or 0.0) >= measure_s:
                child.stop()
        work.settle(ended[0])
    work.read_progress(run)
    if learner.error:
        raise Failed(f"{run} failed: {learner.error}")


PHASES: dict[str, Callable[[Work], None]] = {
    "explore": explore,
    "specialists": specialists,
    "distil": distil,
    "polish": polish,
    "evaluate": finish,
}
