#!/usr/bin/env python3
"""Races libsdr against what people use today, turn by turn in one run, and writes bench/results/peers-*.json.

  bench/peers.py bulk      goodput of one connection over an emulated path, by loss and RTT
  bench/peers.py messages  completion of single messages over a warm connection, as slowdown over the ideal
  bench/peers.py loopback  goodput on this machine's loopback
  bench/peers.py all       each of them

The path is `sdr emulate`: two network namespaces and a forwarder in user space that treats every IP packet alike.
Needs root (or user namespaces) for it, and iperf3; SRT, UDT and QUIC take part where they are installed
(packages.txt, group bench). docs/emulate.md, "Races", says what is measured and how.
"""
import argparse
import datetime
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MTU = 1500
TCP_PAYLOAD = 1448  # beside IP, TCP and its timestamps
SDR_PAYLOAD = 1456  # beside IP, UDP and the header of a packet
QUEUE = "drop-tail,limit=1bdp"
# Socket buffers of several bandwidth-delay products, or TCP's window would be the limit instead of the path.
SYSCTLS = {
    "net.ipv4.tcp_rmem": "4096 1048576 134217728",
    "net.ipv4.tcp_wmem": "4096 1048576 134217728",
    "net.ipv4.tcp_no_metrics_save": "1",
}


class Skipped(Exception):
    """A contender that is not installed, or has no part in this race."""


def last_json(text):
    """The last JSON object in what a program printed."""
    for start in [m.start() for m in re.finditer(r"^\{", text, re.M)][::-1]:
        try:
            return json.JSONDecoder().raw_decode(text[start:])[0]
        except json.JSONDecodeError:
            continue
    raise RuntimeError("no JSON in: " + text[-500:])


def program(name):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not found:
        raise Skipped(f"{name} is not installed")
    return found


class Machine:
    def __init__(self, build):
        self.sdr = str(build / "sdr")
        self.build = build

    def tool(self, name):
        path = self.build / "bench" / name
        if not path.exists():
            raise Skipped(f"{path} was not built")
        return str(path)

    def describe(self):
        def first(command):
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
                return (done.stdout + done.stderr).strip().splitlines()[0]
            except (OSError, IndexError):
                return None

        cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        packages = {}
        for package in ("iperf3", "srt-tools", "libudt-dev", "ngtcp2-server"):
            packages[package] = first(["dpkg-query", "-W", "-f=${Version}", package])
        return {
            "cpu": cpu.group(1) if cpu else platform.processor(),
            "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "sdr": first([self.sdr, "--version"]),
            "packages": packages,
        }


class EmulatedPath:
    """An emulated path; run() has one command at each end and gives back what the right one printed."""

    def __init__(self, machine, rtt_ms, loss, seed, rate_mbit=1000):
        self.machine, self.rtt_ms, self.loss, self.rate_mbit = machine, rtt_ms, loss, rate_mbit
        self.link = f"rtt={rtt_ms}ms,rate={rate_mbit}Mbit,loss={loss},seed={seed},mtu={MTU}"

    def run(self, left, right, port, seconds, until="right"):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            command = [self.machine.sdr, "emulate", "--link", self.link, "--queue", QUEUE, "--report", str(report)]
            command += ["--await-port", str(port), "--left", left, "--right", right, "--until", until]
            command += ["--timeout", f"{seconds}s"]
            for name, value in SYSCTLS.items():
                command += ["--sysctl", f"{name}={value}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 30)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-1500:]}")
            path = json.loads(report.read_text())
        return done.stdout, path


def path_facts(report):
    ways = [report["left_to_right"], report["right_to_left"]]
    return {
        "too_slow": report["too_slow"],
        "forwarder_cpu_share": round(report["forwarder_cpu_share"], 3),
        "late_us_mean": round(max(w["late_us"]["mean"] for w in ways), 1),
        "late_us_max": round(max(w["late_us"]["max"] for w in ways), 1),
        "lost": [w["drops"]["loss"] for w in ways],
        "queue_full": [w["drops"]["queue_full"] for w in ways],
        "delivered_mbps": [round(w["delivered_mbps"], 1) for w in ways],
    }


# --- bulk over the path: each gives (Mbit/s of payload, what else is worth keeping) ---


def sdr_facts(report):
    keep = ("packets_sent", "packets_lost", "host_drops", "chunks_sent", "chunks_retransmitted", "parity_chunks_sent",
            "chunks_recovered", "fallbacks", "rtt_ms", "rtt_min_ms", "late_packets", "duplicate_packets")
    return {k: report[k] for k in keep if k in report}


def bulk_sdr(scheme, told=True):
    """`told`: the path's rate, instead of finding it."""
    def run(path, seconds):
        if scheme == "none" and path.loss > 0:
            raise Skipped("scheme none repairs nothing: each message that misses a packet is given up after a second")
        writes = max(4, round(seconds * path.rate_mbit * 1e6 / 8 / (32 << 20)))
        sdr = path.machine.sdr
        rate = f"--rate {path.rate_mbit}Mbit" if told else ""
        out, report = path.run(
            f"{sdr} perf --listen $SDR_SELF:7000 --once >&2",
            f"{sdr} perf $SDR_PEER:7000 {rate} --scheme {scheme} --size 32MiB --inflight 8 "
            f"--iters {writes} --warmup 2 --no-verify --json || true", 7000, seconds * 4 + 20)
        result = last_json(out)
        return result["goodput_gbps"] * 1000, {**sdr_facts(result), "path": path_facts(report)}

    return run


def bulk_tcp(congestion):
    def run(path, seconds):
        iperf = program("iperf3")
        # Two seconds of slow start are not counted for anybody: sdr has two Writes to warm up.
        out, report = path.run(f"{iperf} -s -1 -p 5201 >&2",
                               f"{iperf} -c $SDR_PEER -p 5201 -C {congestion} -t {seconds} -O 2 -J", 5201,
                               seconds * 4 + 20)
        end = json.loads(out)["end"]
        return end["sum_received"]["bits_per_second"] / 1e6, {
            "retransmits": end["sum_sent"].get("retransmits"), "path": path_facts(report)}

    return run


def bulk_udt(path, seconds):
    udt = path.machine.tool("peers/peers_udt")
    # What its sender has buffered may take long to drain: the receiver counts for so long, and ends the run.
    out, report = path.run(f"{udt} --listen 9000 {seconds}", f"{udt} $SDR_PEER 9000 >&2", 9000, seconds * 4 + 20,
                           "left")
    return last_json(out)["goodput_gbps"] * 1000, {"path": path_facts(report)}


def bulk_srt(path, seconds):
    srt = program("srt-file-transmit")
    # A file that would take `seconds` at the rate; what SRT is slower by, it takes longer, up to the bound.
    megabytes = max(8, seconds * path.rate_mbit // 8 // 4)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        source.write_bytes(os.urandom(1 << 20) * megabytes)
        (Path(folder) / "in").mkdir()
        options = "transtype=file&sndbuf=67108864&rcvbuf=67108864&fc=200000&messageapi=0"
        # Its sender ends when all is sent, not when it has arrived.
        timed = ("import os,subprocess,sys,time; t=time.monotonic(); "
                 "subprocess.run(sys.argv[2:], check=True, stdout=sys.stderr)\n"
                 "size = lambda: sum(e.stat().st_size for e in os.scandir(sys.argv[1]))\n"
                 f"while size() < {megabytes << 20}: time.sleep(0.001)\n"
                 "print(time.monotonic()-t)")
        out, report = path.run(
            f"{srt} -q 'srt://:9100?mode=listener&{options}' 'file://{folder}/in/' >&2",
            f"python3 -c '{timed}' {folder}/in {srt} -q 'file://{source}' "
            f"\"srt://$SDR_PEER:9100/arrived?mode=caller&{options}\"",
            9100, seconds * 20 + 20)
    return megabytes * 2**20 * 8e-6 / float(out.split()[-1]), {"path": path_facts(report), "bytes": megabytes << 20}


def bulk_quic(path, seconds):
    server, client = program("gtlsserver"), program("gtlsclient")
    megabytes = max(8, seconds * path.rate_mbit // 8 // 4)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        source.write_bytes(os.urandom(1 << 20) * megabytes)
        subprocess.run([program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
                        f"{folder}/key", "-out", f"{folder}/cert", "-subj", "/CN=peer", "-days", "2"],
                       check=True, capture_output=True)
        timed = ("import subprocess,sys,time; t=time.monotonic(); "
                 "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
                 "print(time.monotonic()-t)")
        windows = "--max-data=64M --max-stream-data-bidi-local=64M --max-window=128M --max-stream-window=128M"
        out, report = path.run(
            f"{server} -q --no-quic-dump --no-http-dump --cc=bbr2 -d {folder} $SDR_SELF 4433 {folder}/key "
            f"{folder}/cert >&2",
            f"python3 -c '{timed}' {client} -q --no-quic-dump --no-http-dump --exit-on-all-streams-close {windows} "
            "$SDR_PEER 4433 https://$SDR_PEER:4433/source", 4433, seconds * 20 + 20)
    return megabytes * 2**20 * 8e-6 / float(out.split()[-1]), {"path": path_facts(report), "bytes": megabytes << 20}


BULK = {
    "sdr adaptive": (bulk_sdr("adaptive"), SDR_PAYLOAD),
    "sdr model": (bulk_sdr("adaptive", told=False), SDR_PAYLOAD),
    "sdr none": (bulk_sdr("none"), SDR_PAYLOAD),
    "tcp bbr": (bulk_tcp("bbr"), TCP_PAYLOAD),
    "tcp cubic": (bulk_tcp("cubic"), TCP_PAYLOAD),
    "udt": (bulk_udt, SDR_PAYLOAD),
    "srt file": (bulk_srt, SDR_PAYLOAD),
    "quic bbr2": (bulk_quic, TCP_PAYLOAD),
}


def bulk(machine, options):
    rows = []
    for rtt in options.rtt:
        for loss in options.loss:
            for turn in range(options.rounds):
                for name, (run, payload) in chosen(BULK, options):
                    row = {"race": "bulk", "peer": name, "rtt_ms": rtt, "loss": loss, "round": turn}
                    path = EmulatedPath(machine, rtt, loss, 1 + turn)
                    most = (1 - loss) * payload / MTU * path.rate_mbit
                    measured(rows, row, lambda: dict(zip(("mbps", "facts"), run(path, options.seconds))))
                    if "mbps" in row:
                        row["of_possible"] = round(row["mbps"] / most, 4)
                    say(row)
    return rows


# --- messages ---


def ideal_ms(size, payload, path):
    return math.ceil(size / payload) * MTU * 8 / (path.rate_mbit * 1e3) + path.rtt_ms


def messages_sdr(path, size, count):
    sdr = path.machine.sdr
    out, report = path.run(
        f"{sdr} perf --listen $SDR_SELF:7000 --once >&2",
        f"{sdr} perf $SDR_PEER:7000 --rate {path.rate_mbit}Mbit --scheme adaptive --size {size} --iters {count} "
        "--warmup 10 --no-verify --json", 7000, 100 + count)
    result = last_json(out)
    return result["completion_ms"], SDR_PAYLOAD, {**sdr_facts(result), "path": path_facts(report)}


def messages_tcp(congestion):
    def run(path, size, count):
        tool = path.machine.tool("peers/tcp_messages")
        out, report = path.run(
            f"{tool} --listen 5300",
            f"{tool} --connect $SDR_PEER:5300 --size {size} --count {count} --warmup 10 --congestion {congestion}",
            5300, 100 + count)
        result = last_json(out)
        return result["completion_ms"], TCP_PAYLOAD, {
            "retransmitted_segments": result["retransmitted_segments"], "path": path_facts(report)}

    return run


MESSAGES = {"sdr adaptive": messages_sdr, "tcp bbr": messages_tcp("bbr"), "tcp cubic": messages_tcp("cubic")}


def messages(machine, options):
    rows = []
    for rtt in options.rtt:
        for loss in options.loss:
            for size in options.size:
                for turn in range(options.rounds):
                    for name, run in chosen(MESSAGES, options):
                        row = {"race": "messages", "peer": name, "rtt_ms": rtt, "loss": loss, "size_bytes": size << 20,
                               "count": options.count, "round": turn}
                        path = EmulatedPath(machine, rtt, loss, 1 + turn)

                        def once():
                            times, payload, facts = run(path, size << 20, options.count)
                            ideal = ideal_ms(size << 20, payload, path)
                            return {"ideal_ms": ideal, "completion_ms": times, "facts": facts,
                                    "slowdown": {k: round(times[k] / ideal, 4) for k in ("mean", "p50", "p99")}}

                        measured(rows, row, once)
                        say(row)
    return rows


# --- loopback ---


def loop_sdr(scheme):
    def run(machine, _seconds):
        out = subprocess.run([machine.sdr, "perf", "--self", "--scheme", scheme, "--size", "8MiB", "--inflight", "16",
                              "--iters", "512", "--json"], capture_output=True, text=True, check=False, timeout=120)
        return last_json(out.stdout)["goodput_gbps"]

    return run


def loop_tcp(machine, seconds):
    iperf = program("iperf3")
    with subprocess.Popen([iperf, "-s", "-1", "-p", "5207"], stdout=subprocess.DEVNULL) as server:
        try:
            for _ in range(50):
                out = subprocess.run([iperf, "-c", "127.0.0.1", "-p", "5207", "-t", str(seconds), "-J"],
                                     capture_output=True, text=True, check=False, timeout=seconds + 30)
                report = json.loads(out.stdout)
                if "error" not in report:
                    return report["end"]["sum_received"]["bits_per_second"] / 1e9
            raise RuntimeError(report["error"])
        finally:
            server.terminate()


def loop_bare(payload):
    def run(machine, seconds):
        out = subprocess.run([machine.tool("bare_udp"), "--payload", str(payload), "--seconds", str(seconds)],
                             capture_output=True, text=True, check=True, timeout=seconds + 30)
        return last_json(out.stdout)["goodput_gbps"]

    return run


LOOPBACK = {"sdr none": loop_sdr("none"), "sdr adaptive": loop_sdr("adaptive"), "tcp": loop_tcp,
            "bare udp 4096": loop_bare(4096), "bare udp 1456": loop_bare(1456)}


def loopback(machine, options):
    rows = []
    for turn in range(options.rounds):
        for name, run in chosen(LOOPBACK, options):
            row = {"race": "loopback", "peer": name, "round": turn}
            measured(rows, row, lambda: {"gbps": round(run(machine, options.seconds), 3)})
            say(row)
    return rows


# --- what the races share ---


def chosen(contenders, options):
    return [(n, c) for n, c in contenders.items() if not options.peers or n in options.peers]


def measured(rows, row, once):
    try:
        row.update(once())
    except Skipped as why:
        row["skipped"] = str(why)
    except (RuntimeError, subprocess.SubprocessError, json.JSONDecodeError, KeyError, IndexError, ValueError) as why:
        row["failed"] = str(why)[-1500:]
    rows.append(row)


def say(row):
    shown = {k: v for k, v in row.items() if k not in ("facts", "completion_ms", "race")}
    slow = row.get("facts", {}).get("path", {}).get("too_slow")
    note = "  (this machine was too slow for the path)" if slow else ""
    print(json.dumps(shown) + note, file=sys.stderr, flush=True)


def summary(rows):
    """Medians over the rounds, a row a contender and path."""
    groups = {}
    for row in rows:
        key = tuple(row.get(k) for k in ("race", "peer", "rtt_ms", "loss", "size_bytes"))
        groups.setdefault(key, []).append(row)
    lines = []
    for (race, peer, rtt, loss, size), group in groups.items():
        line = {"race": race, "peer": peer, "rtt_ms": rtt, "loss": loss, "size_bytes": size}
        line = {k: v for k, v in line.items() if v is not None}
        good = [r for r in group if "skipped" not in r and "failed" not in r]
        line["rounds"] = len(good)
        for name in ("mbps", "gbps", "of_possible"):
            if good and name in good[0]:
                line[name] = round(statistics.median(r[name] for r in good), 4)
        if good and "slowdown" in good[0]:
            line["slowdown"] = {k: round(statistics.median(r["slowdown"][k] for r in good), 3)
                                for k in good[0]["slowdown"]}
        if len(good) < len(group):
            line["missing"] = [r.get("skipped") or r.get("failed") for r in group if r not in good][:1]
        lines.append(line)
    return lines


RACES = {"bulk": bulk, "messages": messages, "loopback": loopback}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("race", choices=[*RACES, "all"])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="where sdr and bench/ are")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    parser.add_argument("--tag", default="", help="added to the name of the result's file")
    parser.add_argument("--peers", action="append", help="only these; repeatable")
    parser.add_argument("--rtt", type=float, action="append", help="ms; repeatable (bulk 50 and 25, messages 25)")
    parser.add_argument("--loss", type=float, action="append",
                        help="repeatable (bulk 1e-4, 1e-3, 1e-2; messages without the first)")
    parser.add_argument("--size", type=int, action="append", help="MiB of a message; repeatable (1, 4, 16)")
    parser.add_argument("--count", type=int, default=100, help="messages of a connection")
    parser.add_argument("--seconds", type=int, default=8, help="of a bulk or loopback run")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    machine = Machine(given.build)
    for race in RACES if given.race == "all" else [given.race]:
        options = argparse.Namespace(**vars(given))
        options.rtt = given.rtt or ([50, 25] if race == "bulk" else [25])
        options.loss = given.loss or ([1e-4, 1e-3, 1e-2] if race == "bulk" else [1e-3, 1e-2])
        options.size = given.size or [1, 4, 16]
        rows = RACES[race](machine, options)
        result = {"race": race, "machine": machine.describe(), "mtu": MTU, "queue": QUEUE, "sysctls": SYSCTLS,
                  "seconds": options.seconds, "summary": summary(rows), "runs": rows}
        options.out.mkdir(parents=True, exist_ok=True)
        file = options.out / f"peers-{race}{'-' + given.tag if given.tag else ''}.json"
        file.write_text(json.dumps(result, indent=1) + "\n")
        print(file)
        for line in result["summary"]:
            print(json.dumps(line))


if __name__ == "__main__":
    main()
