#!/usr/bin/env bash
# Installs what is missing, builds, and runs run_sweep with the given arguments where it is called.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=build.sh
. "$scripts/build.sh"

"$scripts/dependencies.sh" || exit 5
build release || exit 5
exec "$top/build/release/bin/run_sweep" "$@"
