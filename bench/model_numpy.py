#!/usr/bin/env python3
"""The model's Monte Carlo as one would write it in NumPy, and how much longer it takes.

The grid is that of model_bench: 25 sizes from 128 KiB to 32 GiB by 25 losses from 1e-8 to 1e-1 on a path of 25 ms and
400 Gbit/s with chunks of 4 KiB. A cell is sampled for at most --seconds-per-cell and its time scaled to 1000 samples;
the sum says how long the grid would take on one core.

  model_numpy.py                             time of the grid, selective repeat and MDS (32, 8)
  model_numpy.py --model-bench PATH          runs model_bench beside it and prints the ratio (it has 2 threads)
"""
import argparse
import json
import subprocess
import time

import numpy as np

RTT = 25e-3
CHUNK = 4096
INJECTION = CHUNK * 8 / 400e9
PERIOD = 3 * RTT + INJECTION
BETA = 0.5
K, M = 32, 8
SAMPLES = 1000


def selective_repeat(rng, chunks, loss):
    """One draw of max X_i: lost chunks, where they are, how often each is lost."""
    lost = rng.binomial(chunks, loss)
    if lost == 0:
        return chunks * INJECTION
    places = rng.integers(1, chunks + 1, lost)
    losses = rng.geometric(1 - loss, lost)
    return max(chunks * INJECTION, float(np.max(places * INJECTION + losses * PERIOD)))


def sr_rto(rng, chunks, loss):
    return selective_repeat(rng, chunks, loss) + RTT


def ec_rs(rng, chunks, loss):
    whole, last = divmod(chunks, K)
    last_parity = -(-last * M // K)
    again = K * int(np.count_nonzero(rng.binomial(K + M, loss, whole) > M))
    if last and rng.binomial(last + last_parity, loss) > last_parity:
        again += last
    injected = (chunks + whole * M + last_parity) * INJECTION
    if again == 0:
        return injected + RTT
    return injected + (1 + BETA) * RTT + selective_repeat(rng, again, loss) + RTT


def time_of_cell(draw, rng, chunks, loss, budget):
    """Seconds for SAMPLES samples, scaled from as many as fit into the budget."""
    begin = time.perf_counter()
    done = 0
    while done < SAMPLES:
        draw(rng, chunks, loss)
        done += 1
        if time.perf_counter() - begin > budget:
            break
    return (time.perf_counter() - begin) * SAMPLES / done


def time_of_grid(draw, budget):
    rng = np.random.default_rng(1)
    sizes = np.geomspace(128 * 1024, 32 * 1024**3, 25)
    losses = np.geomspace(1e-8, 1e-1, 25)
    return sum(time_of_cell(draw, rng, int(-(-size // CHUNK)), loss, budget) for size in sizes for loss in losses)


def times_of_model(program):
    run = subprocess.run([program, "--benchmark_filter=grid/32GiB", "--benchmark_format=json"],
                         check=True, capture_output=True, text=True)
    return {b["name"].split("/")[2]: b["real_time"] for b in json.loads(run.stdout)["benchmarks"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds-per-cell", type=float, default=0.02)
    parser.add_argument("--model-bench", metavar="PATH")
    arguments = parser.parse_args()
    model = times_of_model(arguments.model_bench) if arguments.model_bench else {}
    for name, draw in (("sr-rto", sr_rto), ("ec-rs", ec_rs)):
        seconds = time_of_grid(draw, arguments.seconds_per_cell)
        line = f"{name}: NumPy {seconds:.1f} s for {25 * 25} cells of {SAMPLES} samples"
        if name in model:
            line += f", model_bench {model[name]:.2f} s, ratio {seconds / model[name]:.0f}"
        print(line)


if __name__ == "__main__":
    main()
