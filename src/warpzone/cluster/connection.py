"""The connection to a Ray cluster, and that every node of it plays the same game."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import psutil

from warpzone.cluster.host import identity
from warpzone.errors import ConfigError, Error, HeadLost

ANSWER_S = 5.0
"""How long an address has to answer."""
NODES_S = 60.0
"""How long the nodes have to say what is installed there."""
HEAD_EVERY_S, HEAD_MISSES = 1.0, 5
"""How often the head is looked at, and how many times in a row nobody may listen there."""
HEAD_SILENT_S = 40.0
"""How long the head may name no node that is up. Ray itself ends the process after a minute without its head."""
SHUTDOWN_S = 10.0
LOCAL_STARTS = 3
"""How often a local cluster is started before that is an error: Ray gives its processes half a minute, which is too
little on a machine that is busy."""
LOCAL_STORE_BYTES = 256 << 20
"""Shared memory of a local cluster; a step of 1,000 environments takes a megabyte or two of it."""
INLINE_BYTES = 8 << 20
"""Replies up to this size come with Ray's answer to the call: its object store takes some milliseconds for each."""
QUIET = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}


class Cluster:
    """A connected Ray cluster."""

    def __init__(self, ray: Any, address: str) -> None:
        self.ray = ray
        self.address = address
        """Of the head, as host:port."""
        self._gone = threading.Event()
        self._closing = threading.Event()
        self._heard_at = time.monotonic()
        for name, work in {"cluster-head": self._watch_head, "cluster-nodes": self._ask_head}.items():
            threading.Thread(target=work, name=name, daemon=True).start()

    def nodes(self) -> list[Mapping[str, Any]]:
        """The nodes that are up."""
        return [node for node in self.ray.nodes() if node["Alive"]]

    def cpus(self) -> int:
        """CPUs of all nodes, free or not."""
        return int(sum(node["Resources"].get("CPU", 0) for node in self.nodes()))

    def kill(self, actor: Any) -> None:
        """End an actor at once; it may be gone already."""
        if not self._gone.is_set():
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.kill(actor)

    def refuse_if_gone(self) -> None:
        """Raise HeadLost if the head no longer answers."""
        if self._gone.is_set():
            raise HeadLost(
                f"The head of the Ray cluster at {self.address} is gone: start the cluster again and resume the run."
            )

    def close(self) -> None:
        """Disconnect, and end a local cluster."""
        self._closing.set()
        # Ray waits for a head that is gone.
        ending = threading.Thread(target=self.ray.shutdown, name="cluster-shutdown", daemon=True)
        ending.start()
        ending.join(SHUTDOWN_S)

    def _watch_head(self) -> None:
        misses = 0
        while not self._closing.wait(HEAD_EVERY_S):
            misses = 0 if answers(self.address, HEAD_EVERY_S) else misses + 1
            if misses >= HEAD_MISSES or time.monotonic() - self._heard_at > HEAD_SILENT_S:
                self._gone.set()
                return

    def _ask_head(self) -> None:
        # In a thread of its own: a head that dies or hangs while it is asked never returns.
        while not self._closing.wait(HEAD_EVERY_S):
            with contextlib.suppress(RuntimeError, ConnectionError, self.ray.exceptions.RayError):
                if self.nodes():
                    self._heard_at = time.monotonic()


@contextmanager
def connected(address: str, local_cpus: int = 1) -> Iterator[Cluster]:
    """A connection to the cluster at `address`: local (one for this process only), auto (the one that runs on this
    machine) or host:port of its head. Every node is checked before anything starts."""
    cluster = connect(address, local_cpus)
    try:
        yield cluster
    finally:
        cluster.close()


def connect(address: str, local_cpus: int = 1) -> Cluster:
    ray = import_ray()
    if address == "local":
        _start(ray, local_cpus)
    else:
        if address != "auto":
            check_address(address)
        try:
            ray.init(address=address, **QUIET)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConfigError(_why_not(address, error)) from None
    return Cluster(ray, ray.get_runtime_context().gcs_address)


def _start(ray: Any, cpus: int) -> None:
    for left in reversed(range(LOCAL_STARTS)):
        before = set(psutil.Process().children())
        try:
            ray.init(
                address="local",  # also where another cluster runs on this machine
                num_cpus=cpus,
                num_gpus=0,
                include_dashboard=False,
                object_store_memory=LOCAL_STORE_BYTES,
                **QUIET,
            )
            return
        except Exception as error:  # Ray raises it as it is: "The current node timed out during startup."
            left_over = set(psutil.Process().children()) - before  # Ray forgets those of a failed start
            for process in left_over:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left_over, ANSWER_S)
            if not left:
                why = " ".join(str(error).split())[:300]
                raise ConfigError(
                    f"Ray did not start on this machine in {LOCAL_STARTS} tries: {why}"
                ) from None


def import_ray() -> Any:
    """Ray, set up to be quiet and to listen on this machine only; a ConfigError without it."""
    if find_spec("ray") is None:
        raise ConfigError("--cluster needs Ray: pip install 'warpzone[cluster]'.")
    # Before the import. The second makes a cluster that we start listen on 127.0.0.1 alone. By default, Ray's workers
    # give way to everything else, and so would hosts to a learner that only waits for its GPU. One that others started
    # is not changed by the last three.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_max_direct_call_object_size", str(INLINE_BYTES))
    os.environ.setdefault("RAY_worker_niceness", str(niceness()))
    import ray

    return ray


def niceness() -> int:
    """How much this process gives way to others; 0 where systems do not say."""
    return os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else 0


def check_address(address: str) -> None:
    """Refuse what is no address, and one that nobody answers at."""
    host, _, port = address.rpartition(":")
    if address.startswith("ray://") or not host or not port.isdecimal():
        raise ConfigError(f"{address!r} is no cluster: use local, auto or HEAD:PORT, such as 10.0.0.5:6379.")
    if not answers(address, ANSWER_S):
        raise ConfigError(
            f"Nobody answers at {address}: start a cluster with `ray start --head --port {port}`."
        )


def answers(address: str, limit_s: float) -> bool:
    """Whether something listens there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), limit_s).close()
    except (OSError, UnicodeError, OverflowError):  # also what is no name of a host, or no port
        return False
    return True


def check_nodes(cluster: Cluster, rom: str = "") -> None:
    """Raise ConfigError if a node has other versions, another ROM or another engine than this machine."""
    own, asked = identity(rom), [(node, ask(cluster, node, identity, rom)) for node in cluster.nodes()]
    for node, ref in asked:
        if differs := different(own, answer(cluster, node, ref)):
            raise ConfigError(f"Node {node['NodeManagerAddress']} has {differs}: install the same there.")


def different(own: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """What a node has otherwise than this machine, in words."""
    return ", ".join(
        f"another {what} ({theirs.get(what)}, here {value})"
        for what, value in own.items()
        if theirs.get(what) != value
    )


def ask(cluster: Cluster, node: Mapping[str, Any], function: Callable[..., Any], *given: Any) -> Any:
    """Call a function on a node; take what it returns by `answer`."""
    ray = cluster.ray
    there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    return ray.remote(function).options(num_cpus=0, max_retries=0, scheduling_strategy=there).remote(*given)


def answer(cluster: Cluster, node: Mapping[str, Any], ref: Any) -> Any:
    """What a node answers, or a ConfigError that says why it can't."""
    ray, name = cluster.ray, node["NodeManagerAddress"]
    try:
        return ray.get(ref, timeout=NODES_S)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Error):
            raise ConfigError(f"Node {name}: {error.cause}") from None
        raise ConfigError(f"Node {name} can't run Warpzone ({error.cause!r}): install it there.") from None
    except ray.exceptions.RayError as error:
        raise ConfigError(f"Node {name} does not answer ({type(error).__name__}).") from None


def _why_not(address: str, error: Exception) -> str:
    if "mismatch" in str(error).lower():
        return f"The cluster has another version of Ray or Python: {' '.join(str(error).split())[:300]}"
    if address == "auto":
        return (
            "No Ray cluster runs on this machine: start one with `ray start --head`, or use --cluster local."
        )
    return f"Can't join the cluster at {address}: {' '.join(str(error).split())[:300]}"
