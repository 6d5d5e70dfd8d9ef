#!/usr/bin/env bash
# One step of the install tests (install_tests.cmake): `install_test.sh STEP`, with SDR_BINARY_DIR, CMAKE, CC and CXX
# in the environment. Exit status 77 means skipped.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$SDR_BINARY_DIR/install-test
prefix=$work/prefix

pkgconfig() {
  local folder
  folder=$(dirname "$(find "$prefix" -name sdr.pc)")
  PKG_CONFIG_PATH=$folder pkg-config "$@" sdr
}

libdir() { dirname "$(find "$prefix" -name libsdr.a)"; }

# run PROGRAM: with the shared library of the prefix in reach.
run() {
  echo "+ $*"
  LD_LIBRARY_PATH=$(libdir) "$@"
}

needs_shared() { readelf -d "$1" | grep -q 'NEEDED.*libsdr\.so'; }

build_with_cmake() {
  local kind=$1 folder=$work/cmake-$1
  rm -rf "$folder"
  "$CMAKE" -S "$here/consumer" -B "$folder" -G Ninja -DSDR_KIND="$kind" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_BUILD_TYPE=Debug
  "$CMAKE" --build "$folder"
  run "$folder/consumer"
}

mkdir -p "$work"
case $1 in
  prefix)
    rm -rf "$prefix"
    "$CMAKE" --install "$SDR_BINARY_DIR" --prefix "$prefix"
    find "$prefix" -name sdrConfig.cmake | grep -q .
    find "$prefix" -name libsdr.so | grep -q .
    ;;
  c-pkgconfig)
    [[ -f $prefix/include/sdr/sdr.h ]] || { echo "this build has no C API"; exit 77; }
    # shellcheck disable=SC2046 # flags are words
    "$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror $(pkgconfig --cflags) "$here/consumer/consumer.c" \
      -o "$work/consumer-c" $(pkgconfig --libs)
    needs_shared "$work/consumer-c"
    run "$work/consumer-c"
    ;;
  cpp-static-pkgconfig)
    # The other libraries may be shared; Debian has no static ones of them.
    # shellcheck disable=SC2046
    "$CXX" -std=c++20 -Wall -Wextra -Werror $(pkgconfig --cflags) "$here/consumer/consumer.cpp" \
      -o "$work/consumer-static" $(pkgconfig --static --libs | sed 's/-lsdr\b/-l:libsdr.a/')
    ! needs_shared "$work/consumer-static" || { echo "the shared library was linked"; exit 1; }
    run "$work/consumer-static"
    ;;
  cpp-cmake)
    build_with_cmake shared
    needs_shared "$work/cmake-shared/consumer"
    ;;
  cpp-static-cmake)
    build_with_cmake static
    ! needs_shared "$work/cmake-static/consumer" || { echo "the shared library was linked"; exit 1; }
    ;;
  symbols)
    symbols=$(nm -D --defined-only --format=posix "$(libdir)/libsdr.so" | cut -d' ' -f1)
    grep -q '^_ZN3sdr' <<<"$symbols" || { echo "libsdr.so shows nothing of namespace sdr"; exit 1; }
    # cmake/sdr.map has the same rule.
    if grep -Ev '^(sdr_|_ZN?[A-Z]*[0-9_nvh]*[NKOR]*3sdr|_ZT[ISVT]N3sdr|_ZGVN3sdr|_ZT[hv])' <<<"$symbols" | c++filt; then
      echo "libsdr.so shows the symbols above, which are not its own"
      exit 1
    fi
    ;;
  *)
    echo "install_test.sh: no step named '$1'" >&2
    exit 2
    ;;
esac
