#!/usr/bin/env bash
# What the UDP path of libsdr reaches on loopback, beside what the kernel gives to two processes that do nothing else:
# bare UDP_SEGMENT/UDP_GRO of the same payload (bench/bare_udp.cpp), and TCP where iperf3 is installed. Turn by turn in
# one run; medians, and the medians' ratios.
#   bench/against_bare_udp.sh [BUILD_DIR] [ROUNDS] [JSON_FILE]
set -euo pipefail
build=${1:-build/release}
rounds=${2:-5}
json=${3:-}

# field NAME: its number in the JSON on stdin.
field() { sed -n "s/.*\"$1\":[[:space:]]*\([0-9.]\{1,\}\).*/\1/p" | head -n 1; }
# perf PAYLOAD SIZE ITERATIONS OPTION...: goodput in Gbit/s of 16 Writes in flight.
perf() {
  "$build/sdr" perf --self --mtu "$1" --size "$2" --iters "$3" --inflight 16 --json "${@:4}" | field goodput_gbps
}
bare() { "$build/bench/bare_udp" --payload "$1" --bytes 2GiB | field goodput_gbps; }
tcp() {
  local port=$((20000 + RANDOM % 20000))
  iperf3 -s -1 -p "$port" >/dev/null &
  sleep 0.2
  iperf3 -c 127.0.0.1 -p "$port" -t 1 -J | sed -n '/"sum_received"/,/}/p' | field bits_per_second |
    awk '{ print $1 / 1e9 }'
  wait
}
# median VALUE...
median() { printf '%s\n' "$@" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

cells=(bare none none_unverified none_512KiB adaptive)
if command -v iperf3 >/dev/null; then cells+=(tcp); fi
declare -A all=() middle=()
for payload in 1440 4096; do
  for ((round = 1; round <= rounds; ++round)); do
    all[bare,$payload]+=" $(bare "$payload")"
    all[none,$payload]+=" $(perf "$payload" 8MiB 128 --scheme none)"
    all[none_unverified,$payload]+=" $(perf "$payload" 8MiB 128 --scheme none --no-verify)"
    all[none_512KiB,$payload]+=" $(perf "$payload" 512KiB 2048 --scheme none)"
    all[adaptive,$payload]+=" $(perf "$payload" 8MiB 128 --scheme adaptive)"
    if [[ " ${cells[*]} " == *" tcp "* ]]; then all[tcp,$payload]+=" $(tcp)"; fi
  done
  # shellcheck disable=SC2086 # the values are words
  for cell in "${cells[@]}"; do
    middle[$cell]=$(median ${all[$cell,$payload]})
    printf 'payload %4d B  %-16s median %6.2f Gbit/s of %d:%s\n' "$payload" "$cell" "${middle[$cell]}" "$rounds" \
      "$(printf ' %.2f' ${all[$cell,$payload]})"
  done
  awk -v p="$payload" -v bare="${middle[bare]}" -v none="${middle[none]}" -v raw="${middle[none_unverified]}" \
    -v small="${middle[none_512KiB]}" -v adaptive="${middle[adaptive]}" 'BEGIN {
    printf "payload %4d B  none/bare %.2f (unverified %.2f)  512KiB/8MiB %.2f  adaptive/none %.2f\n", p, none / bare,
      raw / bare, small / none, adaptive / none }'
done

if [[ -n $json ]]; then
  {
    printf '{"benchmark": "against_bare_udp", "date": "%s", "kernel": "%s", "cpu": "%s", "cores": %d, "rounds": %d' \
      "$(date -u +%F)" "$(uname -r)" "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$rounds"
    for payload in 1440 4096; do
      for cell in "${cells[@]}"; do
        # shellcheck disable=SC2086
        printf ',\n "%s_%d_gbps": [%s]' "$cell" "$payload" "$(printf '%s\n' ${all[$cell,$payload]} | paste -sd, -)"
      done
    done
    printf '}\n'
  } >"$json"
fi
