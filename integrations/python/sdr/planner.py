"""Which scheme, with which parameters, for a message on a path: what `sdr plan` computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator

from . import _sdr
from .model import Path
from .units import Quantity, share, size_bytes


@dataclass(frozen=True)
class PlannedScheme:
    """A scheme with what it gives and costs. Times are seconds, overheads shares of the message's bytes.

    Attributes:
        scheme: as `--scheme` and every function here take it, "ec-rs:32:8"; name, k and m (None where there is no such
            choice) are its parts.
        tuned: whether k and m were chosen for this path and size.
        mean, p50, p99, p999: until the sender knows the Write complete.
        slowdown: mean / ideal.
        parity_overhead, repair_overhead: parity, and expected bytes sent again (at most, in runs of losses).
        within_budget: whether they keep to the budget; what does not is never the best.
        fallback: chance that the parity of a Write does not suffice.
        holds_to_loss: packet loss up to which that is below 1 in 1000; None where there is no such choice.
        encode_rate: bits per second of data that one core of this machine makes parity for; None: not measured.
        encode_cores: cores that keep up with the path; None: not measured.
        at_floor: whether the theory was below the floor, which is given instead.
    """

    name: str
    scheme: str
    k: int | None
    m: int | None
    tuned: bool
    mean: float
    p50: float
    p99: float
    p999: float
    slowdown: float
    parity_overhead: float
    repair_overhead: float
    within_budget: bool
    fallback: float
    holds_to_loss: float | None
    encode_rate: float | None
    encode_cores: float | None
    at_floor: bool

    @property
    def overhead(self) -> float:
        """parity_overhead + repair_overhead."""
        return self.parity_overhead + self.repair_overhead


@dataclass(frozen=True)
class Plan:
    """Every scheme for one message, and the best. Iterating gives the schemes.

    Attributes:
        schemes: those without a code, then ec-xor and ec-rs, each as (32, 8) and tuned.
        best: the one with the least p99.9, then mean, then bytes, where less than 1 % is no difference.
        reason: why, in one sentence.
        untunable: coded schemes of which no k:m keeps to the budget.
        ideal: M T_inj + RTT, seconds.
        floor: M T_inj / (1 - p) + RTT, seconds.
        chunks: M.
    """

    schemes: tuple[PlannedScheme, ...]
    best: PlannedScheme
    reason: str
    untunable: tuple[str, ...]
    ideal: float
    floor: float
    chunks: int

    def __iter__(self) -> Iterator[PlannedScheme]:
        return iter(self.schemes)

    def __len__(self) -> int:
        return len(self.schemes)


def plan(path: Path, size: Quantity, *, budget: Quantity = 0.10, measure_encoding: bool = False) -> Plan:
    """What every scheme takes for a Write of `size` bytes, which is best, and why: `sdr plan` (docs/cli.md).

    Args:
        budget: share of bytes that a coded scheme may send beyond the message, 0 to 1; 0.1 or "10%".
        measure_encoding: measure how fast this machine makes parity, 12 ms a shape, for encode_rate and encode_cores.

    Raises:
        ValueError: names the field, the value and the range.

    >>> plan(Path(rtt="25ms", rate="400Gbit", loss=1e-3), "128MiB").best.name
    'adaptive'
    """
    answer = _sdr.plan(path._spec(), size_bytes(size), share(budget, "budget"), measure_encoding)
    schemes = tuple(PlannedScheme(**record) for record in answer.pop("schemes"))
    best = schemes[answer.pop("best")]
    return Plan(schemes=schemes, best=best, untunable=tuple(answer.pop("untunable")), **answer)
