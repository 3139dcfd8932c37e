#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests: optimized with warnings as errors, then with
# AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=build.sh
. "$scripts/build.sh"

usage() {
    cat <<'TEXT'
usage: scripts/test.sh [--quick | --exhaustive]
  (nothing)     all tests but the long ones, optimized and under sanitizers
  --quick       optimized only
  --exhaustive  the long ones alone: labels exhaustive and soak
TEXT
}

presets=(ci dev)
[ $# -le 1 ] || set -- --wrong
case "${1-}" in
'') ;;
--quick) presets=(ci) ;;
--exhaustive) presets=(exhaustive) ;;
--help | -h)
    usage
    exit 0
    ;;
*)
    usage >&2
    exit 2
    ;;
esac

"$scripts/dependencies.sh" test || exit 5
for preset in "${presets[@]}"; do
    case $preset in
    exhaustive) build ci || exit 1 ;;
    *) build "$preset" || exit 1 ;;
    esac
    (cd "$top" && ctest --preset "$preset")
done
say "all tests passed"
