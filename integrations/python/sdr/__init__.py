"""sdr: software-defined reliability for RDMA over long, lossy links, from Python.

    import sdr

    path = sdr.Path(rtt="25ms", rate="400Gbit", loss=1e-3)
    sdr.completion_time(path, "128MiB", "sr-nack").percentile([50, 99, 99.9])    # theory: exact, no sampling
    sdr.plan(path, "128MiB").reason                                              # which scheme, and why
    sdr.simulate(path, "128MiB", "ec-rs", runs=100).completion                   # the real protocol, in virtual time

One rule for units: a number is in base units (seconds, bytes, bits per second), a text is what the `sdr` command takes
("25ms", "128MiB", "400Gbit"). What comes back is in base units. Errors are ValueErrors that name the field, the value
and the range.

    Path, Scheme, Transfer           what is asked about
    completion_time, paper_mean      theory of one Write: distribution, mean, quantiles, chance of a fallback
    mean, quantile, slowdown,        theory over arrays, broadcast as in NumPy, on all cores
      fallback, lossless, floor
    samples                          Monte Carlo of one Write
    Allreduce                        ring and tree over datacenters: bound and Monte Carlo
    plan                             every scheme, tuned; the best and why
    simulate                         the code of the SDK and the reliability layer, over a simulated link
    seconds, size_bytes,             texts to numbers
      bits_per_second, rtt_over_km

Everything random has a seed and gives the same result for any number of `jobs` (threads). docs/python.md has more.
"""

from ._sdr import __version__ as __version__
from .grid import fallback, floor, lossless, mean, quantile, slowdown
from .model import Allreduce, CompletionTime, Path, Scheme, Transfer, completion_time, paper_mean, rtt_over_km, samples
from .planner import Plan, PlannedScheme, plan
from .simulation import Simulation, simulate
from .units import bits_per_second, seconds, size_bytes

__all__ = [
    "Allreduce",
    "CompletionTime",
    "Path",
    "Plan",
    "PlannedScheme",
    "Scheme",
    "Simulation",
    "Transfer",
    "bits_per_second",
    "completion_time",
    "fallback",
    "floor",
    "lossless",
    "mean",
    "paper_mean",
    "plan",
    "quantile",
    "rtt_over_km",
    "samples",
    "seconds",
    "simulate",
    "size_bytes",
    "slowdown",
]
