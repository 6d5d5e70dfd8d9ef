#!/usr/bin/env bash
# The bare SDK (sdr perf --scheme none, every Write checked) against a bare UDP_SEGMENT/UDP_GRO sender and receiver of
# the same payload, turn by turn in one run: goodput of both on loopback, and their ratio.
#   bench/against_bare_udp.sh [BUILD_DIR] [ROUNDS]
set -euo pipefail
build=${1:-build/release}
rounds=${2:-3}

# field NAME: its number in the JSON on stdin.
field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" | head -n 1; }

for payload in 1456 4096; do
  for ((round = 1; round <= rounds; ++round)); do
    bare=$("$build/bench/bare_udp" --payload "$payload" --bytes 2GiB | field goodput_gbps)
    sdr=$("$build/sdr" perf --self --scheme none --size 8MiB --inflight 16 --iters 256 --mtu "$payload" --json |
      field goodput_gbps)
    awk -v payload="$payload" -v bare="$bare" -v sdr="$sdr" 'BEGIN {
      printf "payload %d B  bare UDP %6.2f Gbit/s  sdr %6.2f Gbit/s  ratio %.2f\n", payload, bare, sdr, sdr / bare }'
  done
done
