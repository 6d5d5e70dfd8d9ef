"""Numbers and texts: how every argument that is a time, a size or a rate is read.

A number is in base units: seconds, bytes, bits per second. A text is what the `sdr` command takes: ``"25ms"``,
``"128MiB"``, ``"400Gbit"``. What comes back is always in base units.
"""

from __future__ import annotations

import math
import operator
import os
from typing import Callable, Union

import numpy as np
import numpy.typing as npt

from . import _sdr

# A number in base units, or a text with a unit.
Quantity = Union[float, str]


def seconds(value: Quantity, what: str = "time") -> float:
    """Seconds of a number of seconds or a text with ns, us, ms, s or min.

    >>> seconds("25ms")
    0.025
    """
    return _real(value, what, "seconds", _sdr.parse_seconds)


def bits_per_second(value: Quantity, what: str = "rate") -> float:
    """Bits per second of a number or a text with bit, Kbit, Mbit, Gbit or Tbit.

    >>> bits_per_second("400Gbit")
    400000000000.0
    """
    return _real(value, what, "bits per second", _sdr.parse_bits_per_second)


def size_bytes(value: Quantity, what: str = "size") -> int:
    """Bytes of a number or a text with B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (of 1000).

    Fractions are rounded to the nearest byte.

    >>> size_bytes("128MiB")
    134217728
    """
    if isinstance(value, str):
        return _sdr.parse_bytes(value)
    number = _real(value, what, "bytes", _sdr.parse_bytes)
    count = round(value) if isinstance(value, int) else round(number)
    if not 0 <= count < 2**63:
        raise ValueError(f"{what} {value} bytes is not from 0 to 2^63 - 1")
    return count


def share(value: Quantity, what: str) -> float:
    """A share of a number or a text: 0.001, "1e-3", "0.1%"."""
    if not isinstance(value, str):
        return _real(value, what, "a share", float)
    digits = value[:-1] if value.endswith("%") else value
    try:
        number = float(digits)
    except ValueError:
        raise ValueError(f'{what} "{value}" is not a number, such as 1e-3 or 0.1%') from None
    return number / 100 if value.endswith("%") else number


def whole(value: int, what: str, least: int, most: int) -> int:
    """A whole number within its range; anything else is a ValueError that names it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} {value!r} is not a whole number") from None
    if not least <= number <= most:
        raise ValueError(f"{what} {number} is not from {least} to {most}")
    return number


def job_count(jobs: int | None) -> int:
    """Threads: as many as this process may use cores, unless told."""
    if jobs is None:
        return min(1024, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    return whole(jobs, "jobs", 1, 1024)


def numbers(value: npt.ArrayLike, read: Callable[[Quantity, str], float], what: str) -> npt.NDArray[np.float64]:
    """An array of numbers, of texts, or one of either, as float64 of the same shape."""
    array = np.asarray(value)
    if array.dtype.kind in "fiu":
        return array.astype(np.float64)
    flat = [read(element, what) for element in array.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def _real(value: Quantity, what: str, unit: str, parse: Callable[[str], float]) -> float:
    if isinstance(value, str):
        return float(parse(value))
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} {value!r} is neither a number of {unit} nor a text") from None
    if not math.isfinite(number):
        raise ValueError(f"{what} {number} is not a finite number of {unit}")
    return number
