"""What a host sends after a reset or a step. Ray carries bytes as they are, which is faster than anything pickled."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone.engine import FIELDS, Packer

HEADER = Struct("<d5I")
"""Seconds, environments, ended episodes, then how many bytes frames, telemetry and last frames have. They follow in
this order, and after them what is not compressed."""


class TelemetryPacker:
    """Compresses the telemetry [fields, N] of a group: all lowest bytes first, and so on, as the higher ones are mostly
    0."""

    def __init__(self, num_envs: int) -> None:
        self._bytes = np.empty((4, len(FIELDS), num_envs), np.uint8)
        self._packer = Packer(1, self._bytes.size, num_envs)

    def pack(self, telemetry: NDArray[np.int32]) -> bytes:
        self._bytes[:] = np.moveaxis(
            telemetry.astype("<i4").view(np.uint8).reshape(*telemetry.shape, 4), 2, 0
        )
        return self._packer.pack(self._bytes)

    def unpack(self, packed: bytes | memoryview) -> NDArray[np.int32]:
        self._packer.unpack(packed, self._bytes)
        return np.ascontiguousarray(np.moveaxis(self._bytes, 0, 2)).view("<i4")[..., 0]


class Ended(NamedTuple):
    """The last moments of the episodes that ended in a step."""

    rows: NDArray[np.int64]
    frames: bytes | memoryview
    telemetry: NDArray[np.int32]


class Reply(NamedTuple):
    """The results of a group of one host. Frames [N, C, H, W] and telemetry are compressed."""

    frames: bytes | memoryview
    telemetry: bytes | memoryview
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    ended: Ended | None
    seconds: float
    """Emulation, with the compression of its frames, without waiting."""

    @property
    def num_bytes(self) -> int:
        """Bytes of frames and telemetry."""
        last = 0 if self.ended is None else len(self.ended.frames) + self.ended.telemetry.nbytes
        return len(self.frames) + len(self.telemetry) + last

    def to_bytes(self) -> bytes:
        """The whole reply; `from_bytes` reads it."""
        rows, last, last_telemetry = self.ended or Ended(
            np.empty(0, np.int64), b"", np.empty((len(FIELDS), 0), np.int32)
        )
        sizes = len(self.frames), len(self.telemetry), len(last)
        header = HEADER.pack(self.seconds, len(self.terminated), len(rows), *sizes)
        flags = self.terminated.tobytes(), self.truncated.tobytes()
        ended = rows.astype("<i8").tobytes(), last_telemetry.astype("<i4").tobytes()
        return b"".join([header, self.frames, self.telemetry, last, *flags, *ended])

    @classmethod
    def from_bytes(cls, data: bytes) -> Reply:
        seconds, n, num_ended, *sizes = HEADER.unpack_from(data)
        at, compressed, view = HEADER.size, [], memoryview(data)
        for size in sizes:
            compressed.append(view[at : at + size])
            at += size
        frames, telemetry, last = compressed
        terminated, truncated = np.frombuffer(data, np.bool_, 2 * n, at).reshape(2, n)
        ended = None
        if num_ended:
            at += 2 * n
            rows = np.frombuffer(data, "<i8", num_ended, at)
            fields = np.frombuffer(data, "<i4", len(FIELDS) * num_ended, at + rows.nbytes)
            ended = Ended(rows, last, fields.reshape(len(FIELDS), num_ended))
        return cls(frames, telemetry, terminated, truncated, ended, seconds)
