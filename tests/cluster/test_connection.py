"""Joining and starting a cluster: what is refused, and a start that takes too long."""

from __future__ import annotations

import psutil
import pytest

from warpzone.cluster.connection import connect, import_ray
from warpzone.errors import ConfigError


def test_an_address_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match=r"Nobody answers at 127\.0\.0\.1:9"):
        connect("127.0.0.1:9")
    for address in ("127.0.0.1:99999", "a..b:6379"):
        with pytest.raises(ConfigError, match="Nobody answers at"):
            connect(address)
    with pytest.raises(ConfigError, match="is no cluster"):
        connect("ray://somewhere:10001")
    with pytest.raises(ConfigError, match="is no cluster"):
        connect("somewhere")


@pytest.mark.parametrize("failures", [1, 3])
def test_a_local_cluster_that_does_not_start_in_time_is_started_again(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    ray, tries = import_ray(), 0
    start = ray.init

    def hurried(**settings: object) -> object:
        nonlocal tries
        tries += 1
        # Ray's own limit on the start of its head, so that it really fails half-way.
        monkeypatch.setenv("RAY_gcs_server_port_wait_time_s", "0" if tries <= failures else "60")
        return start(**settings)

    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr(ray, "init", hurried)
    if failures == 3:
        with pytest.raises(ConfigError, match="Ray did not start on this machine in 3 tries: Timed out"):
            connect("local")
    else:
        connect("local").close()
    # On a busy machine, an honest start may take longer than Ray allows, too.
    assert min(failures + 1, 3) <= tries <= 3
    assert not [p for p in psutil.Process().children() if p.name() == "gcs_server"]


def test_without_ray_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpzone.cluster.connection.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'warpzone\[cluster\]'"):
        import_ray()
