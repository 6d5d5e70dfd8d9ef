#!/usr/bin/env python3
"""Measures what docs/performance.md shows, and writes it there.

  bench/run_all.py                    everything, in less than 15 minutes
  bench/run_all.py coding worker      only these
  bench/run_all.py --tables           no measurement: the page anew from bench/results

Each part writes bench/results/<part>.json with the machine and the day; bench/tables.py makes the tables and the
pictures of docs/performance.md from all of them. A machine that does other work meanwhile spoils the figures: what is
compared is measured by turns, but noise stays noise.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import peers as races
import tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
MIB = 1 << 20


def output(command, seconds=300, env=None, quiet=None):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=quiet, text=True, timeout=seconds,
                          env={**os.environ, **(env or {})})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout


def output_json(command, seconds=300):
    text = output(command, seconds)
    return json.loads(text[text.index("{"):])


class Bench:
    def __init__(self, build, rounds):
        self.build = build
        self.sdr = build / "sdr"
        self.machine = races.Machine(build)
        self.rounds = rounds
        self.cores = sorted(os.sched_getaffinity(0))

    def google(self, program, *options):
        return output_json([self.build / "bench" / program, "--benchmark_format=json", *options])["benchmarks"]

    def ends(self):
        """Cores for the two ends of a run: of their own where there are two."""
        return self.cores[0], self.cores[-1]

    def perf(self, *options):
        """`sdr perf` between two processes of this machine, each pinned to a core."""
        sender, receiver = self.ends()
        port = 20000 + time.time_ns() % 20000
        pin = ["taskset", "-c"]
        listener = subprocess.Popen([str(word) for word in [*pin, receiver, self.sdr, "perf", "--listen",
                                                            f"127.0.0.1:{port}", "--once"]],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            # It says where it listens before it does anything else.
            listener.stderr.readline()
            return output_json([*pin, sender, self.sdr, "perf", f"127.0.0.1:{port}", "--json", *options])
        finally:
            listener.terminate()
            listener.communicate(timeout=10)

    def bare(self, payload, *options):
        sender, receiver = self.ends()
        return output_json([self.build / "bench" / "bare_udp", "--payload", payload, "--bytes", "2GiB", "--cpu",
                            f"{sender},{receiver}", *options])


# --- the parts: each gives what goes into its file, beside the machine ---


def coding(bench):
    alone = output_json([bench.sdr, "bench", "coding", "--json", "--runs", bench.rounds, "--cpu", bench.cores[-1]])
    by_cores = []
    for cores in range(1, len(bench.cores) + 1):
        run = output_json([bench.sdr, "bench", "coding", "--json", "--no-tail", "--runs", bench.rounds,
                           "--threads", cores, "--cpu", ",".join(map(str, bench.cores[:cores]))])
        by_cores.append({"cores": cores, "rs_32_8": run["rs_32_8"], "xor_32_8": run["xor_32_8"]})
    return {**alone, "by_cores": by_cores}


def worker(bench):
    cpu = bench.cores[-1]
    summary = output_json([bench.sdr, "bench", "worker", "--json", "--runs", bench.rounds, "--cpu", cpu])
    runs = bench.google("worker_bench", f"--benchmark_repetitions={bench.rounds}", "--benchmark_min_time=0.05",
                        "--benchmark_enable_random_interleaving=true", "--benchmark_report_aggregates_only=true")
    grid = {run["run_name"]: run["items_per_second"] / 1e6 for run in runs if run["aggregate_name"] == "median"}
    return {**summary, "grid_mpps": grid}


def turnaround(bench):
    cpu = bench.cores[-1]
    summary = output_json([bench.sdr, "bench", "turnaround", "--json", "--runs", bench.rounds, "--cpu", cpu])
    runs = bench.google("udp_message_bench", f"--benchmark_repetitions={bench.rounds}",
                        "--benchmark_enable_random_interleaving=true", "--benchmark_report_aggregates_only=true")
    small = {run["run_name"]: run["real_time"] for run in runs if run["aggregate_name"] == "median"}
    return {**summary, "udp_64_bytes_ns": small}


def loopback(bench):
    cells = {
        "bare": [],
        "bare, in memory": ["--memory", "8MiB,256MiB"],  # what `sdr perf` reads and fills
        "none": ["--scheme", "none"],
        "none, not verified": ["--scheme", "none", "--no-verify"],
        "none, 512 KiB": ["--size", "512KiB", "--iters", 4096, "--scheme", "none"],
        "adaptive": ["--scheme", "adaptive"],
        "tcp": None,
    }
    rows = []
    for payload in (1440, 4096):
        runs = {name: [] for name in cells}
        calls = {}
        for _ in range(bench.rounds):
            for name, options in cells.items():
                if name.startswith("bare"):
                    runs[name].append(bench.bare(payload, *options)["goodput_gbps"])
                elif name == "tcp":
                    if shutil.which("iperf3"):
                        runs[name].append(races.loop_tcp(bench.machine, 1))
                else:
                    size = [] if "--size" in options else ["--size", "8MiB", "--iters", 256]
                    run = bench.perf("--mtu", payload, "--inflight", 16, *size, *options)
                    runs[name].append(run["goodput_gbps"])
                    calls[name] = {key: run[key] for key in ("send_calls_per_packet", "receive_calls_per_packet")
                                   if key in run}
        rows.append({"payload": payload, "gbps": runs, "calls": calls})
    return {"rows": rows}


def kernel(bench):
    """Other ways into the kernel than UDP_SEGMENT, bare (docs/decisions/0006-udp-data-path.md)."""
    rows = []
    for payload in (1440, 3400):
        runs = {"UDP_SEGMENT": [], "UDP_SEGMENT, MSG_ZEROCOPY": [], "AF_XDP": []}
        copied = 0.0
        for _ in range(bench.rounds):
            runs["UDP_SEGMENT"].append(bench.bare(payload)["goodput_gbps"])
            run = bench.bare(payload, "--zerocopy")
            copied = run["copied"]
            runs["UDP_SEGMENT, MSG_ZEROCOPY"].append(run["goodput_gbps"])
            if os.geteuid() == 0:
                run = output_json([bench.build / "bench" / "bare_xdp", "--payload", payload, "--seconds", 1])
                runs["AF_XDP"].append(run["goodput_gbps"])
        rows.append({"payload": payload, "gbps": runs, "copied_by_the_kernel": copied})
    return {"rows": rows}


def throughput(bench):
    """Figure 14: throughput against message size, 16 in flight, 64 KiB chunks; and against the number of sockets."""
    # The smaller the message the more of them, within bounds of time.
    fixed = ["--mtu", 4096, "--chunk", "16p", "--inflight", 16, "--scheme", "none", "--no-verify"]
    by_size = []
    for exponent in range(12, 25):
        size = 1 << exponent
        count = min(max((1 << 30) // size, 64), 16384)
        runs = [bench.perf("--size", size, "--iters", count, *fixed)["goodput_gbps"] for _ in range(3)]
        by_size.append({"bytes": size, "gbps": runs})
    by_sockets = []
    for sockets in (1, 2, 4):
        runs = [bench.perf("--size", "16MiB", "--iters", 64, "--channels", sockets, *fixed)["goodput_gbps"]
                for _ in range(3)]
        by_sockets.append({"sockets": sockets, "gbps": runs})
    return {"by_size": by_size, "by_sockets": by_sockets}


def simulator(bench):
    def items(program, *options):
        runs = bench.google(program, *options)
        return {run["name"]: {"packets_per_second": run.get("packets/s"), "real_time": run["real_time"],
                              "unit": run["time_unit"]} for run in runs}
    return {"sim": items("sim_bench", "--benchmark_min_time=0.1"),
            "model": items("model_bench", "--benchmark_min_time=0.1")}


def instructions(bench):
    """User-space instructions a packet, as valgrind counts them: what 64 MiB more cost, so that set-up falls out."""
    if not shutil.which("valgrind"):
        return {"missing": "valgrind"}

    def counted(payload, scheme, iterations):
        folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"sdr-instructions-{os.getpid()}"
        folder.mkdir()
        try:
            output(["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={folder}/%p",
                    "--quiet", bench.sdr, "perf", "--self", "--json", "--mtu", payload, "--size", "1MiB", "--iters",
                    iterations, "--inflight", 4, "--scheme", scheme, "--no-verify"], 300, quiet=subprocess.DEVNULL)
            return sum(int(re.search(r"^(?:summary|totals): (\d+)", file.read_text(), re.M).group(1))
                       for file in folder.iterdir())
        finally:
            shutil.rmtree(folder)

    rows = []
    for payload in (1440, 4096):
        for scheme in ("none", "adaptive"):
            few, many = (counted(payload, scheme, n) for n in (16, 80))
            rows.append({"payload": payload, "scheme": scheme,
                         "instructions_per_packet": round((many - few) / (64 * MIB / payload), 1)})
    return {"rows": rows}


def peers(bench):
    script = ROOT / "bench" / "peers.py"
    common = [sys.executable, script, "--build", bench.build, "--out", RESULTS]
    output([*common, "bulk", "--rtt", 50, "--seconds", 12, "--rounds", 1], 900)
    # CUBIC takes minutes for large messages at these losses.
    output([*common, "messages", "--size", 1, "--size", 16, "--count", 60, "--rounds", 1, "--peers", "sdr adaptive",
            "--peers", "tcp bbr"], 600)
    return None


PARTS = {part.__name__: part for part in
         (coding, worker, turnaround, loopback, kernel, throughput, simulator, instructions, peers)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; none: all")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="where sdr and bench/ are")
    parser.add_argument("--rounds", type=int, default=5, help="of everything that is measured by turns")
    parser.add_argument("--tables", action="store_true", help="make the page from what was measured before")
    given = parser.parse_args()
    unknown = [name for name in given.part if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    failed = []
    if not given.tables:
        bench = Bench(given.build, given.rounds)
        RESULTS.mkdir(parents=True, exist_ok=True)
        for name in given.part or PARTS:
            began = time.monotonic()
            load = os.getloadavg()[0]
            try:
                measured = PARTS[name](bench)
            except (RuntimeError, subprocess.TimeoutExpired, KeyError, ValueError, OSError) as error:
                failed.append(name)
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                continue
            if measured is not None:
                machine = {**bench.machine.describe(), "load_before": round(load, 2)}
                result = {"part": name, "machine": machine, **measured}
                (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    tables.write(ROOT / "docs" / "performance.md", RESULTS)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
