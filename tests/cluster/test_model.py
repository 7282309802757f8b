"""The model of a run with hosts: whichever station is slowest sets the pace."""

from __future__ import annotations

import pytest

from warpzone.cluster.model import Costs, predict


def test_on_shared_cores_all_work_adds_up() -> None:
    costs = Costs(decision_us=40, pack_us=3, unpack_us=3, act_us=4, call_cpu_us=1000)
    found = predict(costs, cores=2, hosts=2, envs=400, gbit_per_s=10, shared=True)
    # 200 decisions of 50 us and two calls of 1,000 us, on two cores.
    assert found.decisions_per_s == pytest.approx(200 / 6e-3)
    assert found.busiest == "cores"
    apart = predict(costs, cores=2, hosts=2, envs=400, gbit_per_s=10)
    assert apart.decisions_per_s > found.decisions_per_s


def test_cores_set_the_pace_until_the_network_or_the_learner_does() -> None:
    costs = Costs(call_us=100)
    few = predict(costs, cores=8, hosts=1, envs=1024, gbit_per_s=10)
    assert few.busiest == "hosts"
    assert few.decisions_per_s == pytest.approx(8 / 43e-6, rel=0.02)
    many = predict(costs, cores=64, hosts=4, envs=4096, gbit_per_s=10)
    assert many.busiest == "learner"
    narrow = predict(costs, cores=160, hosts=10, envs=10240, gbit_per_s=1)
    assert narrow.busiest == "network"
    assert narrow.decisions_per_s == pytest.approx(1e9 / 8 / costs.bytes_per_decision, rel=0.02)
    assert narrow.gbit_per_s == pytest.approx(1, rel=0.02)


def test_more_environments_on_a_host_hide_the_calls() -> None:
    small = predict(Costs(), cores=16, hosts=16, envs=16 * 16, gbit_per_s=10)
    large = predict(Costs(), cores=16, hosts=16, envs=256 * 16, gbit_per_s=10)
    assert large.decisions_per_s > 2 * small.decisions_per_s
