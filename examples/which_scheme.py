#!/usr/bin/env python3
"""Which scheme for my link? The architect's question, as a notebook in a script: cells begin with # %%.

    python3 examples/which_scheme.py --rtt 25ms --rate 400Gbit --loss 1e-3 --size 128MiB --out figures

Writes slowdown.png, percentiles.png and plan.png, and prints the plan. Needs the module sdr, NumPy and matplotlib;
everything here is theory, so it takes a few seconds.
"""

# %% The link and the message in question
import argparse
import os
import pathlib
import time

import matplotlib

if not os.environ.get("DISPLAY"):
    matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter, NullFormatter

import sdr

parser = argparse.ArgumentParser(description="Which scheme for my link?")
parser.add_argument("--rtt", default="25ms", help="round-trip time")
parser.add_argument("--rate", default="400Gbit", help="rate of the path")
parser.add_argument("--loss", type=float, default=1e-3, help="share of packets lost")
parser.add_argument("--burst", type=float, default=1.0, help="mean run of lost packets")
parser.add_argument("--size", default="128MiB", help="length of a Write")
parser.add_argument("--budget", default="30%", help="bytes that parity may add")
parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."), help="folder for the PNGs")
parser.add_argument("--quick", action="store_true", help="coarse grids, for a test")
options, _ = parser.parse_known_args()
options.out.mkdir(parents=True, exist_ok=True)

path = sdr.Path(options.rtt, options.rate, options.loss, options.burst)
size = sdr.size_bytes(options.size)

# One colour and one line for each scheme: the palette of Okabe and Ito, which colour-blind people can tell apart.
STYLES = {
    "sr-rto": {"color": "#D55E00", "linestyle": "--"},
    "sr-nack": {"color": "#E69F00", "linestyle": "-."},
    "ec-xor": {"color": "#56B4E9", "linestyle": ":"},
    "ec-rs": {"color": "#0072B2", "linestyle": "-"},
}
plt.rcParams.update({"font.size": 11, "lines.linewidth": 2, "savefig.dpi": 130, "figure.constrained_layout.use": True})


def size_text(count: float, _: object = None) -> str:
    for unit, scale in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= scale:
            return f"{count / scale:g} {unit}"
    return f"{count:g} B"


about = f"RTT {path.rtt * 1e3:g} ms, {path.rate / 1e9:g} Gbit/s"
if path.burst > 1:
    about += f", losses in runs of {path.burst:g}"

# %% Slowdown over size and loss: four maps on one scale
sizes = 2.0 ** np.linspace(17, 37, 11 if options.quick else 61)
losses = np.logspace(-7, -1, 9 if options.quick else 49)
begin = time.perf_counter()
maps = {
    name: sdr.slowdown(sizes[:, None], losses, rtt=path.rtt, rate=path.rate, burst=path.burst, scheme=name)
    for name in STYLES
}
cells = sum(m.size for m in maps.values())
print(f"{cells} means in {time.perf_counter() - begin:.2f} s")

highest = max(float(m.max()) for m in maps.values())
levels = np.geomspace(1, max(highest, 1.5), 17)
scale = matplotlib.colors.LogNorm(1, levels[-1])
figure, axes = plt.subplots(2, 2, figsize=(10, 8), sharex=True, sharey=True)
for axis, (name, slowdown) in zip(axes.flat, maps.items()):
    filled = axis.contourf(losses, sizes, slowdown, levels=levels, norm=scale, cmap="cividis")
    lines = axis.contour(losses, sizes, slowdown, levels=[1.1, 1.5, 2, 3, 5, 8], colors="white", linewidths=0.8)
    axis.clabel(lines, fmt="%gx", fontsize=9)
    axis.plot(path.loss, size, marker="*", markersize=15, color="white", markeredgecolor="black")
    axis.set(xscale="log", title=f"{name}{' (32, 8)' if name.startswith('ec') else ''}")
    axis.set_xticks([1e-6, 1e-4, 1e-2])
    axis.set_yscale("log", base=2)
    axis.yaxis.set_major_formatter(FuncFormatter(size_text))
    axis.yaxis.set_minor_formatter(NullFormatter())
for axis in axes[1]:
    axis.set_xlabel("share of packets lost")
for axis in axes[:, 0]:
    axis.set_ylabel("size of the Write")
bar = figure.colorbar(filled, ax=axes, ticks=[t for t in (1, 1.5, 2, 3, 5, 8, 12) if t <= levels[-1]])
bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
bar.ax.yaxis.set_minor_formatter(NullFormatter())
bar.set_label("mean time / lossless time")
figure.suptitle(f"What losses cost: {about}; the star is the message in question")
figure.savefig(options.out / "slowdown.png")
plt.close(figure)

# %% How late are the late ones? Every percentile of the message in question, straight from the theory
late = np.logspace(0, -5, 60 if options.quick else 400)[1:]  # share of Writes that take longer
figure, axis = plt.subplots(figsize=(8, 5))
for name, style in STYLES.items():
    distribution = sdr.completion_time(path, size, name)
    times = np.asarray(distribution.quantile(1 - late)) * 1e3
    axis.plot(times, late, label=f"{name}: mean {distribution.mean * 1e3:.3g} ms", **style)
    lossless = distribution.lossless
axis.axvline(lossless * 1e3, color="black", linewidth=1)
axis.annotate("lossless", (lossless * 1e3, 2e-5), rotation=90, ha="right", va="bottom")
axis.set(yscale="log", xlabel="completion time, ms", ylabel="share of Writes that take longer")
axis.set_yticks(10.0 ** -np.arange(0, 6), ["all", "1 in 10", "1 in 100", "1 in 1000", "1 in 10⁴", "1 in 10⁵"])
axis.set_title(f"{size_text(size)} at a loss of {path.loss:g}: {about}")
axis.grid(alpha=0.3)
axis.legend()
figure.savefig(options.out / "percentiles.png")
plt.close(figure)

# %% The plan: every scheme tuned for the message, what it costs, and which is best
plan = sdr.plan(path, size, budget=options.budget, measure_encoding=True)
print("   scheme           mean ms  p99.9 ms  slowdown  overhead  fallback  cores")
for planned in plan:
    mark = "->" if planned is plan.best else "!" if not planned.within_budget else ""
    cores = "?" if planned.encode_cores is None else f"{planned.encode_cores:.1f}"
    print(
        f"{mark:2} {planned.scheme:14} {planned.mean * 1e3:9.2f} {planned.p999 * 1e3:9.2f} {planned.slowdown:8.2f}x"
        f" {planned.overhead:9.2%} {planned.fallback:9.1e} {cores:>6}"
    )
print(plan.reason)

figure, axis = plt.subplots(figsize=(8, 5))
places = np.arange(len(plan))[::-1]
for place, planned in zip(places, plan):
    colour = STYLES.get(planned.name, {"color": "#009E73"})["color"]
    axis.barh(place, planned.p999 * 1e3, color=colour, alpha=0.35)
    axis.barh(place, planned.mean * 1e3, color=colour)
    note = f" +{planned.overhead:.1%} bytes" + ("" if planned.within_budget else ", over budget")
    axis.text(planned.p999 * 1e3, place, note, va="center", fontsize=10)
axis.axvline(plan.ideal * 1e3, color="black", linewidth=1, label="lossless")
axis.set_yticks(places, [f"{p.scheme}{'  (best)' if p is plan.best else ''}" for p in plan])
axis.set_xlim(0, max(p.p999 for p in plan) * 1e3 * 1.3)
axis.set_xlabel("completion time, ms: dark the mean, light the 99.9th percentile")
axis.set_title(f"{size_text(size)} at a loss of {path.loss:g}: {about}")
axis.legend(loc="lower right")
figure.savefig(options.out / "plan.png")
plt.close(figure)
print(f"wrote slowdown.png, percentiles.png, plan.png to {options.out}")
