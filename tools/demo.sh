#!/usr/bin/env bash
# What libsdr is for, in under three minutes: every scheme over an emulated 25 ms, 1 Gbit/s link that loses packets, as
# a table and a plot, and then a file sent over the same link. `./dev demo` builds the command and calls this.
#
# SDR names the command (build/release/sdr), SDR_DEMO_OUT the folder for the plot and its data (build/demo).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sdr=${SDR:-build/release/sdr}
out=${SDR_DEMO_OUT:-build/demo}
rtt=25ms
rate=1Gbit
losses="1e-4 1e-3 1e-2"
schemes="sr-rto sr-nack ec-xor ec-rs adaptive"
# Size in MiB, and Writes that count: small ones vary more and take less time.
sizes="1:12 4:8 16:5 64:2"
file_mib=256

die() {
  printf 'demo: %s\n' "$*" >&2
  exit 1
}
[[ -x $sdr ]] || die "$sdr is not there: ./dev build makes it"
mkdir -p "$out"
work=$(mktemp -d)
receiver=
clean_up() {
  [[ -n $receiver ]] && kill "$receiver" 2>/dev/null
  rm -rf "$work"
  return 0
}
trap clean_up EXIT

# fields FILE: "mean_ms slowdown ideal_ms verified" of a JSON report.
fields() {
  awk '
    { gsub(/[",]/, "") }
    /{$/ { section = $1; next }
    /}/ { section = "" }
    section == "completion_ms:" && $1 == "mean:" { mean = $2 }
    section == "slowdown:" && $1 == "mean:" { slowdown = $2 }
    $1 == "ideal_ms:" { ideal = $2 }
    $1 == "verified:" { verified = $2 }
    END { printf "%s %s %s %s\n", mean, slowdown, ideal, verified }' "$1"
}

measure_all() {
  local loss entry size iterations scheme mean slowdown ideal verified all
  printf '# loss size_MiB scheme mean_ms slowdown verified\n' >"$out/demo.dat"
  for loss in $losses; do
    printf '\nloss %s\n%8s %12s' "$loss" size lossless
    for scheme in $schemes; do printf ' %19s' "$scheme"; done
    printf '   verified\n'
    for entry in $sizes; do
      size=${entry%:*} iterations=${entry#*:} all=yes
      for scheme in $schemes; do
        "$sdr" perf --self --json --scheme "$scheme" --size "${size}MiB" --iters "$iterations" \
          --link "rtt=$rtt,rate=$rate,loss=$loss" >"$work/report.json" ||
          die "$scheme, $size MiB at loss $loss failed; see above"
        read -r mean slowdown ideal verified < <(fields "$work/report.json")
        [[ $scheme == "${schemes%% *}" ]] && awk -v s="$size" -v i="$ideal" 'BEGIN { printf "%4d MiB %9.1f ms", s, i }'
        awk -v m="$mean" -v s="$slowdown" 'BEGIN { printf " %9.1f ms x %5.2f", m, s }'
        printf '%s %s %s %s %s %s\n' "$loss" "$size" "$scheme" "$mean" "$slowdown" "$verified" >>"$out/demo.dat"
        [[ $verified == true ]] || all=NO
      done
      printf '   %s\n' "$all"
    done
  done
}

plot() {
  command -v gnuplot >/dev/null || {
    printf '\nNo plot: gnuplot is not installed. The data: %s\n' "$out/demo.dat"
    return
  }
  cat >"$out/demo.gp" <<'GNUPLOT'
# Slowdown against message size, a panel a loss rate, a line a scheme. Colours: Okabe and Ito, told apart by the
# colour-blind; shapes and line styles tell them apart in grey.
if (format eq "svg") {
  set terminal svg size 1200,420 dynamic enhanced font "sans,14" background "white"
} else {
  set terminal pngcairo size 1800,630 enhanced font "sans,19" linewidth 1.6 background "white"
}
set output output_file
set style line 1 lc rgb "#D55E00" lw 2.2 pt 5 ps 1.3 dt 1
set style line 2 lc rgb "#0072B2" lw 2.2 pt 7 ps 1.4 dt (12,6)
set style line 3 lc rgb "#E69F00" lw 2.2 pt 9 ps 1.6 dt (4,4)
set style line 4 lc rgb "#009E73" lw 2.2 pt 13 ps 1.7 dt 1
set style line 5 lc rgb "#000000" lw 2.6 pt 2 ps 1.3 dt 1
set style line 9 lc rgb "#808080" lw 1 dt (2,4)
set logscale x 2
set logscale y
set xrange [0.8:80]
set xtics ("1" 1, "4" 4, "16" 16, "64" 64) nomirror
top = highest * 1.12
set yrange [0.93:(top > 2 ? top : 2)]
set ytics (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20) nomirror
set border 3
set grid ytics lc rgb "#DDDDDD" lt 1
set xlabel "message size (MiB)"
set lmargin 8
set rmargin 1
set bmargin 3.6
set tmargin 3.4
schemes = "sr-rto sr-nack ec-xor ec-rs adaptive"
losses = "1e-4 1e-3 1e-2"
names = "0.01% 0.1% 1%"
set multiplot layout 1,3 title "Mean completion time of a reliable Write over 25 ms RTT, 1 Gbit/s"
do for [p = 1:3] {
  set title sprintf("%s of packets lost", word(names, p))
  set ylabel (p == 1 ? "slowdown against the lossless ideal" : "")
  if (p == 1) { set key top right Left reverse samplen 3 spacing 1.2 width -1 } else { unset key }
  plot 1 with lines ls 9 notitle, \
    for [s = 1:5] sprintf("< awk '$1 == \"%s\" && $3 == \"%s\"' %s", word(losses, p), word(schemes, s), data) \
      using 2:5 with linespoints ls s title word(schemes, s)
}
unset multiplot
GNUPLOT
  local highest format
  highest=$(awk '!/^#/ && $5 > h { h = $5 } END { print h }' "$out/demo.dat")
  for format in png svg; do
    gnuplot -e "format='$format'; output_file='$out/demo.$format'; data='$out/demo.dat'; highest=$highest" \
      "$out/demo.gp" || die "gnuplot could not draw $out/demo.$format"
  done
  printf '\nPlot: %s and %s (data: %s)\n' "$out/demo.png" "$out/demo.svg" "$out/demo.dat"
}

send_file() {
  local link="rtt=$rtt,rate=$rate,loss=1e-3" address sent arrived
  printf '\nA file of %d MiB over the same link, 0.1%% of packets lost\n' "$file_mib"
  head -c $((file_mib * 1024 * 1024)) /dev/urandom >"$work/demo.bin"
  "$sdr" recv --listen 127.0.0.1:0 --into "$work/arrived" --once >"$work/recv.log" 2>&1 &
  receiver=$!
  for _ in {1..100}; do
    address=$(sed -n 's/^listening on \([^ ]*\).*/\1/p' "$work/recv.log")
    [[ -n $address ]] && break
    sleep 0.1
  done
  [[ -n $address ]] || die "sdr recv does not listen: $(cat "$work/recv.log")"
  "$sdr" send "$work/demo.bin" "$address" --scheme ec-rs --link "$link" || die "sdr send failed; see above"
  wait "$receiver" || die "sdr recv failed: $(cat "$work/recv.log")"
  receiver=
  sent=$(sha256sum <"$work/demo.bin")
  arrived=$(sha256sum <"$work/arrived/demo.bin")
  [[ $sent == "$arrived" ]] || die "the file that arrived differs: $arrived instead of $sent"
  printf 'SHA-256 of what arrived is that of what was sent: %s\n' "${sent%% *}"
}

printf 'Reliable Writes over an emulated link: RTT %s, %s, both ends on this machine.\n' "$rtt" "$rate"
printf 'Mean completion time, and how many times the lossless ideal (payload at the rate, plus the RTT) that is.\n'
measure_all
plot
send_file
printf '\nDone in %d s.\n' "$SECONDS"
