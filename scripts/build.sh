# shellcheck shell=bash
# Sourced by sweep.sh and test.sh: where the project is, and how a preset is built.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf 'quantgauge: %s\n' "$*" >&2; }

# build PRESET [OPTION...]: configures (with options of cmake) and builds build/PRESET, quietly unless
# it fails. Builds of one folder wait for each other.
build() {
    local preset=$1 folder=$top/build/$1 log lock failed=0
    shift
    mkdir -p "$folder"
    log=$(mktemp)
    exec {lock}<"$folder"
    flock "$lock"
    if [ ! -f "$folder/CMakeCache.txt" ] && [ -z "${CMAKE_GENERATOR-}" ] &&
        command -v ninja >/dev/null 2>&1; then
        export CMAKE_GENERATOR=Ninja
    fi
    say "building in build/$preset"
    (cd "$top" && cmake --preset "$preset" "$@" && cmake --build "$folder" --parallel "$(nproc)") \
        {lock}<&- </dev/null >"$log" 2>&1 || failed=1
    exec {lock}<&-
    if [ $failed = 1 ]; then
        cat "$log" >&2
        say "the build failed"
    fi
    rm -f "$log"
    return $failed
}
