"""What becomes of trainings that fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.run.small_runs import small_run
from warpzone.api import load_agent
from warpzone.checkpoints.saving import save_checkpoint
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.master import card, phases, verdict
from warpzone.master.card import whole_game
from warpzone.master.opening import open_state
from warpzone.master.phases import _after_failure, start_turn
from warpzone.master.plan import MasterConfig, make_plan
from warpzone.master.state import AGENT, Learner
from warpzone.master.work import Stopped, Work
from warpzone.starts.trails import Trail, further_trails, load_trail, save_trail


def work_in(folder: Path, cores: int = 6, **settings: object) -> tuple[Work, list[str]]:
    given = {"stages": "1-1,1-2,1-3", **settings}
    config = MasterConfig(minutes=10, preset="cpu", out=folder, **given)  # type: ignore[arg-type]
    plan, said = make_plan(config, cores=cores), []  # type: ignore[var-annotated]
    state = open_state(config, plan, "abc")
    return Work(config, plan, state, lambda: False, lambda state: None, said.append), said


def test_a_training_that_fails_is_marked_with_its_last_sentence(tmp_path: Path) -> None:
    work, said = work_in(tmp_path, train_flags="--num-envs 0")
    work.enter("specialists")
    start_turn(work, "1-2")
    assert work.state.rounds == [pytest.approx(0.58 * 600, rel=0.01)]
    while not (ended := work.crew.ended()):
        work.beat()
    work.settle(ended[0])
    failed = work.state.specialists["1-2"]
    assert failed.status == "failed"
    assert "--num-envs must be at least 1, not 0." in failed.error
    assert said[-1].startswith("[master] specialist-1-2 failed (exit code 2): ")
    assert work.state.commands[0]["exit_code"] == 2
    assert work.state.phases["specialists"].spent_s > 0
    assert failed.spent_s > 0


def test_a_later_turn_is_as_long_as_a_stage_is_short_of_the_target(tmp_path: Path) -> None:
    work, _ = work_in(tmp_path, cores=2, train_flags="--num-envs 0")
    state = work.state
    state.rounds = [100.0]
    for stage, rate in (("1-1", 0.95), ("1-2", 0.45), ("1-3", 0.0)):
        state.specialists[stage].turns, state.specialists[stage].clear_rate = 1, {stage: rate}
    work.enter("specialists")
    left_s = work.left_s()
    start_turn(work, "1-2")
    work.crew.stop_all()
    assert state.rounds == [100.0, pytest.approx(left_s / 1.6, rel=0.01)]
    assert state.specialists["1-2"].turn_left_s == pytest.approx(left_s * 0.5 / 1.6, rel=0.01)


def test_a_specialist_is_as_good_as_its_best_weights(tmp_path: Path) -> None:
    work, _ = work_in(tmp_path, train_flags="--num-envs 0")
    folder = tmp_path / "specialist-1-2" / "checkpoints"
    for name, rate in (("best", 0.7), ("latest", 0.1)):
        save_checkpoint(folder, name, {}, CheckpointMeta(clear_rate={"1-2": rate}))
    work.enter("specialists")
    start_turn(work, "1-2")
    while not (ended := work.crew.ended()):
        work.beat()
    work.settle(ended[0])
    assert work.state.specialists["1-2"].clear_rate == {"1-2": 0.7}


def test_out_of_memory_one_fewer_trains_at_once_and_it_is_tried_again(tmp_path: Path) -> None:
    work, said = work_in(tmp_path)
    one = work.state.specialists["1-1"]
    assert work.state.parallel == 3
    for left, why in ((2, (2, "The configuration does not fit into memory: lower ...")), (1, (-9, ""))):
        one.status, one.error = "failed", "memory"
        _after_failure(work, "specialist-1-1", *why)
        assert (work.state.parallel, one.status, one.error) == (left, "waiting", "")
    assert len(said) == 2
    one.status = "failed"
    _after_failure(work, "specialist-1-1", 2, "CUDA error: out of memory")
    assert one.status == "failed"
    work.state.parallel = 3
    _after_failure(work, "specialist-1-1", 1, "ValueError: something else")
    assert (work.state.parallel, one.status) == (3, "failed")


@pytest.mark.parametrize(("parallel", "stays"), [(2, True), (1, False)])
def test_a_maze_trains_without_a_break_where_others_have_places_too(
    tmp_path: Path, parallel: int, stays: bool
) -> None:
    work, _ = work_in(tmp_path, stages="1-1,1-2,4-4", parallel=parallel, train_flags="--num-envs 0")
    work.enter("specialists")
    start_turn(work, "4-4")
    start_turn(work, "1-1")
    whole = 0.58 * 600
    assert work.state.specialists["1-1"].turn_left_s == pytest.approx(
        whole / 2 if stays else whole / 3, rel=0.02
    )
    assert work.state.specialists["4-4"].turn_left_s == pytest.approx(whole if stays else whole / 3, rel=0.02)
    assert phases.staying(work) == (["4-4"] if stays else [])
    work.state.specialists["4-4"].status = "done"
    assert phases.staying(work) == []
    work.stop()


def test_a_turn_to_the_end_of_the_phase_ends_its_schedules_with_it(tmp_path: Path) -> None:
    work, _ = work_in(tmp_path)
    work.enter("specialists")
    words: dict[str, list[str]] = {}
    work.train = lambda run, argv, seconds: words.setdefault(run, argv)  # type: ignore[assignment, method-assign]
    for stage in ("1-1", "1-2"):
        (tmp_path / f"specialist-{stage}").mkdir()
        record = {"global_step": 1_000_000, "env_steps_per_sec": 5000.0}
        (tmp_path / f"specialist-{stage}" / "metrics.jsonl").write_text(json.dumps(record) + "\n")
    work.state.specialists["1-1"].turn_left_s = work.left_s() + 1
    work.state.specialists["1-2"].turn_left_s = work.left_s() / 2
    work.state.specialists["1-3"].turn_left_s = work.left_s() + 1
    for stage in ("1-1", "1-2", "1-3"):
        start_turn(work, stage)
    flag = words["specialist-1-1"].index("--anneal-steps")
    assert float(words["specialist-1-1"][flag + 1]) == pytest.approx(1e6 + 5000 * work.left_s(), rel=0.01)
    # There is another turn to come, or nothing is known about its speed.
    assert "--anneal-steps" not in words["specialist-1-2"] + words["specialist-1-3"]


def test_an_interrupted_turn_is_resumed_with_what_is_left_of_it(tmp_path: Path) -> None:
    work, _ = work_in(tmp_path)
    work.enter("specialists")
    stops = iter([False, True])
    work._should_stop = lambda: next(stops)
    start_turn(work, "1-3")
    whole = work.state.specialists["1-3"].turn_left_s
    work.beat()
    with pytest.raises(Stopped):
        work.beat()
    work.stop()
    one = open_state(work.config, work.plan, "abc").specialists["1-3"]
    assert one.status == "waiting"
    assert one.turns == 1
    assert one.turn_left_s == pytest.approx(whole - one.spent_s)
    assert one.spent_s > 0


def test_commands_run_so_many_at_a_time_and_are_remembered_from_their_start(tmp_path: Path) -> None:
    work, _ = work_in(tmp_path)
    work.enter("evaluate")
    over = work.run_all({"version": ["--version"], "nonsense": ["dance", ""]}, 2, limited=False)
    assert {name: child.process.returncode for name, child in over.items()} == {"version": 0, "nonsense": 2}
    remembered = {one["command"]: one["exit_code"] for one in work.state.commands}
    assert remembered == {"warpzone --version": 0, "warpzone dance ''": 2}  # as a shell takes them


def test_the_longest_searches_have_several_seeds_on_many_cores_and_the_shortest_trail_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, _ = work_in(tmp_path, cores=16, stages="1-1,4-4", seed=5)
    lengths, searched = {"4-4": {"5": 90, "6": 70, "7": 80}, "1-1": {"5": 30}}, []

    def found_at_once(jobs: dict[str, list[str]], at_once: int, *, limited: bool) -> None:
        for words in jobs.values():
            flags = dict(zip(words[1::2], words[2::2], strict=True))
            stage, seed = flags["--stages"], flags["--seed"]
            searched.append((stage, seed))
            length = lengths[stage][seed]
            save_trail(Trail(stage, "", 4, length, f"RIGHT:{4 * length}"), Path(flags["--out"]))

    monkeypatch.setattr(work, "run_all", found_at_once)
    work.enter("explore")
    phases.explore(work)
    assert searched == [("4-4", "5"), ("1-1", "5"), ("4-4", "6"), ("4-4", "7")]  # each stage once, then more
    kept = [load_trail(tmp_path / "trails", stage) for stage in ("1-1", "4-4")]
    assert [trail.decisions if trail else 0 for trail in kept] == [30, 70]
    others = further_trails(str(tmp_path / "trails"), kept[1], "")  # type: ignore[arg-type]
    assert sorted(trail.decisions for trail in others) == [80, 90]
    phases.explore(work)  # nothing is missing
    assert len(searched) == 4


@pytest.mark.slow
def test_the_first_part_of_a_phase_measures_the_speed_and_the_rest_anneals_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phases, "MEASURE_S", 2.0)
    monkeypatch.setattr(phases, "MEASURE_SHARE", 0.0)
    tiny = "--preset cpu --num-envs 8 --rollout-steps 16 --minibatch-size 64 --log-interval 1 --plain"
    work, _ = work_in(tmp_path, train_flags=f"{tiny} --torch-threads 1 --env-threads 1 --no-record-video")

    def hurry() -> bool:
        # The phase is as good as over once its second training has begun.
        if len(work.state.commands) > 1:
            work.state.phases["explore"].spent_s = work.plan.ends_at("distil") - 3
            for child in work.crew.children.values():
                child.seconds = 0.0
        return False

    work._should_stop = hurry
    work.enter("distil")
    phases._train_to_the_end(work, "student", ["--stages", "1-1"])
    lengths = [int(one["command"].split("--anneal-steps ")[1].split()[0]) for one in work.state.commands]
    assert lengths[0] == phases.FAR
    assert all(0 < length < 10_000_000 for length in lengths[1:])
    assert len(lengths) >= 2
    assert work.state.policies["student"].decisions > 0


def test_stages_and_whole_games_are_played_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_run(tmp_path, "--run-name", "student", "--total-updates", "1", "--stages", "1-1,1-2,1-3")
    monkeypatch.setattr(card, "ALL_STAGES", ("1-1", "1-2", "1-3"))
    work, _ = work_in(tmp_path, episodes=1)
    work.enter("evaluate")
    sharper = f"student{card.SHARPER}"
    card.evaluate(work, [sharper])
    stages, randomly, games = work.state.commands
    assert games["began_unix_s"] < stages["began_unix_s"] + stages["seconds"]
    assert "--random-start 1" in randomly["command"]
    assert work.state.evaluations[sharper].keys() == {"sampled", "greedy", "sticky", "random start"}
    assert whole_game(work, sharper).keys() == {"sampled", "greedy", "sticky"}
    assert len(work.state.commands) == 3
    card.evaluate(work, ["student"])  # which is seldom the best
    assert not any("--stages game" in told["command"] for told in work.state.commands[3:])
    assert whole_game(work, "student").keys() == {"sampled", "greedy", "sticky"}


def test_the_best_policy_is_also_tried_with_less_randomness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_run(tmp_path, "--run-name", "student", "--total-updates", "1", "--stages", "1-1,1-2,1-3")
    work, _ = work_in(tmp_path, episodes=1)
    work.state.policies["student"] = Learner(["1-1", "1-2", "1-3"])
    work.enter("evaluate")
    rates = {"student": 0.5, "student/sharper": 0.6}

    def play(work: Work, jobs: dict[str, list[str]]) -> None:
        for name in {job.removesuffix("-random-start") for job in jobs}:
            folder = work.folder / name.removeprefix("eval-").replace("-", "/")
            row = {"stage": "1-1", "clear_rate": rates[str(folder.relative_to(work.folder))]}
            document = json.dumps({"results": {mode: [row] for mode in ("sampled", "sticky")}})
            for file in (*card.RESULTS, card.RANDOM_FILE):
                (folder / file).write_text(document)

    monkeypatch.setattr(card, "_eval", play)
    monkeypatch.setattr(verdict, "mean_rate", lambda found: found["sampled"]["1-1"]["clear_rate"])
    card.finish(work)
    assert work.state.chosen == "student/sharper"
    assert json.loads((tmp_path / "agent.json").read_text())["temperature"] == 0.5
    plain, sharp = (load_agent(tmp_path / path) for path in ("student/agent.safetensors", AGENT))
    assert (plain.temperature, sharp.temperature) == (1.0, 0.5)
    assert torch.equal(sharp.policy.logits.weight, plain.policy.logits.weight)


def test_whole_games_that_were_played_before_a_stop_are_not_played_again(tmp_path: Path) -> None:
    work, _ = work_in(tmp_path)
    told = {"games": 2, "finished": 1, "each": [{}, {}]}
    (work.folder / "polished").mkdir()
    (work.folder / "polished" / "game.json").write_text(json.dumps({"game": {"sampled": told}}))
    assert whole_game(work, "polished") == {"sampled": {"games": 2, "finished": 1}}
    assert work.state.commands == []


def test_a_specialist_of_which_only_its_best_weights_are_left_begins_with_them(tmp_path: Path) -> None:
    tiny = "--num-envs 8 --rollout-steps 16 --minibatch-size 64 --log-interval 1 --torch-threads 1"
    work, _ = work_in(tmp_path, train_flags=f"{tiny} --total-updates 3")
    assert "--begin-with" not in phases.specialist_words(work, "1-1", 1)
    small_run(tmp_path, "--run-name", "specialist-1-1", "--total-updates", "2", "--action-type", "complex")
    assert "--begin-with" not in phases.specialist_words(work, "1-1", 1)
    checkpoints = tmp_path / "specialist-1-1" / "checkpoints"
    best = max(checkpoints.glob("*.pt")).rename(checkpoints / "best.pt")
    best.with_suffix(".json").write_bytes(max(checkpoints.glob("*.json")).read_bytes())
    for path in checkpoints.iterdir():
        if path.stem != "best":
            path.unlink()
    work.enter("specialists")
    start_turn(work, "1-1")
    while not (ended := work.crew.ended()):
        work.beat()
    work.settle(ended[0])
    assert work.state.specialists["1-1"].error == ""
    assert f"--begin-with {best} --warmup-updates 20" in work.state.commands[-1]["command"]
    assert f"starting from the weights of {best}" in ended[0].log.read_text()
