#!/usr/bin/env bash
# Builds and runs device_check: the CUDA kernels and cuBLASLt against the emulator, bit by bit.
# Needs C and C++ compilers, CMake and the CUDA toolkit alone; builds in build/device.
#
#   --max-seconds S   for all of it, the build included (default: 240); what is left is listed
#   --out FILE        facts and rows, for `run_sweep --import-device FILE`
#   --arch A          90, 90a, ... or native; may be repeated (default: of the devices that are there)
#   --small, --stages L   as device_check --help says
#
# Exit codes: 0 all passed, 1 a failure, 2 usage, 3 something was left, 5 no toolkit or no device.
set -euo pipefail
begin=$SECONDS
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=build.sh
. "$scripts/build.sh"

usage() {
    say "device_check.sh: $*"
    sed -n '2,10{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
    exit 2
}

seconds=240
architectures=()
arguments=()
while [ $# -gt 0 ]; do
    option=$1
    case $option in
    --max-seconds | --out | --arch | --stages | --sanitizer-seconds)
        [ $# -ge 2 ] || usage "$option needs a value"
        value=$2
        shift
        ;;
    --max-seconds=* | --out=* | --arch=* | --stages=* | --sanitizer-seconds=*)
        value=${option#*=}
        option=${option%%=*}
        ;;
    --small) value= ;;
    --help)
        sed -n '2,10{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
        exit 0
        ;;
    *) usage "unknown option $option" ;;
    esac
    shift
    case $option in
    --max-seconds)
        [[ $value =~ ^0*([1-9][0-9]{0,8})(\.[0-9]+)?$ ]] ||
            usage "--max-seconds: '$value' is no time in seconds from 1"
        seconds=${BASH_REMATCH[1]}
        ;;
    --arch)
        [[ $value =~ ^(native|[0-9]+[af]?)$ ]] || usage "--arch: '$value' is no architecture"
        architectures+=("$value")
        ;;
    --small) arguments+=(--small) ;;
    --out)
        # Before the build: what was found is not to be lost.
        if [ ! -d "$(dirname -- "$value")" ] || [ ! -w "$(dirname -- "$value")" ]; then
            say "--out: cannot write '$value'"
            exit 5
        fi
        arguments+=(--out "$value")
        ;;
    *) arguments+=("$option" "$value") ;;
    esac
done

# ------------------------------------------------------------------------------------- what is here

find_nvcc() {
    local place
    for place in "$(command -v nvcc || true)" "${CUDACXX-}" "${CUDA_PATH-}/bin/nvcc" \
        "${CUDA_HOME-}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
        [ -n "$place" ] && [ -x "$place" ] && echo "$place" && return
    done
    return 1
}

# any NAME...: whether one of the programs is there.
any() { command -v "$@" >/dev/null 2>&1; }

any cmake || { say "device_check needs CMake >= 3.22; Debian package: cmake"; exit 5; }
any "${CC:-cc}" gcc clang || { say "device_check needs a C compiler; Debian package: gcc"; exit 5; }
any "${CXX:-c++}" g++ clang++ || { say "device_check needs a C++ compiler; Debian package: g++"; exit 5; }
nvcc=$(find_nvcc) || {
    say "device_check needs the CUDA toolkit >= 12.8: nvcc is neither in PATH, nor named by CUDACXX," \
        "nor under CUDA_PATH, CUDA_HOME or /usr/local/cuda"
    exit 5
}

# Compute capabilities of the devices, "9.0" a line; nothing without a device.
capabilities() { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -u; }

# 90 and above: code for that architecture alone, which has all its instructions.
target() {
    case $1 in
    native | *-real | *-virtual) echo "$1" ;;
    *[af]) echo "$1-real" ;;
    *) [ "$1" -ge 90 ] && echo "${1}a-real" || echo "$1-real" ;;
    esac
}

if [ ${#architectures[@]} -eq 0 ]; then
    while read -r capability; do
        [[ $capability =~ ^[0-9]+\.[0-9]$ ]] && architectures+=("${capability/./}")
    done < <(capabilities || true)
fi
# Without a device it must build all the same.
[ ${#architectures[@]} -gt 0 ] || architectures=(90)
targets=$(for a in "${architectures[@]}"; do target "$a"; done | paste -sd';')

# ------------------------------------------------------------------------------------------- build

folder=${QG_DEVICE_BUILD:-$top/build/device}
# 124 where the time is over.
in_time() {
    local left=$((seconds - (SECONDS - begin)))
    if any timeout; then timeout $((left > 1 ? left : 1)) "$@"; else "$@"; fi
}

build_device() {
    if [ ! -f "$folder/CMakeCache.txt" ] && [ -z "${CMAKE_GENERATOR-}" ] && any ninja; then
        export CMAKE_GENERATOR=Ninja
    fi
    CUDACXX=$nvcc cmake -S "$top" -B "$folder" -DQG_PARTS=device -DCMAKE_BUILD_TYPE=Release \
        "-DCMAKE_CUDA_ARCHITECTURES=$targets" &&
        in_time cmake --build "$folder" --parallel "$(nproc)" --target device_check quantgauge_cuda
}

mkdir -p "$folder"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
say "building for $targets in ${folder#"$top"/}"
built=0
build_device </dev/null >"$log" 2>&1 || built=$?
if [ $built -ne 0 ] && [ $built -ne 124 ]; then
    cat "$log" >&2
    say "the build failed"
    exit 5
fi

# --------------------------------------------------------------------------------------------- run

left=$((seconds - (SECONDS - begin)))
if [ $built -ne 0 ] || [ $left -lt 1 ]; then
    say "the build took all of the $seconds seconds; nothing was checked"
    exit 3
fi
sanitizer=$(command -v compute-sanitizer || true)
[ -z "$sanitizer" ] || arguments+=(--sanitizer "$sanitizer")
rm -f "$log"
exec "$folder/bin/device_check" --max-seconds "$left" "${arguments[@]}"
