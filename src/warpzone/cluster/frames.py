"""Arrays on the network: LZ4, without loss, in pieces that threads pack and unpack side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

PIECE_BYTES = 16 * 84 * 84
"""Frames look alike: sixteen at once compress a little better than one. Larger pieces gain nothing more."""

T = TypeVar("T")
R = TypeVar("R")


class Packer:
    """Compresses on `threads` threads; LZ4 works without the interpreter's lock."""

    def __init__(self, threads: int) -> None:
        from lz4 import block

        self._lz4: Any = block
        self._threads = ThreadPoolExecutor(threads, "lz4") if threads > 1 else None

    def pack(self, array: NDArray[Any]) -> list[bytes]:
        """The pieces of an array, compressed."""
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        pieces = [flat[at : at + PIECE_BYTES] for at in range(0, len(flat), PIECE_BYTES)]
        return self._map(lambda piece: self._lz4.compress(piece, store_size=False), pieces)

    def unpack(self, pieces: Sequence[bytes], out: NDArray[Any]) -> None:
        """Fill a contiguous array from its pieces."""
        flat = out.reshape(-1).view(np.uint8)

        def fill(at: int) -> None:
            part = flat[at * PIECE_BYTES : (at + 1) * PIECE_BYTES]
            part[:] = np.frombuffer(self._lz4.decompress(pieces[at], uncompressed_size=len(part)), np.uint8)

        self._map(fill, range(len(pieces)))

    def _map(self, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
        return list(map(do, items) if self._threads is None else self._threads.map(do, items))
