"""The theory over arrays: arguments broadcast against one another as in NumPy, the work is spread over all cores.

    sizes = 2.0 ** np.arange(17, 36)
    losses = np.logspace(-6, -1, 26)
    table = sdr.slowdown(sizes[:, None], losses, rtt="25ms", rate="400Gbit", scheme="ec-rs")   # shape (19, 26)

The rules of every function here:

- size, loss, rtt, rate and burst are numbers in base units, arrays of them, or texts or sequences of texts.
- packet and chunk (None: one packet) are one for all, and so is the scheme.
- The result is float64 of the broadcast shape; a float when every argument is one number. It does not depend on jobs.
- A value out of range is a ValueError that names the field, the value, the range and the index.
"""

from __future__ import annotations

from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _sdr
from .model import Floats, SchemeLike, as_scheme
from .units import Quantity, bits_per_second, job_count, numbers, seconds, share, size_bytes

Answer = Union[float, Floats]


def mean(
    size: npt.ArrayLike,
    loss: npt.ArrayLike,
    *,
    rtt: npt.ArrayLike,
    rate: npt.ArrayLike,
    scheme: SchemeLike,
    burst: npt.ArrayLike = 1.0,
    packet: Quantity = 4096,
    chunk: Quantity | None = None,
    jobs: int | None = None,
) -> Any:
    """Mean completion time, seconds (sections 4.2.1 and 4.2.2)."""
    return _grid("mean", size, loss, rtt, rate, scheme, burst, packet, chunk, jobs)


def quantile(
    q: npt.ArrayLike,
    size: npt.ArrayLike,
    loss: npt.ArrayLike,
    *,
    rtt: npt.ArrayLike,
    rate: npt.ArrayLike,
    scheme: SchemeLike,
    burst: npt.ArrayLike = 1.0,
    packet: Quantity = 4096,
    chunk: Quantity | None = None,
    jobs: int | None = None,
) -> Any:
    """Seconds within which a share q of the Writes is complete; q is between 0 and 1 and broadcasts with the rest."""
    return _grid("quantile", size, loss, rtt, rate, scheme, burst, packet, chunk, jobs, q)


def slowdown(
    size: npt.ArrayLike,
    loss: npt.ArrayLike,
    *,
    rtt: npt.ArrayLike,
    rate: npt.ArrayLike,
    scheme: SchemeLike,
    burst: npt.ArrayLike = 1.0,
    packet: Quantity = 4096,
    chunk: Quantity | None = None,
    jobs: int | None = None,
) -> Any:
    """Mean completion time in lossless times, M T_inj + RTT."""
    return _grid("slowdown", size, loss, rtt, rate, scheme, burst, packet, chunk, jobs)


def fallback(
    size: npt.ArrayLike,
    loss: npt.ArrayLike,
    *,
    rtt: npt.ArrayLike,
    rate: npt.ArrayLike,
    scheme: SchemeLike,
    burst: npt.ArrayLike = 1.0,
    packet: Quantity = 4096,
    chunk: Quantity | None = None,
    jobs: int | None = None,
) -> Any:
    """Chance that the parity of a Write does not suffice, 1 - P^L (section 4.2.2, appendix B)."""
    return _grid("fallback", size, loss, rtt, rate, scheme, burst, packet, chunk, jobs)


def lossless(
    size: npt.ArrayLike,
    *,
    rtt: npt.ArrayLike,
    rate: npt.ArrayLike,
    packet: Quantity = 4096,
    chunk: Quantity | None = None,
    jobs: int | None = None,
) -> Any:
    """M T_inj + RTT, seconds: the time without losses."""
    return _grid("lossless", size, 0.0, rtt, rate, "sr-nack", 1.0, packet, chunk, jobs)


def floor(
    size: npt.ArrayLike,
    loss: npt.ArrayLike,
    *,
    rtt: npt.ArrayLike,
    rate: npt.ArrayLike,
    burst: npt.ArrayLike = 1.0,
    packet: Quantity = 4096,
    chunk: Quantity | None = None,
    jobs: int | None = None,
) -> Any:
    """M T_inj / (1 - p) + RTT, seconds: no scheme that sends lost chunks again is faster in the mean."""
    return _grid("floor", size, loss, rtt, rate, "sr-nack", burst, packet, chunk, jobs)


def _grid(
    measure: str,
    size: npt.ArrayLike,
    loss: npt.ArrayLike,
    rtt: npt.ArrayLike,
    rate: npt.ArrayLike,
    scheme: SchemeLike,
    burst: npt.ArrayLike,
    packet: Quantity,
    chunk: Quantity | None,
    jobs: int | None,
    q: npt.ArrayLike = 0.5,
) -> Answer:
    columns = np.broadcast_arrays(
        numbers(size, size_bytes, "size"),
        numbers(loss, share, "loss"),
        numbers(rtt, seconds, "rtt"),
        numbers(rate, bits_per_second, "rate"),
        numbers(burst, share, "burst"),
        numbers(q, share, "share"),
    )
    shape = columns[0].shape
    flat = [np.ascontiguousarray(column).ravel() for column in columns]
    packet_bytes = size_bytes(packet, "packet")
    chunk_bytes = packet_bytes if chunk is None else size_bytes(chunk, "chunk")
    answer = _sdr.grid(
        measure,
        as_scheme(scheme)._spec(),
        flat[0],
        flat[1],
        flat[2],
        flat[3],
        flat[4],
        flat[5],
        packet_bytes,
        chunk_bytes,
        job_count(jobs),
    )
    if isinstance(answer, tuple):
        place, message = answer
        if not shape:
            raise ValueError(message)
        index = ", ".join(str(int(i)) for i in np.unravel_index(place, shape))
        raise ValueError(f"{message} (at index [{index}])")
    return float(answer[0]) if not shape else answer.reshape(shape)
