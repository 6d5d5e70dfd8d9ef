#!/usr/bin/env python3
"""Figures 15 and 16 of the paper, on the offload devices that there are: packet rate against chunk size and against
threads on the host device, and instructions a packet on the riscv device, as JSON and as a picture (gnuplot).

  bench/offload_figures.py BUILD --out bench/results/offload.json --picture docs/images/offload-rate.png
"""

import argparse
import json
import pathlib
import subprocess
import sys

# Measured by the authors on a BlueField-3 (figures 15 and 16); a rate in Tbit/s is of packets of 4 KiB.
PAPER_BY_CHUNK = [(1, 15.0), (64, 24.5)]  # 16 threads
PAPER_BY_THREADS = [(16, 0.4e6 / 8 / 4096), (32, 1.6e6 / 8 / 4096), (128, 3.2e6 / 8 / 4096)]

COUNTED = [
    ("in order, clean, one ring", ["--clean", "--channels", "1"]),
    ("in order, clean, four rings", ["--clean"]),
    ("the same, chunks of 1 packet", ["--clean", "--chunk-packets", "1"]),
    ("in order with faults, four rings", []),
    ("mix, clean, four rings", ["--order", "mix", "--clean"]),
    ("mix with faults, four rings", ["--order", "mix"]),
    ("the same, chunks of 1 packet", ["--order", "mix", "--chunk-packets", "1"]),
]


def rates(build, rounds):
    out = subprocess.run([build / "bench" / "offload_rate", str(rounds)], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def counts(build, threads, packets):
    plugin = build / "sdr_guest_counts.so"
    if not plugin.exists():
        return None
    found = []
    for name, options in COUNTED:
        if threads > 1 and "one ring" in name:
            continue
        out = subprocess.run(
            [build / "sdr", "offload", "--device", "riscv", "--threads", str(threads), "--packets", str(packets),
             "--counts", plugin, "--json", *options], check=True, capture_output=True, text=True)
        report = json.loads(out.stdout)
        found.append({"traffic": name, "threads": threads, "verified": report["verified"],
                      "per_packet": report["guest"]["per_packet"],
                      "host_writes_per_chunk": report["guest"]["host_writes_per_chunk"],
                      "packets_a_batch": report["device_counts"]["completions"] / report["device_counts"]["batches"]})
    return found


def plot(report, picture):
    lines = ["set terminal pngcairo size 1100,430 font 'sans,10'", f"set output '{picture}'",
             "set multiplot layout 1,2", "set logscale xy", "set grid", "set key bottom right", "set yrange [5:1000]",
             "set ylabel 'million packets a second'"]

    def block(name, points):
        rows = "\n".join(f"{x} {y}" for x, y in points)
        lines.append(f"${name} << EOD\n{rows}\nEOD")

    def by_chunk(threads):
        return [(r["chunk_packets"], r["mpps"]) for r in report["host"] if r["threads"] == threads]

    def by_threads(chunk):
        return sorted((r["threads"], r["mpps"]) for r in report["host"] if r["chunk_packets"] == chunk)

    for name, points in (("c1", by_chunk(1)), ("c2", by_chunk(2)), ("paper_chunk", PAPER_BY_CHUNK),
                         ("t1", by_threads(1)), ("t64", by_threads(64)), ("paper_threads", PAPER_BY_THREADS)):
        block(name, points)
    lines += ["set title 'packet rate by chunk size (figure 15)'", "set xlabel 'packets a chunk'",
              "set xtics (1, 2, 4, 8, 16, 32, 64)", "set xrange [0.9:72]",
              "plot $c1 with linespoints lw 2 pt 7 title 'host device, 1 thread', "
              "$c2 with linespoints lw 2 pt 5 title 'host device, 2 threads', "
              "$paper_chunk with linespoints dt 2 pt 9 title 'paper, 16 DPA threads'",
              "set title 'packet rate by threads (figure 16)'", "set xlabel 'device threads'",
              "set xtics (1, 2, 4, 8, 16, 32, 64, 128)", "set xrange [0.9:150]",
              "plot $t1 with linespoints lw 2 pt 7 title 'host device, chunks of 1 packet', "
              "$t64 with linespoints lw 2 pt 5 title 'host device, chunks of 64', "
              "$paper_threads with linespoints dt 2 pt 9 title 'paper, DPA'"]
    subprocess.run(["gnuplot"], input="\n".join(lines), check=True, text=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--packets", type=int, default=1_000_000, help="of a count")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path)
    options = parser.parse_args()
    machine = json.loads(subprocess.run(
        [options.build / "sdr", "offload", "--packets", "1000", "--json"], check=True, capture_output=True,
        text=True).stdout)
    report = {key: machine[key] for key in ("cpu", "kernel", "date", "cores")}
    report["rounds"] = options.rounds
    report["host"] = rates(options.build, options.rounds)
    report["riscv"] = [count for threads in (1, 4) for count in counts(options.build, threads, options.packets) or []]
    report["paper"] = {"by_chunk_16_threads": PAPER_BY_CHUNK, "by_threads": PAPER_BY_THREADS}
    text = json.dumps(report, indent=2)
    if options.out:
        options.out.write_text(text + "\n")
    else:
        print(text)
    if options.picture:
        plot(report, options.picture)


if __name__ == "__main__":
    sys.exit(main())
