#!/usr/bin/env bash
# What rdma_test.sh checks, in the machine or on the devices at hand: `checks.sh BUILD OUT KIND A,B [--only PATTERN]
# [--long]`. KIND soft-roce makes the two devices first and may impair the way between them; native takes what is there.
# Each check is one function; a line a check says how it went and how long it took, OUT keeps what it printed.
set -uo pipefail

build=$1 out=$2 kind=$3 pair=$4
shift 4
only='' long=0
while (($#)); do
  case $1 in
    --only) only=$2 && shift ;;
    --long) long=1 ;;
    *) echo "checks.sh: no option $1" >&2 && exit 2 ;;
  esac
  shift
done
device_a=${pair%,*} device_b=${pair#*,}
netem="delay 5ms reorder 25% loss 2% duplicate 1% corrupt 0.5%"
passed=0 failed=0
pair_script=$(dirname "${BASH_SOURCE[0]}")/soft_roce_pair.sh

run() {
  local name=$1 started=$SECONDS verdict
  [[ -n $only && ! $name =~ $only ]] && return
  if "check_$name" >"$out/$name.log" 2>&1; then
    verdict=passed && passed=$((passed + 1))
  else
    verdict=FAILED && failed=$((failed + 1))
  fi
  printf '%-6s %4d s  %-22s %s\n' "$verdict" $((SECONDS - started)) "$name" "$(tail -n 1 "$out/$name.log")"
  [[ $verdict == passed ]] || tail -n 40 "$out/$name.log" | sed 's/^/    | /'
}

# --- the way between the two devices ---

# impair NETEM-OPTIONS: of what device A sends; nothing for a clean cable.
impair() {
  tc qdisc del dev va root 2>/dev/null
  (($# == 0)) || tc qdisc add dev va root netem limit 10000 "$@"
}

# --- sdr perf from device A to device B ---

# perf OPTION...: the sender's report in JSON.
server_options=()
perf() {
  local server status
  "$build/sdr" perf --listen 127.0.0.1:0 --once --transport verbs --device "$device_b" "${server_options[@]}" \
    2>"$out/listen" >/dev/null &
  server=$!
  echo $server >"$out/server"
  local port=''
  while [[ -z $port ]] && kill -0 "$server" 2>/dev/null; do # it says where it listens, or why it does not
    sleep 0.2
    port=$(sed -n 's/.*:\([0-9][0-9]*\).*/\1/p' "$out/listen" | head -n 1)
  done
  timeout 120 "$build/sdr" perf "127.0.0.1:$port" --transport verbs --device "$device_a" --json "$@"
  status=$?
  if ((status)); then
    kill "$server" 2>/dev/null
    cat "$out/listen"
  fi
  wait "$server"
  return "$status"
}

number() { sed -n "s/^ *\"$1\": \([-0-9.e+]*\),*$/\1/p" | head -n 1; }

# --- checks ---

check_info() {
  "$build/sdr" info | grep -i rdma
  "$build/sdr" info --json | grep -q "\"device\": \"verbs:$device_a\""
}

# The suite that every transport passes.
check_conformance() { conformance 'TransportConformance*:*LosslessConformance*:*RefusalConformance*'; }
check_late_packets() { conformance '*HoldingConformance*:VerbsLate*'; }
check_failures() { conformance 'VerbsFailure*'; }

conformance() {
  local filter='' suite
  if [[ $kind == soft-roce ]]; then
    export SDR_TEST_VERBS_HOLD="$pair_script hold"
    export SDR_TEST_VERBS_RELEASE="$pair_script release"
    export SDR_TEST_VERBS_DOWN="$pair_script down"
    export SDR_TEST_VERBS_UP="$pair_script up"
  fi
  for suite in ${1//:/ }; do
    case $suite in
      Verbs*) filter+=":$suite" ;;
      *) filter+=":${suite%\*}*Verbs*" ;;
    esac
  done
  SDR_TEST_VERBS=$pair timeout 240 "$build/test_transport" --gtest_brief=1 --gtest_filter="${filter#:}"
}

# gid DEVICE PATTERN: the index of a device's first GID whose address matches.
gid() { "$build/sdr" info | grep -F "verbs:$1 " | grep -oE "GID [0-9]+ $2" | head -n 1 | cut -d ' ' -f 2; }

# The C API over sdr_context_create("rxa").
check_c_api() {
  SDR_TEST_DEVICES=$pair timeout 120 "$build/test_capi" --gtest_brief=1 --gtest_filter='CTransfer.*'
}

# Goodput of --scheme none against that of perftest, packets of 4 KiB, nothing in the way. Speed is judged with --long
# only: on a machine that does other work beside it the ratio says little.
check_ratio() {
  local size=4096 gid_a gid_b
  gid_a=$(gid "$device_a" .) gid_b=$(gid "$device_b" .)
  : >"$out/ratio.theirs"
  : >"$out/ratio.ours"
  for _ in 1 2 3; do
    ib_write_bw -c UC -d "$device_b" -x "$gid_b" -s $size -n 20000 -F --report_gbits >/dev/null 2>&1 &
    sleep 1
    timeout 60 ib_write_bw -c UC -d "$device_a" -x "$gid_a" -s $size -n 20000 -F --report_gbits 127.0.0.1 |
      awk -v size=$size '$1 == size { print $4 }' >>"$out/ratio.theirs"
    wait $!
    perf --scheme none --size 1MiB --mtu $size --iters 96 --warmup 4 --inflight 4 --no-verify | tee "$out/ratio.json" || return
    number goodput_gbps <"$out/ratio.json" >>"$out/ratio.ours"
  done
  awk -v long="$long" -v ours="$(sort -g "$out/ratio.ours" | sed -n 2p)" \
    -v theirs="$(sort -g "$out/ratio.theirs" | sed -n 2p)" 'BEGIN {
    printf "sdr perf %.3f Gbit/s, ib_write_bw -c UC %.3f Gbit/s (medians of 3): ratio %.2f\n", ours, theirs, ours / theirs
    exit long && !(ours >= 0.8 * theirs)
  }'
}

# Every scheme over an impaired way: what arrives is compared byte for byte. Over four channels, since soft-RoCE keeps no
# more than 64 packets of a queue pair between itself and the cable, and all of them wait for the delay.
impaired() {
  local scheme=$1 packets=$2 report
  # shellcheck disable=SC2086 # netem options are words
  impair $netem
  report=$(perf --scheme "$scheme" --size 4MiB --iters $((packets / 1024)) --warmup 1 --inflight 4 --channels 4 \
    --rate 250Mbit)
  local status=$?
  impair
  printf '%s\n' "$report"
  ((status == 0)) || return "$status"
  printf '%s packets sent, %s chunks sent again, %s recovered, %s Gbit/s\n' "$(number packets_sent <<<"$report")" \
    "$(number chunks_retransmitted <<<"$report")" "$(number chunks_recovered <<<"$report")" \
    "$(number goodput_gbps <<<"$report")"
}
check_ipv6() {
  server_options=(--gid "$(gid "$device_b" fd77::2)")
  perf --scheme sr-nack --size 1MiB --iters 4 --rate 200Mbit --gid "$(gid "$device_a" fd77::1)" | tee "$out/ipv6.json"
  local status=$?
  server_options=()
  # The headers of IPv6 are 20 bytes longer than those of IPv4.
  ((status == 0)) && [[ $(number packet_overhead_bytes <"$out/ipv6.json") == 84 ]] && echo "all Writes right, over IPv6"
}
packets=$((long ? 102400 : 10240))
check_adaptive() { impaired adaptive $packets; }
check_sr_rto() { impaired sr-rto $packets; }
check_sr_nack() { impaired sr-nack $packets; }
check_ec_xor() { impaired ec-xor:8:4 $packets; }
check_ec_rs() { impaired ec-rs $packets; }

# A connection outlives a port that is down for two seconds.
check_port_down() {
  local status
  (
    sleep 2
    "$pair_script" down
    sleep 2
    "$pair_script" up
  ) &
  perf --scheme sr-nack --size 4MiB --iters 40 --inflight 2 --rate 200Mbit --timeout 20s
  status=$?
  wait
  ((status == 0)) && echo "all Writes right, across 2 s without a port"
}

# A peer that is killed is an error within the bound, not a hang.
check_killed_peer() {
  (
    sleep 3
    kill -9 "$(<"$out/server")"
  ) &
  local started=$SECONDS
  perf --scheme sr-nack --size 4MiB --iters 1000 --rate 200Mbit --timeout 3s && return 1
  wait
  echo "reported after $((SECONDS - started)) s"
  ((SECONDS - started < 15))
}

if [[ $kind == soft-roce ]]; then
  "$pair_script" make || { echo "no soft-RoCE pair"; exit 1; }
fi
run info
run conformance
run failures
run c_api
run ratio
if [[ $kind == soft-roce ]]; then
  run late_packets
  run ipv6
  for scheme in adaptive sr_rto sr_nack ec_xor ec_rs; do run $scheme; done
  run port_down
fi
run killed_peer
echo "$passed passed, $failed failed"
((failed == 0))
