#!/usr/bin/env bash
# What nvcc makes of the kernels, for each target of the module: IEEE operations that nothing may
# fuse, no approximation, no flushing of subnormals, no library call, and the conversion instructions
# where the target has them. Then that the check bites: doctored sources and flags must fail it.
# Skipped where nvcc is not there. Nothing runs on a device.
# ctest-labels: nosan
# ctest-timeout: 900
set -euo pipefail
export LC_ALL=C
source_dir=${QG_SOURCE_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build_dir=${QG_BUILD_DIR:-$source_dir/build/ci}
targets=(89 90a 100a 120a)

nvcc=$(sed -n 's/^QG_NVCC:FILEPATH=//p' "$build_dir/CMakeCache.txt")
if [ ! -x "$nvcc" ]; then
    echo "skipped: nvcc is not here, so no PTX was checked"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# As cmake/floors.cmake and cmake/cuda.cmake have them.
includes=()
for floor in kernels $(sed -n 's/^kernels //p' "$source_dir/cmake/floors.txt"); do
    folder=$floor
    [ "$floor" = kernels ] || folder=lib/$floor
    includes+=("-I$source_dir/$folder" "-I$build_dir/$folder")
done
flags=(-fmad=false -ftz=false -prec-div=true -prec-sqrt=true)

# Expected conversions. Columns: instruction, files that must hold it for the targets that follow;
# in no file may it appear for another target.
expected='
cvt.rn.satfinite.e4m3x2.f32  group_shared,group_hopper,block,tensor      89,90a,100a,120a
cvt.rn.satfinite.e5m2x2.f32  group_hopper,block,tensor                   89,90a,100a,120a
cvt.rn.satfinite.e2m1x2.f32  group_hopper                                100a,120a
cvt.rn.satfinite.e2m3x2.f32  group_hopper                                100a,120a
cvt.rn.satfinite.e3m2x2.f32  group_hopper                                100a,120a
'

# Patterns that no kernel may hold, with the reason. Columns by tab: files exempt, pattern, reason.
# Without a rounding modifier ptxas may fuse an addition with a multiplication.
forbidden='
-	\.ftz	subnormals are flushed
-	\.approx	approximation
-	\.full\.f32	approximation
-	(^|[^a-z_])(ex2|lg2|sin|cos|tanh|rsqrt)\.	approximation
-	(^|[^a-z_])(div|rcp|sqrt)\.(r[zmp]\.)?f(32|64)	not rounded to nearest
-	(^|[^a-z_])(add|sub|mul)\.f(32|64)	may be fused
-	(^|[^a-z_])(mad|fma)\.[a-z.]*f64	fused
multiply	(^|[^a-z_])(mad|fma)\.[a-z.]*f32	fused
-	\.extern +\.func	calls a library
'

# compile SOURCE TARGET PTX [OPTION...]: PTX of one file, messages beside it. An option replaces the
# flag of its name, -use_fast_math all of them.
compile() {
    local source=$1 target=$2 ptx=$3 flag option kept=()
    shift 3
    for flag in "${flags[@]}"; do
        for option in "$@"; do
            [ "${flag%%=*}" != "${option%%=*}" ] && [ "$option" != -use_fast_math ] || continue 2
        done
        kept+=("$flag")
    done
    "$nvcc" -std=c++17 "${kept[@]}" "$@" -arch="compute_$target" -ptx "${includes[@]}" "$source" \
        -o "$ptx" >"$ptx.log" 2>&1
}

contains() { [[ ",$2," == *",$1,"* ]]; }

# check PTX NAME TARGET: prints what is wrong with the PTX of kernels/NAME.cu; fails if anything is.
check() {
    local ptx=$1 name=$2 target=$3 wrong=0 exempt pattern reason line instruction files where
    while IFS=$'\t' read -r exempt pattern reason; do
        [ -n "$pattern" ] && ! contains "$name" "$exempt" || continue
        if line=$(grep -nE -m1 "$pattern" "$ptx"); then
            echo "$name.cu for $target: $reason: $line"
            wrong=1
        fi
    done <<<"$forbidden"
    while read -r instruction files where; do
        [ -n "$instruction" ] || continue
        if grep -qF "$instruction" "$ptx"; then
            contains "$target" "$where" && continue
            echo "$name.cu for $target: holds $instruction"
            wrong=1
        elif contains "$name" "$files" && contains "$target" "$where"; then
            echo "$name.cu for $target: no $instruction"
            wrong=1
        fi
    done <<<"$expected"
    return $wrong
}

compile_and_check() {
    local source=$1 target=$2
    local name ptx
    name=$(basename "$source" .cu)
    ptx=$work/$name.$target.ptx
    if ! compile "$source" "$target" "$ptx" -Werror all-warnings; then
        echo "$name.cu does not compile for $target:"
        head -20 "$ptx.log"
        return 1
    fi
    check "$ptx" "$name" "$target"
}

# ------------------------------------------------------------------------------------- the kernels

# Every job prints its findings into a file of its own; empty files mean that all is well.
echo "nvcc: $("$nvcc" --version | sed -n 's/.*release \([^,]*\).*/\1/p'), targets ${targets[*]}"
failed=0
jobs_at_once=$(nproc)
for source in "$source_dir"/kernels/*.cu; do
    for target in "${targets[@]}"; do
        # One target with and one without FP4 and FP6 conversions; all of them where they matter most.
        [[ $source == */group_*.cu || $target == 90a || $target == 100a ]] || continue
        while [ "$(jobs -rp | wc -l)" -ge "$jobs_at_once" ]; do wait -n || true; done
        finding=$work/$(basename "$source").$target.finding
        { compile_and_check "$source" "$target" || echo FAILED; } >"$finding" 2>&1 &
    done
done
wait
for finding in "$work"/*.finding; do
    if [ -s "$finding" ]; then
        cat "$finding"
        failed=1
    fi
done

# The counts that the log shows.
for target in "${targets[@]}"; do
    count() { cat "$work"/*."$target".ptx 2>/dev/null | grep -cE "$1" || true; }
    echo "$target: div.rn.f32 $(count 'div\.rn\.f32'), rcp.rn.f32 $(count 'rcp\.rn\.f32')," \
        "div.rn.f64 $(count 'div\.rn\.f64'), fma.rn.f32 $(count 'fma\.rn\.f32');" \
        "cvt to e4m3 $(count 'cvt.rn.satfinite.e4m3x2'), e5m2 $(count 'cvt.rn.satfinite.e5m2x2')," \
        "e2m1 $(count 'cvt.rn.satfinite.e2m1x2'), e2m3 $(count 'cvt.rn.satfinite.e2m3x2')," \
        "e3m2 $(count 'cvt.rn.satfinite.e3m2x2')"
done

# -------------------------------------------------------------------------- the check itself bites

# bites WHAT REASON TARGET HEADER SED [OPTION...]: group_shared.cu, compiled with the header changed by SED
# and more options, must fail with the reason.
bites() {
    local what=$1 reason=$2 target=$3 header=$4 change=$5 place found
    shift 5
    place=$(mktemp -d -p "$work")
    cp "$source_dir"/kernels/*.cuh "$source_dir"/kernels/*.h "$source_dir/kernels/group_shared.cu" "$place"
    cp "$(find "$source_dir/kernels" "$source_dir/lib" -name "$header")" "$place/$header"
    if [ -n "$change" ]; then
        sed -E "$change" "$place/$header" >"$place/changed"
        if cmp -s "$place/changed" "$place/$header"; then
            echo "$what: nothing to change in $header"
            return 1
        fi
        mv "$place/changed" "$place/$header"
    fi
    # The folder of the source comes first for quotes alone: these includes have none.
    if ! compile "$place/group_shared.cu" "$target" "$place/group_shared.ptx" "-I$place" "$@"; then
        echo "$what: does not compile:"
        head -20 "$place/group_shared.ptx.log"
        return 1
    fi
    found=$(check "$place/group_shared.ptx" group_shared "$target") && found="nothing"
    if ! grep -qF "$reason" <<<"$found"; then
        echo "$what: not '$reason', but $found"
        return 1
    fi
    echo "bites: $what"
}

bites 'an approximate division' 'approximation' 90a element.cuh \
    's|x / b->operand|__fdividef(x, b->operand)|' || failed=1
bites 'a scale by an approximate division' 'approximation' 90a qg_ordinary_scale.h \
    's|x = amax / s->f;|x = __fdividef(amax, s->f);|' || failed=1
bites 'a division rounded up' 'not rounded to nearest' 90a element.cuh \
    's|x / b->operand|__fdiv_ru(x, b->operand)|' || failed=1
bites 'the exponential of the library' 'approximation' 90a qg_silu.h \
    's|qg_exponential\(-g\)|__expf(-g)|' || failed=1
bites '-use_fast_math' 'subnormals are flushed' 90a element.cuh '' -use_fast_math || failed=1
bites '-fmad=true' 'fused' 90a element.cuh '' -fmad=true || failed=1
bites '-prec-div=false' 'approximation' 90a element.cuh '' -prec-div=false || failed=1
bites 'no cvt' 'no cvt.rn.satfinite.e4m3x2.f32' 90a element.cuh \
    's|__CUDA_ARCH__ >= 890|__CUDA_ARCH__ >= 8900|' || failed=1

[ "$failed" = 0 ] && echo "all is as it should be"
exit "$failed"
