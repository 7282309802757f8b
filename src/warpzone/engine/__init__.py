"""The compiled console. `Machine` is one; the environments run many of them through `Pool`."""

from warpzone.engine._native import FIELDS, PALETTE, FramePacker, Machine, Packer, Pool, shape_rewards

__all__ = ["FIELDS", "PALETTE", "FramePacker", "Machine", "Packer", "Pool", "shape_rewards"]
