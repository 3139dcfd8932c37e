#!/usr/bin/env bash
# Installs what is missing, builds, and runs run_sweep with the given arguments where it is called.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=build.sh
. "$scripts/build.sh"

"$scripts/dependencies.sh" || exit 5
# Where no driver is, nothing could load the CUDA module, and nvcc would take minutes for it.
options=()
if [ ! -e /proc/driver/nvidia/version ] && ! command -v nvidia-smi >/dev/null 2>&1; then
    options=(-DQG_CUDA=OFF)
fi
build release "${options[@]}" || exit 5
exec "$top/build/release/bin/run_sweep" "$@"
