"""How fast a run with hosts will be: a small simulation of hosts, network and learner.

Two groups of environments take turns. A step of a group passes through three stations, each of which does one step at a
time: the hosts emulate and compress, the network carries the frames, the learner unpacks them and acts. Whichever is
slowest sets the pace; with two groups in flight the others are hidden behind it. Where hosts and learner share one
machine, they also share its cores: then nothing is hidden, and the sum of all work sets the pace.
"""

from __future__ import annotations

from dataclasses import dataclass

GROUPS = 2
STEPS = 200


@dataclass(frozen=True)
class Costs:
    """What one decision costs, on one core unless said otherwise."""

    decision_us: float = 40.0
    """Emulation of a decision."""
    pack_us: float = 3.0
    """Compression of its frame."""
    unpack_us: float = 3.0
    """Decompression at the learner."""
    act_us: float = 1.0
    """The policy's forward pass for one environment, on the learner's device."""
    learn_us: float = 0.0
    """Learning from a decision, where it does not overlap with collecting."""
    call_us: float = 1000.0
    """A call of Ray and its reply, once for each host and step; the learner handles them one after the other."""
    call_cpu_us: float = 1900.0
    """The work of a call and its reply in all processes. Fitted to the two points of 2026-11-19 with LZ4."""
    bytes_per_decision: float = 1200.0


@dataclass(frozen=True)
class Prediction:
    decisions_per_s: float
    busiest: str
    """What sets the pace: hosts, network or learner, or the cores that they share."""
    lag_ms: float
    """From an observation at the host to the action that follows it there."""
    gbit_per_s: float
    """What goes over the learner's link."""


def predict(
    costs: Costs,
    *,
    cores: int,
    hosts: int,
    envs: int,
    gbit_per_s: float,
    learner_cores: int = 1,
    shared: bool = False,
) -> Prediction:
    """Simulate a run: `cores` are those of all hosts together, `envs` all environments. If they are `shared`, the
    learner has none of its own."""
    batch = envs / GROUPS
    stations = {
        "hosts": batch * (costs.decision_us + costs.pack_us) / cores * 1e-6,
        "network": batch * costs.bytes_per_decision * 8 / (gbit_per_s * 1e9),
        "learner": hosts * costs.call_us * 1e-6
        + batch * (costs.unpack_us / learner_cores + costs.act_us + costs.learn_us) * 1e-6,
    }
    if shared:
        work = costs.decision_us + costs.pack_us + costs.unpack_us + costs.act_us + costs.learn_us
        stations = {"cores": (batch * work + hosts * costs.call_cpu_us) / cores * 1e-6}
    free = dict.fromkeys(stations, 0.0)
    ready = [0.0] * GROUPS
    for _ in range(STEPS):
        for group in range(GROUPS):
            for station, takes in stations.items():
                ready[group] = free[station] = max(ready[group], free[station]) + takes
    speed = STEPS * envs / max(ready)
    return Prediction(
        decisions_per_s=speed,
        busiest=max(stations, key=lambda name: stations[name]),
        lag_ms=1e3 * envs / speed,
        gbit_per_s=speed * costs.bytes_per_decision * 8 / 1e9,
    )
