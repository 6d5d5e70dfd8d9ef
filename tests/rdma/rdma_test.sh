#!/usr/bin/env bash
# `./dev rdma-test`: the verbs transport on real ibverbs, without an RDMA NIC: a small emulated machine with Linux's
# soft-RoCE on both ends of a cable that netem impairs. docs/verbs.md says what runs in it.
#
#   rdma_test.sh BUILD CACHE [--only PATTERN] [--long]       in the machine
#   rdma_test.sh BUILD '' --native A,B [--only PATTERN]      on two RDMA devices of this machine (or one twice: A,A)
#
# BUILD is a built preset, CACHE keeps kernel and initramfs. Bounded: RDMA_TEST_LIMIT seconds (default 420) for all that
# happens in the machine. The exit status is 0 when every check passed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
limit=${RDMA_TEST_LIMIT:-420}

die() {
  printf 'rdma-test: %s\n' "$*" >&2
  exit 1
}
say() { printf '\033[1m== %s\033[0m\n' "$*"; }

# The distribution's kernel, unpacked but not installed: $cache/kernel/{vmlinuz,version,tree}.
fetch_kernel() {
  [[ -f $cache/kernel/version ]] && return
  local meta package work=$cache/kernel.new
  # A fresh container has no package lists.
  if ! apt-cache show linux-image-amd64 >/dev/null 2>&1 && ((EUID == 0)); then apt-get update -qq; fi
  for meta in linux-image-amd64 linux-image-generic; do
    package=$(apt-cache depends "$meta" 2>/dev/null | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
    [[ -n $package ]] && break
  done
  [[ -n $package ]] || die "no kernel package known to apt (apt-get update?); tried linux-image-amd64 and -generic"
  say "Fetching $package"
  rm -rf "$work"
  mkdir -p "$work/tree"
  (
    cd "$work"
    fetch="apt-get download -qq"
    # As root, apt would fetch as another user, who may not write here.
    ((EUID != 0)) || fetch+=" -o APT::Sandbox::User=root"
    $fetch "$package"
    # Ubuntu keeps the modules apart, soft-RoCE among the extra ones.
    for extra in "linux-modules-${package#linux-image-}" "linux-modules-extra-${package#linux-image-}"; do
      if apt-cache show "$extra" >/dev/null 2>&1; then $fetch "$extra"; fi
    done
    for deb in ./*.deb; do dpkg -x "$deb" tree; done
    rm ./*.deb
    cp tree/boot/vmlinuz-* vmlinuz
  )
  [[ -d $work/tree/lib/modules ]] || ln -s usr/lib "$work/tree/lib"
  basename "$work"/tree/lib/modules/* >"$work/version"
  rm -rf "$cache/kernel"
  mv "$work" "$cache/kernel"
}

modules="rdma_rxe ib_uverbs rdma_ucm sch_netem sch_plug veth dummy virtio_pci 9pnet_virtio 9p crc32_generic
  crc32_pclmul"

# busybox, the modules and guest_init.sh; everything else comes from this machine's own root, shared read-only.
build_initramfs() {
  local version image=$cache/initramfs.gz work=$cache/initramfs.new module kind file busybox
  version=$(<"$cache/kernel/version")
  [[ $image -nt $here/guest_init.sh && $image -nt $cache/kernel/version && $image -nt ${BASH_SOURCE[0]} ]] && return
  busybox=$(command -v busybox) || die "busybox is missing (package busybox-static)"
  say "Building the initramfs for Linux $version"
  [[ -f $cache/kernel/tree/lib/modules/$version/modules.dep ]] || depmod -b "$cache/kernel/tree" "$version"
  rm -rf "$work"
  mkdir -p "$work"/{bin,dev,proc,sys,host,out} "$work/lib/modules/$version"
  cp "$busybox" "$work/bin/busybox"
  for module in $modules; do
    { modprobe -d "$cache/kernel/tree" -S "$version" --show-depends "$module" 2>/dev/null || true; } |
      while read -r kind file _; do
        [[ $kind == insmod ]] || continue
        case $file in
          *.zst) zstd -q -d -f "$file" -o "$work/lib/modules/$version/$(basename "${file%.zst}")" ;;
          *.xz) xz -dc "$file" >"$work/lib/modules/$version/$(basename "${file%.xz}")" ;;
          *) cp "$file" "$work/lib/modules/$version/" ;;
        esac
      done
  done
  cp "$cache/kernel/tree/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$work/lib/modules/$version/" ||
    true # not every kernel has all of them, and depmod does without
  depmod -b "$work" "$version"
  cp "$here/guest_init.sh" "$work/init"
  chmod 755 "$work/init"
  (cd "$work" && find . -print0 | cpio --null --quiet -o -H newc -R 0:0) | gzip -1 >"$image.new"
  mv "$image.new" "$image"
  rm -rf "$work"
}

# Without what the firmware says, and without control sequences.
tidy_console() { sed -u 's/\r$//; s/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\x1bc//g; /^SeaBIOS\|^Booting from ROM\|reboot: Power down\|^$/d'; }

# machine SECONDS ACCELERATOR OPTION...: the emulated machine with the kernel, for so long at most.
machine() {
  timeout -k 5 "$1" qemu-system-x86_64 -accel "$2" -cpu max -machine q35 -smp 2 -m 2G \
    -nographic -no-reboot -nodefaults -monitor none -kernel "$cache/kernel/vmlinuz" "${@:3}"
}

# Whether KVM is there and runs a kernel: in a virtual machine it may be there and get nowhere. Without a root the kernel
# comes to its end by itself, in seconds.
kvm_works() {
  [[ -w /dev/kvm ]] && machine 30 kvm -serial null -append "quiet panic=-1" </dev/null >/dev/null 2>&1
}

# boot SCRIPT ARGUMENT...: runs SCRIPT in the machine; its output comes over the console, its status through $out.
boot() {
  local out=$cache/out status=0 accel=tcg,thread=multi
  ! kvm_works || accel=kvm
  rm -rf "$out"
  mkdir -p "$out"
  printf '%q ' "$@" >"$out/command"
  machine "$limit" "$accel" -serial stdio -initrd "$cache/initramfs.gz" \
    -append "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off" \
    -fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap -device virtio-9p-pci,fsdev=root,mount_tag=root \
    -fsdev local,id=out,path="$out",security_model=none -device virtio-9p-pci,fsdev=out,mount_tag=out \
    </dev/null 2>"$cache/qemu.log" | tidy_console | tee "$cache/console.log" || status=$?
  [[ -f $out/status ]] && return "$(<"$out/status")"
  cat "$cache/qemu.log" >&2
  die "the machine ended without a verdict (status $status, limit $limit s); see $cache/console.log"
}

(($# >= 2)) || die "usage: rdma_test.sh BUILD CACHE [--native A,B] [--only PATTERN] [--long]"
build=$(realpath "$1")
cache=$2
shift 2
for program in sdr test_transport test_capi; do
  [[ -x $build/$program ]] || die "$build has no $program: build it first"
done
if [[ ${1:-} == --native ]]; then
  pair=${2:?--native needs the names of two RDMA devices that reach each other, A,B (or A,A)}
  shift 2
  results=$(mktemp -d)
  say "Testing on $pair; what the checks print is kept in $results"
  exec "$here/checks.sh" "$build" "$results" native "$pair" "$@"
fi
[[ $(uname -m) == x86_64 ]] || die "the machine is an x86_64 one; on $(uname -m) use --native with an RDMA device"
mkdir -p "$cache"
cache=$(realpath "$cache")
fetch_kernel
build_initramfs
say "Booting Linux $(<"$cache/kernel/version") with two soft-RoCE devices"
# /mnt is where guest_init.sh puts the folder for results.
boot "$here/checks.sh" "$build" /mnt soft-roce rxa,rxb "$@"
