"""The environment hosts of a run as Ray actors: started, called, watched and replaced. Nothing here waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.cluster.connection import Cluster
from warpzone.cluster.host import Host, HostSettings, Later
from warpzone.cluster.reply import Reply
from warpzone.errors import ClusterError, Error

START_S = 60.0
"""How long a new host may take to make its environments."""
ATTEMPTS = 3
"""How often a host is replaced in a row before the run ends."""
WAIT_SLICE_S = 1.0
"""The longest wait in one call of Ray; between two the head of the cluster is looked at."""

Say = Callable[[str], None]
First = Callable[[int, int, int], tuple[NDArray[np.uint64], Sequence[float] | None]]
"""Seeds and stage weights with which a group of a host begins: host, group and how often it was replaced."""


@dataclass
class Meter:
    """What one host did since the last record."""

    decisions: int = 0
    num_bytes: int = 0
    seconds: float = 0.0
    round_trip_s: float = 0.0
    replies: int = 0


@dataclass
class Slot:
    """One host's place: the actor that fills it now, and what is under way there, by group."""

    index: int
    actor: Any = None
    ready: Any = None
    """Resolves to the name of the actor's machine once it is up."""
    node: str = ""
    replaced: int = 0
    pending: dict[int, Any] = field(default_factory=dict)
    began: dict[int, Any] = field(default_factory=dict)
    """First replies that nobody has taken yet, where a group begins or its host is new."""
    playing: set[int] = field(default_factory=set)
    """Groups whose first reply was taken."""
    sent_at: dict[int, float] = field(default_factory=dict)
    meter: Meter = field(default_factory=Meter)


class Fleet:
    """`hosts` actors with the same settings. A host that dies, fails to answer in time or hangs is replaced.

    Each group may be used by a thread of its own.
    """

    def __init__(
        self, cluster: Cluster, settings: HostSettings, hosts: int, timeout_s: float, first: First, say: Say
    ) -> None:
        self.ray = cluster.ray
        self.cluster, self.settings, self.timeout_s, self.first, self.say = (
            cluster,
            settings,
            timeout_s,
            first,
            say,
        )
        self.slots = [Slot(index) for index in range(hosts)]
        self.episodes_lost = 0
        self._lock = threading.Lock()
        """Held while slots change: by the group that finds a host lost until the new one is there."""
        self._closed = False
        self._since = time.monotonic()
        self._actor = self.ray.remote(Host)
        for slot in self.slots:
            self._start(slot)
        for slot in self.slots:
            self._await_start(slot)

    @property
    def replaced(self) -> int:
        """How often a host was replaced."""
        return sum(slot.replaced for slot in self.slots)

    def send(self, group: int, actions: Sequence[bytes], later: Sequence[list[Later]]) -> None:
        """Start a step of a group on every host, with what is due there before it."""
        with self._lock:
            for slot, chosen, due in zip(self.slots, actions, later, strict=True):
                # A group of a new host has not seen its first observation: there is nothing to act on.
                if group in slot.playing:
                    slot.pending[group] = slot.actor.step.remote(group, chosen, due or None)
                    slot.sent_at[group] = time.perf_counter()

    def receive(self, group: int) -> list[tuple[Reply, bool]]:
        """The reply of every host to what was sent to a group; true where it is the first of a new host instead."""
        self.cluster.refuse_if_gone()
        with self._lock:
            waiting = [slot.pending[group] for slot in self.slots if group in slot.pending]
        began = time.monotonic()
        there = self._all(waiting)
        left_s = max(self.timeout_s - (time.monotonic() - began), 0.1)
        ready = set(waiting) if there else self._wait(waiting, left_s)
        with self._lock:
            return [self._reply(slot, group, ready, there) for slot in self.slots]

    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every host between steps and wait for the results; ClusterError if a host is lost."""
        refs = [
            getattr(slot.actor, method).remote(*given)
            for slot, given in zip(self.slots, arguments, strict=True)
        ]
        ready = self._wait(refs, self.timeout_s)
        try:
            if len(ready) < len(refs):
                raise _Gone(f"silent for {self.timeout_s:g} s")
            return [self._get(ref) for ref in refs]
        except _Gone as gone:
            raise ClusterError(f"An environment host was lost during `{method}` ({gone}).") from None

    def begin(self, group: int) -> list[Reply]:
        """Begin all episodes of a group."""
        for slot in self.slots:
            # The other groups of a host that was replaced meanwhile have begun with it.
            if group not in slot.began:
                self._reset(slot, group)
        return [self._first_reply(slot, group) for slot in self.slots]

    def restore(self, group: int, consoles: Sequence[Sequence[bytes]]) -> list[Reply]:
        """Return a group to what `snapshots` of its hosts gave."""
        replies = [
            Reply.from_bytes(data) for data in self.call("restore", [(group, part) for part in consoles])
        ]
        for slot in self.slots:
            slot.began.pop(group, None)
            slot.playing.add(group)
        return replies

    def metrics(self) -> dict[str, Any]:
        """What the hosts did since the last call."""
        now = time.monotonic()
        took, self._since = max(now - self._since, 1e-9), now
        hosts, meters = [], [slot.meter for slot in self.slots]
        fastest = min((m.seconds / m.replies for m in meters if m.replies), default=0.0)
        for slot, m in zip(self.slots, meters, strict=True):
            replies = max(m.replies, 1)
            hosts.append({
                "node": slot.node, "decisions_per_s": m.decisions / took, "mb_per_s": m.num_bytes / took / 1e6,
                "round_trip_ms": 1e3 * m.round_trip_s / replies, "step_ms": 1e3 * m.seconds / replies,
                "lag_ms": 1e3 * (m.seconds / replies - fastest) if m.replies else None,
                "restarts": slot.replaced,
            })  # fmt: skip
            slot.meter = Meter()
        decisions = sum(m.decisions for m in meters)
        return {
            "hosts": hosts,
            "host_restarts": self.replaced,
            "episodes_lost": self.episodes_lost,
            "bytes_per_decision": sum(m.num_bytes for m in meters) / decisions if decisions else None,
        }

    def close(self) -> None:
        """Let all hosts go."""
        self._closed = True
        for slot in self.slots:
            if slot.actor is not None:
                self.cluster.kill(slot.actor)
                slot.actor = None

    # ---- inside ----

    def _all(self, refs: list[Any]) -> dict[Any, bytes]:
        """All results in one call of Ray, as they are nearly always there in time; nothing if one of them is not."""
        try:
            return dict(zip(refs, self.ray.get(refs, timeout=min(self.timeout_s, WAIT_SLICE_S)), strict=True))
        except self.ray.exceptions.RayError:
            return {}

    def _reply(self, slot: Slot, group: int, ready: set[Any], there: dict[Any, bytes]) -> tuple[Reply, bool]:
        if group in slot.pending:
            ref = slot.pending.pop(group)
            lost = f"silent for {self.timeout_s:g} s"
            if ref in ready:
                try:
                    reply = Reply.from_bytes(there[ref] if there else self._get(ref))
                    self._measure(slot, group, reply)
                    return reply, False
                except _Gone as gone:
                    lost = str(gone)
            self._replace(slot, lost)
        return self._first_reply(slot, group), True

    def _first_reply(self, slot: Slot, group: int) -> Reply:
        """The first observations of a group; a host that is lost on the way is replaced."""
        for _ in range(ATTEMPTS):
            ref = slot.began[group]
            if self._wait([ref], START_S):
                try:
                    first = Reply.from_bytes(self._get(ref))
                    slot.node = self._get(slot.ready)
                    del slot.began[group]
                    slot.playing.add(group)
                    return first
                except _Gone as gone:
                    lost = str(gone)
            else:
                lost = f"not ready after {START_S:g} s"
            self._replace(slot, lost)
        raise ClusterError(
            f"Environment host {slot.index} was lost {ATTEMPTS} times in a row ({lost}): look at the cluster with "
            "`ray status`, then resume the run."
        )

    def _replace(self, slot: Slot, why: str) -> None:
        """Put a new host in the place of a lost one. All its groups begin anew."""
        self.cluster.refuse_if_gone()
        if self._closed:
            raise ClusterError("The environment hosts are closed.")
        self.say(
            f"[cluster][warn] host {slot.index} on {slot.node} is lost ({why}): its episodes start over elsewhere"
        )
        self.cluster.kill(slot.actor)
        slot.replaced += 1
        slot.pending.clear()
        self.episodes_lost += self.settings.num_envs * len(slot.playing)
        slot.playing.clear()
        self._start(slot)
        for group in range(len(self.settings.views)):
            self._reset(slot, group)

    def _reset(self, slot: Slot, group: int) -> None:
        seeds, weights = self.first(slot.index, group, slot.replaced)
        slot.began[group] = slot.actor.reset.remote(group, seeds, weights)

    def _start(self, slot: Slot) -> None:
        threads = self.settings.threads
        # Where nodes have left, the others take their hosts, however crowded they are.
        fits = self.cluster.cpus() >= threads * len(self.slots)
        options = {
            "num_cpus": threads if fits else 0, "scheduling_strategy": "SPREAD", "max_restarts": 0,
            "max_concurrency": len(self.settings.views), "enable_task_events": False,
        }  # fmt: skip
        slot.actor = self._actor.options(**options).remote(self.settings)
        slot.ready = slot.actor.ready.remote()

    def _await_start(self, slot: Slot) -> None:
        for _ in range(ATTEMPTS):
            if not self._wait([slot.ready], START_S):
                raise ClusterError(
                    f"Environment host {slot.index} did not start within {START_S:g} s: see `ray status` for free CPUs."
                )
            try:
                slot.node = self._get(slot.ready)
                return
            except _Gone as gone:
                lost = gone
            self.say(
                f"[cluster][warn] host {slot.index} is lost before its start ({lost}): another one starts"
            )
            slot.replaced += 1
            self._start(slot)
        raise ClusterError(f"Environment host {slot.index} died {ATTEMPTS} times at its start ({lost}).")

    def _measure(self, slot: Slot, group: int, reply: Reply) -> None:
        m = slot.meter
        m.decisions += self.settings.num_envs
        m.num_bytes += reply.num_bytes
        m.seconds += reply.seconds
        m.round_trip_s += time.perf_counter() - slot.sent_at[group]
        m.replies += 1

    def _wait(self, refs: list[Any], limit_s: float) -> set[Any]:
        """Those that are there within the limit."""
        deadline = time.monotonic() + limit_s
        ready: list[Any] = []
        while refs and len(ready) < len(refs):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            slice_s = min(left, WAIT_SLICE_S)
            ready, _ = self.ray.wait(refs, num_returns=len(refs), timeout=slice_s)
            if len(ready) < len(refs):
                self.cluster.refuse_if_gone()
        return set(ready)

    def _get(self, ref: Any) -> Any:
        """A result; _Gone if its host is, and the host's own error where it refused."""
        try:
            return self.ray.get(ref, timeout=self.timeout_s)
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, Error):
                raise type(error.cause)(str(error.cause)) from None
            raise ClusterError(f"An environment host failed: {error.cause!r}") from error
        except self.ray.exceptions.RayError as error:
            raise _Gone(type(error).__name__) from None


class _Gone(Exception):
    """A host died, or what it sent was lost on the way."""
