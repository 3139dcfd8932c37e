# shellcheck shell=bash
# Sourced by sweep.sh and test.sh: where the project is, and how a preset is built.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf 'quantgauge: %s\n' "$*" >&2; }

# build PRESET: configures and builds build/PRESET, quietly unless it fails. Builds of one folder
# wait for each other.
build() {
    local folder=$top/build/$1 log lock failed=0
    mkdir -p "$folder"
    log=$(mktemp)
    exec {lock}<"$folder"
    flock "$lock"
    if [ ! -f "$folder/CMakeCache.txt" ] && [ -z "${CMAKE_GENERATOR-}" ] &&
        command -v ninja >/dev/null 2>&1; then
        export CMAKE_GENERATOR=Ninja
    fi
    say "building in build/$1"
    (cd "$top" && cmake --preset "$1" && cmake --build "$folder" --parallel "$(nproc)") \
        {lock}<&- </dev/null >"$log" 2>&1 || failed=1
    exec {lock}<&-
    if [ $failed = 1 ]; then
        cat "$log" >&2
        say "the build failed"
    fi
    rm -f "$log"
    return $failed
}
