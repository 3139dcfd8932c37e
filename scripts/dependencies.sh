#!/usr/bin/env bash
# Installs what quantgauge needs and this machine lacks: `dependencies.sh` for the programs,
# `dependencies.sh test` also for the tests. Silent when all is there. Debian and Ubuntu, as root or
# with sudo; elsewhere it names what is missing and exits 5.
set -euo pipefail

# Debian package, and how to see that it is there when it came from somewhere else.
programs=(
    "build-essential  command -v cc && command -v make"
    "cmake            command -v cmake"
    "pkg-config       command -v pkg-config"
    "libhdf5-dev      pkg-config --exists hdf5 || pkg-config --exists hdf5-serial"
    "libpopt-dev      pkg-config --exists popt"
    "libjansson-dev   pkg-config --exists jansson"
    "libxxhash-dev    pkg-config --exists libxxhash"
    "zlib1g-dev       pkg-config --exists zlib"
    "libdnnl-dev      echo '#include <oneapi/dnnl/dnnl.h>' | cc -E -x c -"
    "libopenblas-dev  pkg-config --exists openblas"
    "gnuplot-nox      command -v gnuplot"
)
tests=(
    "check            pkg-config --exists check"
    "python3-h5py     python3 -c 'import h5py'"
    "python3-numpy    python3 -c 'import numpy'"
    "python3-pandas   python3 -c 'import pandas'"
    "openmpi-bin      command -v mpirun"
    "hdf5-tools       command -v h5dump"
)

say() { printf 'quantgauge: %s\n' "$*" >&2; }

installed() { # package
    command -v dpkg-query >/dev/null 2>&1 &&
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

wanted=("${programs[@]}")
case "${1-}" in
'') ;;
test) wanted+=("${tests[@]}") ;;
*)
    say "usage: dependencies.sh [test]"
    exit 2
    ;;
esac

missing=()
for row in "${wanted[@]}"; do
    read -r package probe <<<"$row"
    installed "$package" || bash -c "$probe" >/dev/null 2>&1 || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
fi
if ! command -v apt-get >/dev/null 2>&1; then
    say "missing (names of the Debian packages): ${missing[*]}"
    exit 5
fi
if [ ${#as_root[@]} -gt 0 ] && ! command -v sudo >/dev/null 2>&1; then
    say "missing, and neither root nor sudo to install: ${missing[*]}"
    exit 5
fi

say "installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 "$@" \
        </dev/null >>"$log" 2>&1
}
install_missing() {
    apt -q update && apt -q -y --no-install-recommends install "${missing[@]}"
}
if ! install_missing; then
    sleep 5
    if ! install_missing; then
        tail -n 20 "$log" >&2
        say "could not install: ${missing[*]}"
        exit 5
    fi
fi
