"""The completion-time model: paths, schemes, distributions, Monte Carlo, Allreduce.

Sections are those of the SDR-RDMA paper (arXiv 2505.05366); docs/model.md has the derivations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Callable, Literal, Union, overload

import numpy as np
import numpy.typing as npt

from . import _sdr
from .units import Quantity, bits_per_second, job_count, numbers, seconds, share, size_bytes, whole

Floats = npt.NDArray[np.float64]
Sender = Literal["paper", "serialised"]

_MOST_SEEDS = 2**64 - 1
_MOST_SAMPLES = 2**30


@dataclass(frozen=True)
class Path:
    """A path between two sites. Immutable and checked: `dataclasses.replace(path, loss=1e-2)` gives a changed one.

    Numbers are seconds, bytes and bits per second; texts are those of the `sdr` command ("25ms", "400Gbit", "4KiB").

    Attributes:
        rtt: round-trip time, seconds, 0 to 3600.
        rate: payload bits per second that the path carries, 1e3 to 1e15.
        loss: mean share of packets lost, 0 to 0.999.
        burst: mean run of lost packets (Gilbert-Elliott with the loss 1 in the bad state); 1: each by itself.
        packet: payload bytes of a packet.
        chunk: bytes that a bit of the receiver's bitmap stands for, and that is sent again; None: one packet. A chunk
            is lost with any of its packets: 1 - (1 - p)^N (section 4.2).

    Raises:
        ValueError: names the field, the value and the range.

    >>> Path(rtt="25ms", rate="400Gbit", loss=1e-3)
    Path(rtt=0.025, rate=400000000000.0, loss=0.001, burst=1.0, packet=4096, chunk=4096)
    """

    rtt: float
    rate: float
    loss: float
    burst: float
    packet: int
    chunk: int

    def __init__(
        self,
        rtt: Quantity,
        rate: Quantity,
        loss: Quantity = 0.0,
        burst: float = 1.0,
        packet: Quantity = 4096,
        chunk: Quantity | None = None,
    ) -> None:
        fields = {
            "rtt": seconds(rtt, "rtt"),
            "rate": bits_per_second(rate, "rate"),
            "loss": share(loss, "loss"),
            "burst": share(burst, "burst"),
            "packet": size_bytes(packet, "packet"),
            "chunk": size_bytes(packet if chunk is None else chunk, "chunk"),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self._spec()  # refuses what is out of range

    def _spec(self) -> _sdr.PathSpec:
        return _sdr.PathSpec(self.rtt, self.rate, self.loss, self.burst, self.packet, self.chunk)


@dataclass(frozen=True)
class Scheme:
    """A reliability scheme with its parameters. Immutable and checked. `str(scheme)` is what `--scheme` takes.

    Wherever a scheme is wanted a text will do: "sr-nack", "ec-rs", "ec-rs:32:8".

    Attributes:
        name: "sr-rto" or "sr-nack", selective repeat (section 4.2.1); "ec-xor" or "ec-rs", erasure coding by XOR or a
            maximum distance separable code (section 4.2.2).
        k, m: data and parity chunks of a submessage of a coded scheme, k + m <= 255; of no meaning in the others.
        rto_rtts: RTTs until a lost chunk is sent again: in sr-rto, and in the selective repeat that coded schemes fall
            back to. None: as this library does it, 3 in sr-rto and 1 (the receiver's word) in coded schemes; the
            paper's figures have 3 in both. In sr-nack it is 1, always.
        fallback_beta: RTTs that a receiver of a coded scheme waits beyond the last parity chunk.
        interleaved: whether neighbours in a submessage are far apart on the wire, as in this library.

    Raises:
        ValueError: names the field, the value and the range.
    """

    name: str
    k: int
    m: int
    rto_rtts: float
    fallback_beta: float
    interleaved: bool

    def __init__(
        self,
        name: str,
        k: int = 32,
        m: int = 8,
        rto_rtts: float | None = None,
        fallback_beta: float = 0.5,
        interleaved: bool = True,
    ) -> None:
        usual = 3.0 if name == "sr-rto" else 1.0
        fields = {
            "name": name,
            "k": whole(k, "k", 0, 2**31),
            "m": whole(m, "m", 0, 2**31),
            "rto_rtts": usual if rto_rtts is None else float(rto_rtts),
            "fallback_beta": float(fallback_beta),
            "interleaved": bool(interleaved),
        }
        for field_name, value in fields.items():
            object.__setattr__(self, field_name, value)
        if name == "sr-nack" and self.rto_rtts != 1:
            raise ValueError(f"rto_rtts {self.rto_rtts} of sr-nack is not 1: the receiver names what is missing")
        self._spec()

    @classmethod
    def parse(cls, text: str) -> Scheme:
        """The scheme that `--scheme` would take: "sr-nack", "ec-rs", "ec-rs:32:8"."""
        name, *shape = text.split(":")
        if not shape:
            return cls(name)
        written = len(shape) == 2 and all(number.isascii() and number.isdigit() for number in shape)
        if not written or not name.startswith("ec-"):
            raise ValueError(
                f"scheme '{text}' is not one of: {', '.join(_sdr.scheme_names())}; those with parity also with "
                "k and m, as ec-rs:32:8"
            )
        return cls(name, k=int(shape[0]), m=int(shape[1]))

    @property
    def coded(self) -> bool:
        """Whether parity is sent."""
        return self.name.startswith("ec-")

    def __str__(self) -> str:
        return self._spec().text()

    def _spec(self) -> _sdr.SchemeSpec:
        return _sdr.SchemeSpec(self.name, self.k, self.m, self.rto_rtts, self.fallback_beta, self.interleaved)


# A scheme, or its text.
SchemeLike = Union[Scheme, str]


def as_scheme(scheme: SchemeLike) -> Scheme:
    """The scheme itself, or what its text says."""
    if isinstance(scheme, Scheme):
        return scheme
    if isinstance(scheme, str):
        return Scheme.parse(scheme)
    raise TypeError(f"scheme {scheme!r} is neither a Scheme nor a text")


@dataclass(frozen=True)
class Transfer:
    """A message on a path, in the terms of the theory (section 4.2).

    Attributes:
        path, size: as given; bytes.
        chunks: M; a short last chunk counts as a whole one.
        injection: T_inj, seconds that a chunk takes on the wire.
        chunk_loss: p, of chunks.
        lossless: M T_inj + RTT, seconds; what slowdowns are counted in.
        floor: M T_inj / (1 - p) + RTT, seconds; no scheme that sends lost chunks again is faster in the mean.

    Raises:
        ValueError: names the field, the value and the range.
    """

    path: Path
    size: int
    chunks: int = field(init=False)
    injection: float = field(init=False)
    chunk_loss: float = field(init=False)
    lossless: float = field(init=False)
    floor: float = field(init=False)

    def __init__(self, path: Path, size: Quantity) -> None:
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "size", size_bytes(size))
        spec = self._spec()
        for name in ("chunks", "injection", "chunk_loss", "lossless", "floor"):
            object.__setattr__(self, name, getattr(spec, name))

    def _spec(self) -> _sdr.Transfer:
        return _sdr.Transfer(self.path._spec(), self.size)


class CompletionTime:
    """How long a reliable Write takes, as a distribution: exact, without sampling (sections 4.2.1 and 4.2.2).

    Made by `completion_time`. Times are seconds, from the start of injection until the sender knows the Write complete.

    Attributes:
        lossless, floor: as in Transfer, seconds.
        fallback: chance that the parity of a Write does not suffice; 0 in selective repeat.
        mean: seconds.
        slowdown: mean / lossless.
    """

    def __init__(self, transfer: _sdr.Transfer, scheme: _sdr.SchemeSpec) -> None:
        self._time = _sdr.CompletionTime(transfer, scheme)
        self.lossless: float = transfer.lossless
        self.floor: float = transfer.floor
        self.fallback: float = self._time.fallback

    @cached_property
    def mean(self) -> float:
        """Seconds."""
        return self._time.mean

    @property
    def slowdown(self) -> float:
        """mean / lossless."""
        return self.mean / self.lossless

    @overload
    def quantile(self, q: float) -> float: ...
    @overload
    def quantile(self, q: npt.ArrayLike) -> float | Floats: ...
    def quantile(self, q: npt.ArrayLike) -> float | Floats:
        """Seconds within which a share q of the Writes is complete; q of any shape, between 0 and 1, as np.quantile.

        Raises:
            ValueError: a share that is not between 0 and 1.
        """
        return _each(self._time.quantile, q)

    @overload
    def percentile(self, q: float) -> float: ...
    @overload
    def percentile(self, q: npt.ArrayLike) -> float | Floats: ...
    def percentile(self, q: npt.ArrayLike) -> float | Floats:
        """The same with q between 0 and 100, as np.percentile: `percentile(99.9)` is `quantile(0.999)`."""
        return _each(self._time.quantile, np.asarray(q, dtype=np.float64) / 100)

    @overload
    def cdf(self, t: float) -> float: ...
    @overload
    def cdf(self, t: npt.ArrayLike) -> float | Floats: ...
    def cdf(self, t: npt.ArrayLike) -> float | Floats:
        """Share of Writes that are complete within t seconds; t of any shape, texts such as "30ms" too."""
        return _each(self._time.cdf, numbers(t, seconds, "time"))

    def __repr__(self) -> str:
        return f"CompletionTime(mean={self.mean:.6g} s, slowdown={self.slowdown:.4g}, fallback={self.fallback:.3g})"


def completion_time(path: Path, size: Quantity, scheme: SchemeLike) -> CompletionTime:
    """The distribution of the time that a reliable Write of `size` bytes takes on `path`.

    Raises:
        ValueError: names the field, the value and the range.

    >>> path = Path(rtt="25ms", rate="400Gbit", loss=1e-3)
    >>> time = completion_time(path, "128MiB", "sr-nack")
    >>> round(time.slowdown, 3), round(time.percentile(99.9) * 1e3, 1)
    (1.928, 77.6)
    """
    return CompletionTime(Transfer(path, size)._spec(), as_scheme(scheme)._spec())


def paper_mean(path: Path, size: Quantity, scheme: SchemeLike) -> float:
    """The paper's expression for the mean, seconds: E[failures] in the place of their distribution (section 4.2.2).

    No lower than `completion_time(...).mean`, by Jensen's inequality; the same in selective repeat.
    """
    return _sdr.paper_mean(Transfer(path, size)._spec(), as_scheme(scheme)._spec())


def samples(
    path: Path,
    size: Quantity,
    scheme: SchemeLike,
    count: int = 1000,
    *,
    seed: int = 1,
    jobs: int | None = None,
    sender: Sender = "paper",
) -> Floats:
    """Completion times at random, seconds, shape (count,): the Monte Carlo beside the theory (section 5.2).

    It draws losses, and shares no formula with `completion_time`. Sample n depends on (seed, n) alone, so the result is
    the same for any number of jobs.

    Args:
        count: 1 to 2^30.
        jobs: threads; None: one a core.
        sender: "paper": retransmissions take no time on the wire; "serialised": they do, as on any real link.

    Raises:
        ValueError: names the field, the value and the range.
        KeyboardInterrupt: Ctrl-C ends it within a moment.
    """
    return _sdr.samples(Transfer(path, size)._spec(), as_scheme(scheme)._spec(), *_sampling(count, seed, jobs), sender)


class Allreduce:
    """Allreduce over datacenters, each message a reliable Write (section 5.3, appendix C).

    Args:
        path: between any two neighbours.
        buffer: bytes that are reduced.
        scheme: of each Write.
        datacenters: N, 2 to 4096.
        topology: "ring", 2N - 2 rounds of buffer / N bytes; "tree", binomial, ceil(log2 N) rounds up and as many down,
            each of the whole buffer.
        compute: time of the computation in each round, 0 to an hour.

    Attributes:
        rounds: as above.
        lossless: rounds (compute + M T_inj + RTT), seconds.
        bound: rounds (compute + E[X]), seconds, X a Write's completion time: a lower bound of the mean.

    Raises:
        ValueError: names the field, the value and the range.
    """

    def __init__(
        self,
        path: Path,
        buffer: Quantity,
        scheme: SchemeLike,
        datacenters: int = 4,
        topology: Literal["ring", "tree"] = "ring",
        compute: Quantity = 0.0,
    ) -> None:
        self._allreduce = _sdr.Allreduce(
            path._spec(),
            size_bytes(buffer, "buffer"),
            as_scheme(scheme)._spec(),
            whole(datacenters, "datacenters", 2, 4096),
            topology,
            seconds(compute, "compute"),
        )
        self.rounds: int = self._allreduce.rounds
        self.lossless: float = self._allreduce.lossless
        self.bound: float = self._allreduce.bound

    def samples(
        self, count: int = 1000, *, seed: int = 1, jobs: int | None = None, sender: Sender = "paper"
    ) -> Floats:
        """Times of the whole Allreduce at random, seconds, shape (count,). As the function `samples`."""
        return self._allreduce.samples(*_sampling(count, seed, jobs), sender)


def rtt_over_km(kilometres: float) -> float:
    """Seconds that light takes there and back, 2 d / (3e5 km/s) (section 5.2): 3750 km are 25 ms."""
    return _sdr.rtt_over_km(kilometres)


def _sampling(count: int, seed: int, jobs: int | None) -> tuple[int, int, int]:
    return whole(count, "samples", 1, _MOST_SAMPLES), whole(seed, "seed", 0, _MOST_SEEDS), job_count(jobs)


def _each(function: Callable[[Floats], Floats], values: npt.ArrayLike) -> float | Floats:
    array = np.asarray(values, dtype=np.float64)
    flat = function(array.ravel())
    return float(flat[0]) if array.ndim == 0 else flat.reshape(array.shape)
