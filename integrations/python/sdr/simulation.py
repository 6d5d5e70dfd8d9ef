"""The real protocol over a simulated link in virtual time: what `sdr sim` runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from . import _sdr
from .model import CompletionTime, Floats, Path, Scheme, SchemeLike
from .units import Quantity, job_count, seconds, size_bytes, whole

Counts = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated Writes: element n of every array is run n.

    Attributes:
        completion: seconds from posting a Write until its sender knows it complete, float64; NaN where it failed.
        failures: run: why it failed.
        scheme, size, seed: as run; bytes.
        link: the simulated link, as `--link` takes it.
        ideal: seconds, payload at the rate plus the RTT; the rate is taken by whole packets with 44 bytes of headers,
            so that even a clean link has a slowdown of 1.01 with packets of 4 KiB.
        floor: M T_inj / (1 - p) + RTT of payload, seconds; None on links that the theory does not know.
        theory: what the model says of this very link, headers included; None with outages, a trace, or a scheme that
            the model does not know.
        packets_sent, packets_received, duplicate_packets, late_packets: uint64 arrays, as the rest.
        packets_lost, queue_drops: on the way to the receiver, and how many of them by the queue.
        chunks_sent, parity_chunks_sent, chunks_retransmitted: first transmissions, parity, repeats.
        chunks_recovered, fallbacks: chunks rebuilt from parity; transfers whose parity did not suffice.
        controls_sent, controls_answered: offers of the sender, reports of the receiver.
    """

    completion: Floats
    failures: dict[int, str]
    scheme: str
    size: int
    seed: int
    link: str
    ideal: float
    floor: float | None
    theory: CompletionTime | None
    packets_sent: Counts
    packets_lost: Counts
    queue_drops: Counts
    packets_received: Counts
    duplicate_packets: Counts
    late_packets: Counts
    chunks_sent: Counts
    chunks_retransmitted: Counts
    parity_chunks_sent: Counts
    chunks_recovered: Counts
    fallbacks: Counts
    controls_sent: Counts
    controls_answered: Counts

    @property
    def mean(self) -> float:
        """Seconds, of the Writes that are complete; NaN when there are none."""
        done = self._done()
        return float(done.mean()) if done.size else float("nan")

    @property
    def slowdown(self) -> float:
        """mean / ideal."""
        return self.mean / self.ideal

    @overload
    def quantile(self, q: float) -> float: ...
    @overload
    def quantile(self, q: npt.ArrayLike) -> float | Floats: ...
    def quantile(self, q: npt.ArrayLike) -> float | Floats:
        """Seconds by nearest rank, as `sdr sim` reports them, of the complete Writes; q of any shape, 0 to 1."""
        shares = np.asarray(q, dtype=np.float64)
        bad = shares[~((shares >= 0) & (shares <= 1))]
        if bad.size:
            raise ValueError(f"quantile {bad[0]} is not from 0 to 1")
        done = np.sort(self._done())
        if not done.size:
            values = np.full(shares.shape, np.nan)
        else:
            values = done[np.clip(np.ceil(shares * done.size), 1, done.size).astype(np.int64) - 1]
        return float(values) if shares.ndim == 0 else values

    @overload
    def percentile(self, q: float) -> float: ...
    @overload
    def percentile(self, q: npt.ArrayLike) -> float | Floats: ...
    def percentile(self, q: npt.ArrayLike) -> float | Floats:
        """The same with q from 0 to 100."""
        return self.quantile(np.asarray(q, dtype=np.float64) / 100)

    def _done(self) -> Floats:
        return self.completion[~np.isnan(self.completion)]

    def __repr__(self) -> str:
        return (
            f"Simulation({self.scheme} over {self.link}: {self.completion.size} Writes of {self.size} bytes, "
            f"mean {self.mean:.6g} s, slowdown {self.slowdown:.4g}, {len(self.failures)} failed)"
        )


def simulate(
    path: Path,
    size: Quantity,
    scheme: SchemeLike,
    runs: int = 1,
    *,
    seed: int = 1,
    jobs: int | None = None,
    link: str = "",
    step: Quantity = 0.0,
    known_loss: bool = False,
    warm_writes: int = 0,
) -> Simulation:
    """Runs the SDK and the reliability layer, as they run on a wire, over a simulated link: `sdr sim` (docs/cli.md).

    Each run is one Write over a fresh connection, its losses drawn from (seed, number of the run): the result is the
    same for any number of jobs, on any machine, and that of `sdr sim` with the same link and seed. The path's rate is
    that of whole packets here.

    Args:
        path: its packet is the payload of a packet, a multiple of 8; its chunk a power-of-two multiple of that.
        size: bytes of a Write, 1 to 2^40.
        scheme: a Scheme or a text.
        runs: 1 to 1e8.
        jobs: threads; None: one a core.
        link: what else the link does, as `--link` takes it: "reorder=1e-3,dup=1e-4,jitter=100us,queue=10ms,
            outage=10ms+5ms,losssize=1024,trace=1000:2:350:1,mtu=1500".
        step: time between two looks of an end; 0: 256 packets of the rate, at most RTT / 1000.
        known_loss: the sender knows the loss of the link from the beginning; for schemes that learn it.
        warm_writes: Writes of the same size before the measured one, from which such a scheme learns; 0 to 1000.

    Raises:
        ValueError: names the field, the value and the range. A Write that fails is no error, but in `failures`.
        KeyboardInterrupt: Ctrl-C ends it with the runs that are under way.

    >>> path = Path(rtt="25ms", rate="10Gbit", loss=1e-3)
    >>> result = simulate(path, "1MiB", "ec-rs", runs=20, seed=7)
    >>> result.completion.shape, len(result.failures)
    ((20,), 0)
    """
    name, k, m, rto_rtts, spec = _protocol(scheme)
    text = f"rtt={round(path.rtt * 1e9)}ns,rate={path.rate!r},loss={path.loss!r},burst={path.burst!r}"
    bytes_written = size_bytes(size)
    number = whole(seed, "seed", 0, 2**64 - 1)
    answer = _sdr.simulate(
        text + (f",{link}" if link else ""),
        bytes_written,
        name,
        k,
        m,
        rto_rtts,
        path.packet,
        path.chunk,
        seconds(step, "step"),
        bool(known_loss),
        whole(warm_writes, "warm_writes", 0, 1000),
        whole(runs, "runs", 1, 100_000_000),
        number,
        job_count(jobs),
    )
    on_wire, payload = answer.pop("on_wire"), answer.pop("payload")
    return Simulation(
        scheme=str(scheme),
        size=bytes_written,
        seed=number,
        floor=None if payload is None else payload.floor,
        theory=None if on_wire is None or spec is None else CompletionTime(on_wire, spec),
        **answer,
    )


def _protocol(scheme: SchemeLike) -> tuple[str, int, int, float, _sdr.SchemeSpec | None]:
    """Name, k, m and timeout as the protocol takes them, and the scheme as the model does."""
    if isinstance(scheme, str) and ":" not in scheme and scheme not in _sdr.scheme_names():
        return scheme, 32, 8, 3.0, None  # perhaps the protocol knows it
    known = Scheme.parse(scheme) if isinstance(scheme, str) else scheme
    usual = Scheme(known.name, k=known.k, m=known.m)
    rto_rtts = known.rto_rtts if known.name == "sr-rto" else usual.rto_rtts
    if known != Scheme(known.name, k=known.k, m=known.m, rto_rtts=rto_rtts):
        raise ValueError(
            f"scheme {known!r}: the protocol has no rto_rtts but in sr-rto, a fallback_beta of 0.5, and interleaves"
        )
    return known.name, known.k, known.m, known.rto_rtts if known.name == "sr-rto" else 3.0, known._spec()
