"""The tables and pictures of docs/performance.md, from the results in bench/results.

The page has pairs of comments, <!-- table NAME --> and <!-- end NAME -->; what stands between them is made here from
bench/results/<NAME>.json, and left alone where there is no such file. Beside the machine's own figures stand those of
the SDR-RDMA paper (SC'25), where it has some: of other machines, so that only shapes can be compared.
"""

import json
import re
import shutil
import statistics
import subprocess
from pathlib import Path

KIB = 1 << 10
MIB = 1 << 20

# Coding at (32,8), GB/s a core, and the cores behind which it hides at 400 Gbit/s: figure 11.
PAPER_RS_GBPS_A_CORE = 6.25
PAPER_CORES_AT_400G = {"XOR": 4, "MDS": 8}
PAPER_LINE_RATE_FROM = 512 * KIB  # figure 14, of 400 Gbit/s


def median(values):
    return statistics.median(values)


def size(count):
    if count >= MIB:
        return f"{count // MIB} MiB"
    return f"{count // KIB} KiB" if count >= KIB else f"{count} B"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def origin(result):
    machine = result["machine"]
    load = machine.get("load_before")
    busy = f", load average {load} before" if load is not None and load > 0.5 else ""
    return f"{machine['cpu']} ({machine['cores']} cores), Linux {machine['kernel']}, {machine['date'][:10]}{busy}."


def coding(result, images):
    rows = []
    for name, key in (("RS(32,8)", "rs_32_8"), ("XOR(32,8)", "xor_32_8")):
        code = result[key]
        rows.append([name, f"{code['encode_GBps']:.1f}", f"{code['decode_GBps']:.1f}", f"{code['isal_encode_GBps']:.1f}",
                     f"{code['encode_over_isal']:.2f}", f"{code['encode_over_memcpy']:.2f}",
                     f"{code['decode_over_encode']:.2f}"])
    text = table(["GB/s of data, one core", "encode", "decode, 8 data chunks missing", "encode by ISA-L",
                  "encode / ISA-L", "encode / memcpy", "decode / encode"], rows)
    text += f"\n\n`memcpy` moves {result['memcpy_GBps']:.1f} GB/s.\n\nFigure 11 of the paper, on this machine:\n\n"
    cores = [[f"{line['cores']}", f"{line['xor_32_8']['encode_GBps'] * 8:.0f}", f"{line['rs_32_8']['encode_GBps'] * 8:.0f}"]
             for line in result["by_cores"]]
    text += table(["cores", "XOR(32,8), Gbit/s", "MDS(32,8), Gbit/s"], cores)
    one = result["by_cores"][0]
    needed = {"XOR": 50 / one["xor_32_8"]["encode_GBps"], "MDS": 50 / one["rs_32_8"]["encode_GBps"]}
    text += "\n\n" + table(["400 Gbit/s take", "cores here, if all went as the first", "cores, paper"],
                           [[code, f"{needed[code]:.1f}", PAPER_CORES_AT_400G[code]] for code in needed])
    return text + f"\n\nA core of the paper's machine encodes {PAPER_RS_GBPS_A_CORE} GB/s of MDS(32,8)."


def worker(result, images):
    rows = []
    for name, batched in result["grid_mpps"].items():
        if not name.endswith("/batched"):
            continue
        order, chunk, _ = name.split("/")
        each = result["grid_mpps"][name.replace("/batched", "/atomic_each")]
        rows.append([order.replace("_", " "), chunk.split("_")[0], f"{batched:.0f}", f"{each:.0f}"])
    return table(["order", "packets a chunk", "batched, Mpacket/s", "an atomic operation a packet, Mpacket/s"], rows)


def turnaround(result, images):
    rows = [[size(point["message_bytes"]), f"{point['untouched_post_complete_ns']:.0f}",
             f"{point['post_complete_ns']:.0f}"] for point in result["points"]]
    bare, message = (result["udp_64_bytes_ns"][name] for name in ("bare", "message"))
    return (table(["message", "post + complete, untouched, ns", "every packet arrived, ns"], rows) +
            f"\n\nA message of 64 bytes over UDP loopback takes {message / 1e3:.1f} us, a bare `sendmsg` and `recvmsg` "
            f"{bare / 1e3:.1f} us: {message / bare:.2f} times.")


def loopback(result, images):
    rows = []
    names = {"bare": "bare UDP_SEGMENT/UDP_GRO",
             "bare, in memory": "bare, straight out of 8 MiB, straight into 256 MiB",
             "none": "`--scheme none`, every byte verified",
             "none, not verified": "`--scheme none --no-verify`", "none, 512 KiB": "`none`, verified, 512 KiB messages",
             "adaptive": "`adaptive`, verified", "tcp": "TCP (iperf3)"}
    against = {"bare, in memory": ["bare"], "none": ["bare", "bare, in memory"],
               "none, not verified": ["bare", "bare, in memory"], "none, 512 KiB": ["none"], "adaptive": ["none"]}
    short = {"bare, in memory": "that"}
    for key, name in names.items():
        cells = []
        for row in result["rows"]:
            values = row["gbps"].get(key) or []
            if not values:
                cells.append("-")
                continue
            cell = f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"
            cell += ": " if key in against else ""
            cell += ", ".join(f"{median(values) / median(row['gbps'][other]):.2f} of {short.get(other, other)}"
                              for other in against.get(key, []) if row["gbps"].get(other))
            cells.append(cell)
        rows.append([name, *cells])
    rounds = len(result["rows"][0]["gbps"]["bare"])
    return (f"Medians of {rounds} turns and their range, Gbit/s:\n\n" +
            table(["", *[f"{row['payload']} B" for row in result["rows"]]], rows))


def kernel(result, images):
    names = list(result["rows"][0]["gbps"])
    rows = []
    for name in names:
        row = [name]
        for line in result["rows"]:
            values = line["gbps"][name]
            row.append(f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})" if values else "-")
        rows.append(row)
    copied = result["rows"][0]["copied_by_the_kernel"]
    return (table(["bare, Gbit/s", *[f"{line['payload']} B" for line in result["rows"]]], rows) +
            f"\n\nThe kernel says of {copied:.0%} of the sends with MSG_ZEROCOPY that it copied them all the same.")


def throughput(result, images):
    by_size = [(line["bytes"], median(line["gbps"])) for line in result["by_size"]]
    full = by_size[-1][1]
    draw_throughput(by_size, images)
    rows = [[size(count), f"{gbps:.1f}", f"{gbps / full:.2f}",
             "line rate" if count >= PAPER_LINE_RATE_FROM else "below"] for count, gbps in by_size]
    text = table(["message", "Gbit/s", "of that at 16 MiB", "paper, of 400 Gbit/s"], rows)
    threads = [[line["sockets"], f"{median(line['gbps']):.1f}"] for line in result.get("by_sockets", [])]
    if threads:
        text += "\n\n" + table(["sockets, 16 MiB messages", "Gbit/s"], threads)
    return text


def draw_throughput(points, images):
    """Figure 14 as a picture, where gnuplot is installed."""
    if not shutil.which("gnuplot"):
        return
    data = "\n".join(f"{count} {gbps}" for count, gbps in points)
    full = points[-1][1]
    script = f"""
set terminal pngcairo size 900,520 font "sans,12"
set output "{images / 'throughput.png'}"
set logscale x 2
set xlabel "message size"
set ylabel "Gbit/s"
set yrange [0:*]
set grid
set key bottom right
set format x "%.0b %BB"
$data << EOD
{data}
EOD
set arrow from {PAPER_LINE_RATE_FROM}, graph 0 to {PAPER_LINE_RATE_FROM}, graph 1 nohead dashtype 2 lc rgb "#888888"
plot $data using 1:2 with linespoints lw 2 pt 7 lc rgb "#0060ad" title "sdr, 16 messages in flight, UDP loopback", \\
  {full} with lines dashtype 3 lc rgb "#888888" title "its rate at 16 MiB; vertical: from here the paper has line rate"
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def simulator(result, images):
    sim = table(["`bench/sim_bench`: scheme, Write, loss", "million packets a second, one core"],
                [[f"`{name}`", f"{run['packets_per_second'] / 1e6:.1f}"] for name, run in result["sim"].items()])
    model = table(["`bench/model_bench`", "time"],
                  [[f"`{name.split('/iterations')[0]}`", f"{run['real_time']:.3g} {run['unit']}"]
                   for name, run in result["model"].items()])
    return f"{sim}\n\nThe model behind `sdr plan` (a mean, a 99.9th percentile, a grid of Monte Carlo):\n\n{model}"


def instructions(result, images):
    if "rows" not in result:
        return "Not counted: valgrind is not installed."
    return table(["payload", "scheme", "instructions a packet, both ends together"],
                 [[f"{row['payload']} B", f"`{row['scheme']}`", f"{row['instructions_per_packet']:.0f}"]
                  for row in result["rows"]])


def peers_bulk(result, images):
    losses = sorted({line["loss"] for line in result["summary"]})
    peers = list(dict.fromkeys(line["peer"] for line in result["summary"]))
    cell = {(line["peer"], line["loss"]): line for line in result["summary"]}
    rows = []
    for peer in peers:
        row = [f"`{peer}`"]
        for loss in losses:
            line = cell.get((peer, loss), {})
            row.append(f"{line['mbps']:.0f} ({line['of_possible']:.2f})" if "mbps" in line else "-")
        rows.append(row)
    rtt = result["summary"][0]["rtt_ms"]
    return (f"Goodput in Mbit/s over 1 Gbit/s and {rtt:g} ms, MTU {result['mtu']}, runs of {result['seconds']} s, and "
            "(in brackets) of what packets of that size can carry at that loss:\n\n" +
            table(["", *[f"loss {loss:g}" for loss in losses]], rows))


def peers_messages(result, images):
    keys = sorted({(line["size_bytes"], line["loss"]) for line in result["summary"]}, key=lambda key: (key[1], key[0]))
    peers = list(dict.fromkeys(line["peer"] for line in result["summary"]))
    cell = {(line["peer"], line["size_bytes"], line["loss"]): line.get("slowdown") for line in result["summary"]}
    rows = []
    for bytes_, loss in keys:
        row = [f"{size(bytes_)}, {loss:g}"]
        for peer in peers:
            slowdown = cell.get((peer, bytes_, loss))
            row.append(f"{slowdown['mean']:.2f}, {slowdown['p99']:.2f}" if slowdown else "-")
        rows.append(row)
    return ("Single messages over a warm connection, 1 Gbit/s and 25 ms, as slowdown over the ideal (headers included), "
            "mean and 99th percentile:\n\n" + table(["message, loss", *[f"`{peer}`" for peer in peers]], rows))


TABLES = {"coding": coding, "worker": worker, "turnaround": turnaround, "loopback": loopback, "kernel": kernel, "throughput": throughput,
          "simulator": simulator, "instructions": instructions, "peers-bulk": peers_bulk,
          "peers-messages": peers_messages}


def write(page, results):
    text = page.read_text()
    for name, make in TABLES.items():
        file = results / f"{name}.json"
        place = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end {name} -->)", re.S)
        if not file.exists() or not place.search(text):
            continue
        result = json.loads(file.read_text())
        made = make(result, page.parent / "images") + "\n\n" + origin(result) + "\n"
        text = place.sub(lambda match: match.group(1) + made + match.group(2), text)
    page.write_text(text)
    print(f"{page}: tables written")
