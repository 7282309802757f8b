"""Where a run goes on from, and what is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from warpzone.checkpoints.finding import ResumeSource, best_checkpoint, contains, find_resume
from warpzone.checkpoints.fitting import check_fits, fit_weights
from warpzone.checkpoints.keeping import CheckpointKeeper
from warpzone.checkpoints.policy import CheckpointPolicy
from warpzone.checkpoints.saving import load_checkpoint, save_checkpoint, step_name
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.errors import CheckpointError

from .faulty_files import Crash, FaultyFiles

CONFIG = {"model": {"memory": "gru", "channels": [16, 32]}, "env": {"stage": "1-1"}}
MATCHING = {"model": {"memory": "gru", "channels": (16, 32)}, "env": {"stage": "1-1"}}


def save(
    run: Path, name: str, update: int, save_index: int = 0, config: dict[str, object] | None = None
) -> Path:
    meta = CheckpointMeta(
        global_step=update * 10, global_update=update, save_index=save_index, config=config or CONFIG
    )
    return save_checkpoint(run / "checkpoints", name, {"update": update}, meta)


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def found(source: ResumeSource | None) -> tuple[str, str] | None:
    return source and (source.path.stem, source.found_by)


def test_an_empty_run_starts_fresh(tmp_path: Path) -> None:
    assert find_resume(tmp_path / "a", runs_folder=tmp_path, matching=MATCHING) is None


def test_resume_path_wins_over_everything(tmp_path: Path) -> None:
    save(tmp_path / "a", "latest", 9)
    other = save(tmp_path / "b", "latest", 1)
    for asked in (str(other), str(other.with_suffix(".json")), str(tmp_path / "b"), "b"):
        source = find_resume(tmp_path / "a", resume=asked, runs_folder=tmp_path)
        assert source is not None
        assert (source.path, source.found_by) == (other, "--resume")


def test_of_one_save_the_numbered_file_comes_before_latest(tmp_path: Path) -> None:
    policy = CheckpointPolicy(latest_every_updates=1, step_every_updates=2)
    keeper = CheckpointKeeper(tmp_path / "checkpoints", policy)
    for update in (1, 2):
        keeper.save_due(dict, CheckpointMeta(global_update=update, global_step=update))
    assert found(find_resume(tmp_path)) == (step_name(2), "numbered")


def test_a_newer_latest_is_not_given_up_for_an_older_numbered_one(tmp_path: Path) -> None:
    save(tmp_path, step_name(10), 1, save_index=1)
    save(tmp_path, "latest", 5, save_index=2)
    assert found(find_resume(tmp_path)) == ("latest", "latest")


def test_damaged_files_are_passed_over(tmp_path: Path) -> None:
    save(tmp_path, step_name(10), 1, save_index=1)
    for name, index in ((step_name(20), 2), ("latest", 3)):
        damage(save(tmp_path, name, index, save_index=index))
    assert found(find_resume(tmp_path)) == (step_name(10), "numbered")
    assert found(find_resume(tmp_path, resume="latest")) == (step_name(10), "numbered")


def test_a_save_that_was_cut_off_does_not_hide_a_newer_numbered_checkpoint(tmp_path: Path) -> None:
    for fail_at in range(60):
        run = tmp_path / str(fail_at)
        save(run, "latest", 327, save_index=1)
        save(run, step_name(330), 330, save_index=2)
        with suppress(Crash):
            meta = CheckpointMeta(global_update=333, save_index=3)
            save_checkpoint(run / "checkpoints", "latest", {}, meta, files=FaultyFiles(fail_at, "crash"))
        source = find_resume(run)
        assert source is not None
        assert source.meta.global_update in (330, 333)
        assert load_checkpoint(source.path).meta == source.meta


def test_resume_latest_means_latest(tmp_path: Path) -> None:
    save(tmp_path, step_name(10), 1, save_index=2)
    save(tmp_path, "latest", 1, save_index=2)
    assert found(find_resume(tmp_path, resume="latest")) == ("latest", "latest")


def test_what_was_asked_for_must_be_there_and_whole(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no intact checkpoint"):
        find_resume(tmp_path / "a", resume="latest")
    with pytest.raises(CheckpointError, match="There is no checkpoint or run"):
        find_resume(tmp_path / "a", resume="nowhere.pt", runs_folder=tmp_path)
    path = save(tmp_path / "b", "latest", 1)
    damage(path)
    with pytest.raises(CheckpointError, match="damaged"):
        find_resume(tmp_path / "a", resume=str(path))


def test_the_search_takes_the_furthest_match_of_another_run(tmp_path: Path) -> None:
    save(tmp_path / "old" / "nested" / "b", "latest", 5)
    save(tmp_path / "c", "latest", 3)
    save(tmp_path / "d", "latest", 99, config={**CONFIG, "env": {"stage": "1-2"}})
    damage(save(tmp_path / "e", "latest", 50))
    for asked in (None, "latest"):
        source = find_resume(tmp_path / "a", resume=asked, runs_folder=tmp_path, matching=MATCHING)
        assert source is not None
        assert source.meta.global_update == 5
        assert source.found_by == "search"
        assert str(source.path) in str(source)


def test_the_search_looks_at_a_limited_number_of_files(tmp_path: Path) -> None:
    for n in range(20):
        (tmp_path / f"{n:03d}.txt").touch()
    save(tmp_path / "z", "latest", 1)
    assert find_resume(tmp_path / "a", runs_folder=tmp_path, matching=MATCHING, limit_files=20) is None
    assert find_resume(tmp_path / "a", runs_folder=tmp_path, matching=MATCHING, limit_files=22) is not None


def test_the_search_does_not_follow_links(tmp_path: Path) -> None:
    save(tmp_path / "elsewhere" / "b", "latest", 1)
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "link").symlink_to(tmp_path / "elsewhere")
    assert find_resume(runs / "a", runs_folder=runs, matching=MATCHING) is None


def test_a_part_of_a_configuration_is_compared_at_every_depth() -> None:
    assert contains({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}})
    assert not contains({"a": {"b": 1}}, {"a": {"b": 2}})
    assert not contains({"a": 1}, {"a": {"b": 2}})
    assert not contains({}, {"a": None})


def test_best_is_preferred_for_evaluation(tmp_path: Path) -> None:
    save(tmp_path, "latest", 5, save_index=5)
    assert best_checkpoint(tmp_path).stem == "latest"
    save(tmp_path, "best", 2, save_index=2)
    assert best_checkpoint(tmp_path).stem == "best"


def test_a_setting_of_the_network_that_one_side_does_not_have_counts_as_off(tmp_path: Path) -> None:
    source = ResumeSource(tmp_path, CheckpointMeta(architecture={"hidden": 8, "extra_dim": 0}), "search")
    check_fits(source, architecture={"hidden": 8, "dropout": 0.0}, rom_sha256=None)
    with pytest.raises(CheckpointError, match="dropout is None there"):
        check_fits(source, architecture={"hidden": 8, "dropout": 0.5}, rom_sha256=None)


@pytest.mark.parametrize("names_stages", [True, False])
def test_value_heads_of_other_stages_are_refused(names_stages: bool, tmp_path: Path) -> None:
    architecture = {"value_heads": 2} | ({"value_stages": ["1-1", "1-2"]} if names_stages else {})
    meta = CheckpointMeta(architecture=architecture, config={"stage": {"stages": "1-1,1-2"}})
    source = ResumeSource(tmp_path, meta, "search")
    check_fits(source, architecture={"value_heads": 2, "value_stages": ["1-1", "1-2"]}, rom_sha256=None)
    with pytest.raises(CheckpointError, match="value_stages"):
        check_fits(source, architecture={"value_heads": 2, "value_stages": ["1-1", "4-2"]}, rom_sha256=None)


def test_another_architecture_or_rom_is_refused_in_one_sentence(tmp_path: Path) -> None:
    meta = CheckpointMeta(architecture={"memory": "gru", "sizes": [1, 2]}, rom_sha256="a" * 64)
    source = ResumeSource(tmp_path / "latest.pt", meta, "latest")
    check_fits(source, architecture={"memory": "gru", "sizes": (1, 2)}, rom_sha256="a" * 64)
    with pytest.raises(
        CheckpointError, match=r"another architecture .*memory is 'gru' there and 'lstm' here"
    ):
        check_fits(source, architecture={"memory": "lstm", "sizes": (1, 2)}, rom_sha256="a" * 64)
    with pytest.raises(CheckpointError, match="another ROM"):
        check_fits(source, architecture={"memory": "gru", "sizes": (1, 2)}, rom_sha256="b" * 64)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, "latest", 1)
    sidecar = path.with_suffix(".json")
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), "schema_version": 99}))
    with pytest.raises(CheckpointError, match="schema version 99"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    "layout",
    [
        {"global_step": 512, "global_update": 8, "num_envs": 4},
        {"save_state": {"global_step": 512, "global_update": 8}, "vector_env": {"num_envs": 4}},
        {"global_step": 512, "global_update": 8, "config": {"num_envs": 4}},
    ],
)
def test_the_seed_systems_layout_is_read(tmp_path: Path, layout: dict[str, object]) -> None:
    path = tmp_path / "a3c_world1_stage1_0000008.pt"
    torch.save({"model": {"w": torch.ones(2)}}, path)
    path.with_suffix(".json").write_text(json.dumps(layout))
    checkpoint = load_checkpoint(path)
    assert (checkpoint.meta.global_step, checkpoint.meta.global_update) == (512, 8)
    assert "num_envs" in json.dumps(checkpoint.meta.config)
    assert checkpoint.state["model"]["w"].tolist() == [1, 1]


def test_compiled_and_plain_weights_load_into_each_other() -> None:
    plain = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    whole = {f"_orig_mod.{k}": v for k, v in plain.state_dict().items()}
    inner = {k.replace("0.", "0._orig_mod.", 1): v for k, v in plain.state_dict().items()}
    for saved in (whole, inner):
        fit = fit_weights(saved, plain.state_dict())
        assert (fit.missing, fit.unexpected) == ((), ())
        assert fit.renamed > 0
        plain.load_state_dict(fit.weights)
    for compiled in (whole, inner):
        assert fit_weights(plain.state_dict(), compiled).weights.keys() == compiled.keys()


def test_small_differences_are_reported_and_loaded() -> None:
    model = torch.nn.Linear(2, 3).state_dict()
    saved = {**model, "old_head": torch.zeros(1)}
    wanted = {**model, "new_head": torch.zeros(1)}
    fit = fit_weights(saved, wanted)
    assert fit.missing == ("new_head",)
    assert fit.unexpected == ("old_head",)
    assert fit.weights.keys() == {"weight", "bias"}
    report = "\n".join(fit.report())
    assert "new_head" in report
    assert "old_head" in report


def test_other_shapes_are_refused_with_both_shapes() -> None:
    with pytest.raises(CheckpointError, match=r"weight is \[3, 2\] there and \[4, 2\] here"):
        fit_weights(torch.nn.Linear(2, 3).state_dict(), torch.nn.Linear(2, 4).state_dict())
    with pytest.raises(CheckpointError, match="0 of 2 tensors fit"):
        fit_weights({"x": torch.zeros(1)}, torch.nn.Linear(2, 4).state_dict())


def test_a_name_that_is_there_twice_is_refused() -> None:
    model = torch.nn.Linear(2, 3).state_dict()
    with pytest.raises(CheckpointError, match="twice"):
        fit_weights({**model, "_orig_mod.weight": model["weight"]}, model)
