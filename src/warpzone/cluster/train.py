"""Training wherever the settings say: in this process, with environments on a cluster, with several learners."""

from __future__ import annotations

from warpzone.cluster.ranks import learners, placed, train_together
from warpzone.learn.ranks import ALONE
from warpzone.run import loop
from warpzone.run.config import TrainConfig
from warpzone.run.log import Display
from warpzone.run.loop import Outcome


def train(config: TrainConfig, display: Display) -> Outcome:
    """Train until a limit, the target or a signal; leave the run so that it can be resumed."""
    size = learners(config)
    if size > 1:
        return train_together(config, display, size)
    with placed(config, ALONE) as placement:
        return loop.train(config, display, placement)
