#!/usr/bin/env python3
"""Holds libsdr's rate control against what it promises (docs/rate-control.md), alone and beside others.

  bench/rate_control.py sim    every case in virtual time (`sdr sim --flow`), up to 10 Gbit/s
  bench/rate_control.py path   those that one machine can carry, over `sdr emulate`: real sockets, the kernel's own TCP

Each case is a path, its flows, and what must hold. Writes bench/results/rate-control-sim.json or -path.json, and a
table in Markdown to stdout. `path` needs root (or user namespaces) and iperf3.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import peers

ROOT = peers.ROOT
PAYLOAD = peers.SDR_PAYLOAD / peers.MTU
ONE_BDP = "drop-tail,limit=1bdp"


@dataclass
class Flow:
    kind: str = "model"  # or background, tcp-cubic, tcp-bbr
    start: float = 0
    rtt_ms: float = 0  # 0: the path's

    @property
    def ours(self):
        return not self.kind.startswith("tcp-")


@dataclass
class Case:
    name: str
    mbps: float
    rtt_ms: float
    flows: list
    seconds: float
    checks: list  # (what, function of the outcome, least or most, limit)
    loss: float = 0
    queue: str = ONE_BDP
    changes: tuple = ()
    outage: str = ""
    on_path: bool = False  # also over the emulated path
    groups: str = ""
    rates: list = field(default_factory=list)  # (from, mbps), derived

    def __post_init__(self):
        self.rates = [(0, self.mbps)]
        for at, keys in self.changes:
            for key in keys.split(","):
                if key.startswith("rate="):
                    self.rates.append((at, float(key[5:-4])))

    @property
    def link(self):
        text = f"rtt={self.rtt_ms}ms,rate={self.mbps}Mbit,mtu={peers.MTU}"
        text += f",loss={self.loss}" if self.loss else ""
        return text + (f",outage={self.outage}" if self.outage else "")

    def capacity(self, begin, end):
        """Bytes; what an outage takes is in it."""
        total = 0
        for i, (at, mbps) in enumerate(self.rates):
            until = self.rates[i + 1][0] if i + 1 < len(self.rates) else float("inf")
            total += max(0, min(end, until) - max(begin, at)) * mbps * 1e6 / 8
        return total


@dataclass
class Outcome:
    case: Case
    interval: float
    wire: list  # for each flow the bytes of each interval
    goodput: list  # Mbit/s of payload of each interval, or None where it is not known
    queue_ms: list  # of each interval, or None
    lost_by_queue: float  # share of the first flow's packets, or None
    dropped_bytes: float
    facts: dict

    def _sum(self, series, begin, end):
        total = 0
        for n, value in enumerate(series):
            part = min(end, (n + 1) * self.interval) - max(begin, n * self.interval)
            total += value * max(0, part) / self.interval
        return total

    def share(self, flow, begin, end):
        return self._sum(self.wire[flow], begin, end) / self.case.capacity(begin, end)

    def of_possible(self, flow, begin, end):
        """Payload, of what packets of the MTU carry when so many are lost."""
        possible = self.case.capacity(begin, end) * PAYLOAD * (1 - self.case.loss)
        if self.goodput[flow] is None:
            return self._sum(self.wire[flow], begin, end) * PAYLOAD / possible
        return self._sum([g * 1e6 / 8 * self.interval for g in self.goodput[flow]], begin, end) / possible

    def jain(self, begin, end):
        rates = [self._sum(w, begin, end) for w in self.wire]
        return sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates)) if any(rates) else 0

    def queue(self, begin, end):
        if self.queue_ms is None:
            return self.facts["path"]["wait_ms_mean"]
        return self._sum(self.queue_ms, begin, end) * self.interval / (end - begin)

    def slowest_second(self, flow, begin, end):
        steps = int((end - begin - 1) / 0.5) + 1
        return min(self.share(flow, begin + s / 2, begin + s / 2 + 1) for s in range(steps))


def settled(rtt_ms):
    return min(2.0, 10 * rtt_ms / 1e3)


def standing(rtt_ms):
    return max(15.0, rtt_ms / 4)


def alone(mbps, rtt, loss, on_path):
    begin, end = settled(rtt), max(5.0, settled(rtt) + 3)
    end = 12.0 if on_path else end
    limit = max(rtt, 10)
    buffer = mbps * 1e6 / 8 * limit / 1e3
    return Case(f"alone {mbps} Mbit/s, {rtt} ms, loss {loss}", mbps, rtt, [Flow()], end,
                [("of possible", lambda o: o.of_possible(0, begin, end), ">=", 0.93),
                 ("queue, ms", lambda o: o.queue(begin, end), "<=", standing(rtt)),
                 ("dropped, buffers", lambda o: o.dropped_bytes / buffer, "<=", 1.02)],
                loss=loss, queue=f"drop-tail,limit={limit}ms", on_path=on_path, groups="alone")


def beside(kind, ours, theirs):
    begin = max(ours, theirs)
    when = "together" if ours == theirs else f"{kind} {abs(ours - theirs)} s {'later' if theirs > ours else 'earlier'}"
    return Case(f"beside {kind}, {when}", 100, 20, [Flow("model", ours), Flow(kind, theirs)], begin + 30,
                [("share of ours", lambda o: o.share(0, begin, begin + 30), ">=", 0.25),
                 (f"share of {kind}", lambda o: o.share(1, begin, begin + 30), ">=", 0.25)],
                on_path=True, groups="beside")


def cases():
    made = []
    for mbps in (10, 100, 1000, 10000):
        for rtt in (1, 20, 100, 200):
            for loss in (0, 1e-4, 1e-3, 1e-2):
                # One machine carries 1 Gbit/s between its ends when it has the cores to itself.
                on_path = mbps <= 1000 and loss in (0, 1e-2)
                made.append(alone(mbps, rtt, loss, on_path))
    made.append(Case("policer", 100, 20, [Flow()], 20,
                     [("of possible", lambda o: o.of_possible(0, 2, 20), ">=", 0.85),
                      ("lost", lambda o: o.lost_by_queue, "<=", 0.05)], queue="policer", on_path=True,
                     groups="policer"))
    made.append(Case("codel, ecn", 100, 20, [Flow()], 15,
                     [("of possible", lambda o: o.of_possible(0, 1, 15), ">=", 0.9),
                      ("queue, ms", lambda o: o.queue(1, 15), "<=", 15)], queue="codel,ecn", on_path=True,
                     groups="ecn"))
    for kind in ("tcp-bbr", "tcp-cubic"):
        for ours, theirs in ((0, 0), (0, 5), (5, 0)):
            made.append(beside(kind, ours, theirs))
    made.append(Case("two of ours, the second 5 s later", 100, 20, [Flow(), Flow("model", 5)], 30,
                     [("Jain, 5 to 10 s on", lambda o: o.jain(10, 15), ">=", 0.95),
                      ("Jain, later", lambda o: o.jain(15, 30), ">=", 0.95),
                      ("used", lambda o: o.share(0, 10, 30) + o.share(1, 10, 30), ">=", 0.93)], on_path=True,
                     groups="ours"))
    made.append(Case("two of ours, RTTs of 20 and 80 ms", 100, 20, [Flow(), Flow("model", 0, 80)], 30,
                     [("Jain", lambda o: o.jain(5, 30), ">=", 0.8),
                      ("used", lambda o: o.share(0, 5, 30) + o.share(1, 5, 30), ">=", 0.93)], groups="ours"))
    made.append(Case("background beside tcp-cubic", 100, 20, [Flow("background"), Flow("tcp-cubic", 5)], 35,
                     [("share of ours", lambda o: o.share(0, 5, 35), "<=", 0.15)], on_path=True,
                     groups="background"))
    made.append(Case("background alone", 100, 20, [Flow("background")], 20,
                     [("of possible", lambda o: o.of_possible(0, 2, 20), ">=", 0.9)], on_path=True,
                     groups="background"))
    made.append(Case("rate drops tenfold and returns", 100, 20, [Flow()], 30,
                     [("low, from 2 s on", lambda o: o.share(0, 12, 20), ">=", 0.93),
                      ("back, from 2 s on", lambda o: o.share(0, 22, 30), ">=", 0.93),
                      ("slowest second", lambda o: min(o.slowest_second(0, 12, 20), o.slowest_second(0, 22, 30)),
                       ">=", 0.5)],
                     changes=((10, "rate=10Mbit"), (20, "rate=100Mbit")), on_path=True, groups="changes"))
    made.append(Case("dark for 3 s", 100, 20, [Flow()], 16,
                     [("back, from 2 s on", lambda o: o.share(0, 10, 16), ">=", 0.93),
                      ("slowest second", lambda o: o.slowest_second(0, 9, 16), ">=", 0.5)], outage="5s+3s",
                     on_path=True, groups="changes"))
    made.append(Case("RTT triples and returns", 100, 20, [Flow()], 25,
                     [("far, from 2 s on", lambda o: o.share(0, 7, 15), ">=", 0.93),
                      ("back, from 2 s on", lambda o: o.share(0, 17, 25), ">=", 0.93),
                      ("slowest second", lambda o: o.slowest_second(0, 6, 25), ">=", 0.5)],
                     changes=((5, "rtt=60ms"), (15, "rtt=20ms")), on_path=True, groups="changes"))
    return made


def run_sim(sdr, case, seed):
    command = [sdr, "sim", "--link", case.link, "--queue", case.queue, "--duration", f"{case.seconds}s", "--json",
               "--series", "--speed", "--interval", "50ms", "--seed", str(seed)]
    for at, keys in case.changes:
        command += ["--at", f"{at}s:{keys}"]
    for i, flow in enumerate(case.flows):
        text = flow.kind
        if flow.ours:
            # Writes of ten bandwidth-delay products: the parity of the last round trip is then no matter of the rate.
            size = max(64, case.mbps * case.rtt_ms / 8e3 * 10)
            text = f"sdr,controller={flow.kind},write={size:.0f}MiB"
        # Without losses the seed changes little: other runs are those whose flows meet at other times.
        text += f",start={flow.start * 1000 + 13 * i * (seed - 1)}ms" + (f",rtt={flow.rtt_ms}ms" if flow.rtt_ms else "")
        command += ["--flow", text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-500:]}")
    report = json.loads(done.stdout)
    first = report["flows"][0]
    series = [f["series"] for f in report["flows"]]
    interval = report["interval_s"]
    return Outcome(case, interval, [[r * 1e6 / 8 * interval for r in s["rate_mbps"]] for s in series],
                   [s["goodput_mbps"] for s in series], report["queue_series_ms"],
                   first["dropped_by_queue"] / max(1, first["packets_sent"]),
                   first["dropped_by_queue"] * peers.MTU,
                   {"queue_ms": report["queue_ms"], "drops": report["drops"], "command": " ".join(command[1:]),
                    "mpackets_per_s": round(report["speed"]["packets_per_cpu_second"] / 1e6, 2)})


def run_path(machine, case, given):
    """The receivers and a counter of what comes in are at the left end, the senders at the right one."""
    sampler = machine.tool("peers/peers_flow_rates")
    left, right, keys = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        rates, report, go = (Path(folder) / n for n in ("rates", "report.json", "go"))
        left.append(f"(while ! [ -e {go} ]; do sleep 0.01; done; exec {sampler}) > {rates}")
        right.append(f"sleep 0.5; touch {go}")
        for i, flow in enumerate(case.flows):
            last = case.seconds - flow.start
            if flow.ours:
                port = 7000 + 10 * i
                left.append(f"{machine.sdr} perf --listen $SDR_SELF:{port} --once")
                # Enough Writes under way for four bandwidth-delay products, and enough of them for any machine.
                size = max(1, round(case.mbps * case.rtt_ms / 8e3 / 2))
                mode = given + (" --background" if flow.kind == "background" else "")
                right.append(f"(sleep {flow.start}; timeout -s KILL {last} {machine.sdr} perf $SDR_PEER:{port} {mode} "
                             f"--size {size}MiB --inflight 8 --iters 1000000 --warmup 0 --no-verify; true) &")
                keys.append(f"udp:{port + 1}")
            else:
                port = 5200 + i
                left.append(f"iperf3 -s -1 -p {port}")
                congestion = flow.kind.removeprefix("tcp-")
                right.append(f"(sleep {flow.start}; iperf3 -c $SDR_PEER -p {port} -C {congestion} -t {last}; true) &")
                keys.append(f"tcp:{port}")
        right.append(f"sleep {case.seconds}")
        command = [machine.sdr, "emulate", "--link", case.link, "--queue", case.queue, "--report", str(report),
                   "--timeout", f"{case.seconds + 15}s", "--await-port", keys[0].split(":")[1] if not
                   case.flows[0].ours else "7000"]
        for at, change in case.changes:
            command += ["--at", f"{at + 0.5}s:{change}"]
        for name, value in peers.SYSCTLS.items():
            command += ["--sysctl", f"{name}={value}"]
        command += ["--left", " & ".join(left) + " & wait", "--right", " ".join(
            r if r.endswith("&") else r + ";" for r in right)]
        if case.outage:  # counted from the start of the commands, as the changes are
            begin, length = case.outage.split("+")
            command[3] = case.link.replace(case.outage, f"{float(begin[:-1]) + 0.5}s+{length}")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=case.seconds + 60)
        if not report.exists() or not rates.exists():
            raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-800:]}")
        path = json.loads(report.read_text())
        lines = [json.loads(line) for line in rates.read_text().splitlines() if line.endswith("}")]
    way = path["right_to_left"]
    wire = [[line.get(key, 0) for line in lines] for key in keys]
    if not all(any(w) for w in wire):
        raise RuntimeError(f"nothing came of {keys}: {done.stderr[-800:]}")
    dropped = way["drops"]["queue_full"] + way["drops"]["policer"] + way["drops"]["codel"]
    facts = {"path": {**peers.path_facts(path), "wait_ms_mean": way["wait_ms"]["mean"],
                      "wait_ms_max": way["wait_ms"]["max"], "ecn_marks": way["ecn_marks"]}, "drops": way["drops"]}
    return Outcome(case, 0.1, wire, [None] * len(wire), None, dropped / max(1, way["packets"]), dropped * peers.MTU,
                   facts)


def judged(outcome):
    rows = []
    for what, function, sign, limit in outcome.case.checks:
        value = function(outcome)
        rows.append({"what": what, "value": round(value, 4), "sign": sign, "limit": limit,
                     "holds": value >= limit if sign == ">=" else value <= limit})
    return rows


def worst(runs):
    """Of each check of one case the run that holds it least, and how many hold it."""
    rows = []
    for checks in zip(*runs):
        least = min(checks, key=lambda c: c["value"] if c["sign"] == ">=" else -c["value"])
        rows.append({**least, "held": sum(c["holds"] for c in checks), "of": len(checks)})
    return rows


def table(rows):
    print("| case | measured | limit | |\n| --- | --- | --- | --- |")
    for row in rows:
        if "failed" in row:
            print(f"| {row['case']} | failed: {row['failed'][:80]} | | |")
            continue
        measured = "; ".join(f"{c['what']} {c['value']:.3g}" for c in row["checks"])
        limits = "; ".join(f"{'at least' if c['sign'] == '>=' else 'at most'} {c['limit']:g}" for c in row["checks"])
        slow = ", machine too slow" if row["facts"].get("path", {}).get("too_slow") else ""
        print(f"| {row['case']} | {measured} | {limits} | "
              f"{'holds' if all(c['holds'] for c in row['checks']) else 'FAILS'}{slow} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", choices=["sim", "path"])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="where sdr and bench/ are")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    parser.add_argument("--tag", default="", help="added to the name of the result's file")
    parser.add_argument("--only", default="", help="cases whose name has this in it, or whose group this is")
    parser.add_argument("--most-mbps", type=float, default=1e9, help="leave faster paths out")
    parser.add_argument("--runs", type=int, default=1, help="of each case, in sim with other seeds; the worst counts")
    parser.add_argument("--sdr-options", default="", help="path: more options of sdr perf, such as --rate 90Mbit")
    parser.add_argument("--series", action="store_true", help="keep what happened over time")
    options = parser.parse_args()
    machine = peers.Machine(options.build)
    rows = []
    for case in cases():
        wanted = options.only in case.name or options.only == case.groups
        if not wanted or case.mbps > options.most_mbps or (options.where == "path" and not case.on_path):
            continue
        row = {"case": case.name, "group": case.groups, "link": case.link, "queue": case.queue,
               "changes": case.changes, "flows": [vars(f) for f in case.flows], "seconds": case.seconds}
        begin = time.monotonic()
        try:
            runs = []
            for seed in range(1, options.runs + 1):
                if options.where == "sim":
                    outcome = run_sim(machine.sdr, case, seed)
                else:
                    outcome = run_path(machine, case, options.sdr_options)
                runs.append(judged(outcome))
                row.setdefault("facts", outcome.facts)
            row["checks"] = worst(runs)
            row["runs"] = [[c["value"] for c in run] for run in runs]
            if options.series:
                row["interval_s"] = outcome.interval
                row["mbps"] = [[round(b * 8e-6 / outcome.interval, 2) for b in w] for w in outcome.wire]
        except (RuntimeError, subprocess.SubprocessError, json.JSONDecodeError, KeyError) as why:
            row["failed"] = str(why)[-1500:]
        row["took_s"] = round(time.monotonic() - begin, 2)
        rows.append(row)
        good = "checks" in row and all(c["holds"] for c in row["checks"])
        print(f"{'holds' if good else 'FAILS'}  {case.name}  "
              f"{row.get('failed') or [(c['what'], c['value'], c['held']) for c in row['checks']]}", file=sys.stderr, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / f"rate-control-{options.where}{'-' + options.tag if options.tag else ''}.json"
    file.write_text(json.dumps({"machine": machine.describe(), "mtu": peers.MTU, "runs": rows}, indent=1) + "\n")
    print(os.path.relpath(file, ROOT) if file.is_relative_to(ROOT) else file, file=sys.stderr)
    table(rows)
    return 0 if all("checks" in r and all(c["holds"] for c in r["checks"]) for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
