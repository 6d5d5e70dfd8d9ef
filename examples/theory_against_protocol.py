#!/usr/bin/env python3
"""Does the protocol do what its theory says? The researcher's question; a notebook in a script, cells begin with # %%.

    python3 examples/theory_against_protocol.py --rtt 25ms --rate 10Gbit --loss 3e-3 --size 4MiB --out figures

Runs the code of the SDK and the reliability layer over a simulated link, hundreds of Writes a scheme, and lays the
measured distribution over the theoretical one: cdf.png, qq.png, difference.png and a table. The same seed gives the
same pictures. Needs the module sdr, NumPy and matplotlib.
"""

# %% The experiment
import argparse
import os
import pathlib
import time

import matplotlib

if not os.environ.get("DISPLAY"):
    matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import sdr

parser = argparse.ArgumentParser(description="Does the protocol do what its theory says?")
parser.add_argument("--rtt", default="25ms", help="round-trip time")
parser.add_argument("--rate", default="10Gbit", help="rate of the link")
parser.add_argument("--loss", type=float, default=3e-3, help="share of packets lost")
parser.add_argument("--size", default="4MiB", help="length of a Write")
parser.add_argument("--runs", type=int, default=2000, help="Writes a scheme")
parser.add_argument("--seed", type=int, default=1, help="what the losses are drawn from")
parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."), help="folder for the PNGs")
parser.add_argument("--quick", action="store_true", help="few Writes, for a test")
options, _ = parser.parse_known_args()
options.out.mkdir(parents=True, exist_ok=True)
runs = 100 if options.quick else options.runs

path = sdr.Path(options.rtt, options.rate, options.loss)
schemes = ["sr-rto", "sr-nack", "ec-xor", "ec-rs:32:4"]
# The palette of Okabe and Ito, which colour-blind people can tell apart.
COLOURS = dict(zip(schemes, ["#D55E00", "#E69F00", "#56B4E9", "#0072B2"]))
plt.rcParams.update({"font.size": 11, "savefig.dpi": 130, "figure.constrained_layout.use": True})
about = f"{options.size}, RTT {path.rtt * 1e3:g} ms, {path.rate / 1e9:g} Gbit/s, loss {path.loss:g}"
about += f", {runs} Writes a scheme"

# %% The real protocol in virtual time. Its `theory` is the model's answer for the very same link, headers included.
begin = time.perf_counter()
simulated = {name: sdr.simulate(path, options.size, name, runs, seed=options.seed) for name in schemes}
packets = sum(int(s.packets_sent.sum()) for s in simulated.values())
print(f"{packets / 1e6:.1f} million packets in {time.perf_counter() - begin:.1f} s")

# %% Cumulative distributions: the line is theory, the steps are the protocol, the band is what chance alone would do
# Dvoretzky, Kiefer and Wolfowitz: a measured CDF of n samples stays within this of the true one, 99 times of 100.
band = np.sqrt(np.log(2 / 0.01) / (2 * runs))
figure, axes = plt.subplots(2, 2, figsize=(10, 8), sharey=True)
for axis, (name, result) in zip(axes.flat, simulated.items()):
    times = np.sort(result.completion)
    longest = max(float(times[-1]), float(result.theory.quantile(0.999)))
    grid = np.linspace(0.98 * float(min(times[0], result.theory.lossless)), 1.02 * longest, 1000)
    theory = np.asarray(result.theory.cdf(grid))
    axis.fill_between(grid * 1e3, theory - band, theory + band, color="0.85", label="99 % band of theory")
    axis.plot(grid * 1e3, theory, color="black", linewidth=1.2, label="theory")
    done = np.arange(1, runs + 1) / runs
    axis.step(times * 1e3, done, where="post", color=COLOURS[name], linewidth=2, label="protocol, simulated")
    axis.set(title=name, ylim=(-0.02, 1.02))
    axis.grid(alpha=0.3)
axes[0, 0].legend(loc="lower right")
for axis in axes[1]:
    axis.set_xlabel("completion time, ms")
for axis in axes[:, 0]:
    axis.set_ylabel("share of Writes complete")
figure.suptitle(about)
figure.savefig(options.out / "cdf.png")
plt.close(figure)

# %% Quantiles against quantiles: on the diagonal the two agree; above it the protocol is slower
# Times come in clusters, one for each round of repeats. A point far off to the side of two clusters is a share that
# falls into the one by theory and into the other by chance.
figure, axes = plt.subplots(2, 2, figsize=(10, 8.6))
shares = (np.arange(runs) + 0.5) / runs
for axis, (name, result) in zip(axes.flat, simulated.items()):
    expected = np.asarray(result.theory.quantile(shares)) * 1e3
    measured = np.sort(result.completion) * 1e3
    ends = [min(expected[0], measured[0]), max(expected[-1], measured[-1])]
    axis.plot(ends, ends, color="black", linewidth=1, label="the same")
    axis.plot(expected, measured, "o", markersize=4, alpha=0.5, color=COLOURS[name], label="quantiles")
    axis.set(title=name, xlabel="theory, ms", ylabel="protocol, ms")
    axis.locator_params(nbins=6)
    axis.grid(alpha=0.3)
axes[0, 0].legend(loc="upper left")
figure.suptitle(about)
figure.savefig(options.out / "qq.png")
plt.close(figure)

# %% How far off, and is it chance? The mean with its standard error, and the tail
print("scheme        theory ms  protocol ms      mean      +-      p99  repeats  fallbacks")
figure, axis = plt.subplots(figsize=(8, 4.5))
for place, (name, result) in enumerate(simulated.items()):
    mean = result.theory.mean
    difference = result.mean / mean - 1
    error = result.completion.std(ddof=1) / np.sqrt(runs) / mean
    tail = result.quantile(0.99) / result.theory.quantile(0.99) - 1
    again = result.chunks_retransmitted.mean()
    print(
        f"{name:12} {mean * 1e3:10.3f} {result.mean * 1e3:12.3f} {difference:+9.2%} {error:7.2%} {tail:+8.2%}"
        f" {again:8.1f} {result.fallbacks.mean():10.3f}"
    )
    colour = COLOURS[name]
    axis.errorbar(place - 0.08, difference * 100, yerr=300 * error, fmt="o", markersize=8, capsize=5, color=colour)
    axis.plot(place + 0.08, tail * 100, marker="^", markersize=9, color=colour)
axis.plot([], [], "o", color="0.4", label="mean, with three standard errors")
axis.plot([], [], "^", color="0.4", label="99th percentile")
axis.axhspan(-5, 5, color="0.92", label="within 5 %")
axis.axhline(0, color="black", linewidth=1)
axis.set_xticks(range(len(schemes)), schemes)
axis.set_ylabel("protocol over theory - 1, %")
axis.set_title(about, fontsize=11)
axis.legend()
axis.grid(alpha=0.3, axis="y")
figure.savefig(options.out / "difference.png")
plt.close(figure)
print(f"wrote cdf.png, qq.png, difference.png to {options.out}")
