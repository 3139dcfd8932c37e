#!/usr/bin/env bash
# Every wrong command line of run_sweep gives one clear line on standard error, the right exit code,
# nothing on standard output and no file; right ones that run nothing give what they promise.
# ctest-timeout: 600
set -uo pipefail
for word in $(compgen -e | grep -E '^(OMPI_|PMI_|PMIX_|SLURM_|QG_ISA$|QG_DATA_DIR$|COLUMNS$)'); do
    unset "$word"
done
run_sweep=$QG_BIN_DIR/run_sweep
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0 checks=0
small=(--ops error --formats mxfp8 --rules floor --data normal --m 1 --k 64 --backends emulator)

complain() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# refuse CODE PART ARGUMENT...: exit code, one line that holds PART, nothing else.
refuse() {
    local code=$1 part=$2 got
    shift 2
    checks=$((checks + 1))
    rm -f out err
    timeout 60 "$run_sweep" "$@" >out 2>err
    got=$?
    [ $got = "$code" ] || complain "exit code $got, not $code: $*: $(cat err)"
    [ "$(wc -l <err)" = 1 ] || complain "not one line: $*: $(cat err)"
    grep -q '^run_sweep: ' err || complain "does not begin with the program: $*: $(cat err)"
    grep -qF -- "$part" err || complain "lacks '$part': $*: $(cat err)"
    [ ! -s out ] || complain "printed: $*"
    if compgen -G 'results.h5*' >left; then complain "left $(cat left): $*"; fi
    rm -rf results.h5*
}

# What to sweep.
refuse 2 '--formats is required'
refuse 2 '--formats is required' --rules amax
refuse 2 'nearest is e4m3' --formats e4m4
refuse 2 'nearest is mxfp8' --formats e4m3,mxfp9
refuse 2 'list is empty' --formats ''
refuse 2 'list is empty' --formats=
refuse 2 'empty item' --formats e4m3,,e5m2
refuse 2 'empty item' --formats e4m3,
refuse 2 'has no zero' --formats e8m0
refuse 2 'exceeds binary32' --formats fp64
refuse 2 "matches 'zz*'" --formats 'zz*'
refuse 2 'needs a value' --formats
refuse 5 'cannot open' --formats @nowhere
: >empty
refuse 2 'no item' --formats @empty
refuse 2 'group:G' --formats e4m3 --layouts group:0
refuse 2 'unknown layout' --formats e4m3 --layouts columns
refuse 2 'nearest is amax' --formats e4m3 --rules amx
refuse 2 'known: amax amax_rcp' --formats e4m3 --rules foo
refuse 2 'nearest are two_level, two_level_torchao' --formats e4m3 --rules two
refuse 2 'nearest are mxfp8' --formats mxfp
refuse 2 '--list-names' --formats foo
refuse 2 '--list-names' --formats e4m3 --rounding foo
refuse 2 'fixed:X' --formats e4m3 --rules fixed:-1
refuse 2 'unknown rounding' --formats e4m3 --rounding up
refuse 2 'stochastic' --formats e4m3 --rounding stochastic:D
refuse 2 'fits nothing' --formats nvfp4 --layouts per_row
refuse 2 'fits nothing' --formats mxfp8 --rules delayed
refuse 2 'fits nothing' --formats mx9 --rules amax
refuse 2 'known: error, gemm, partition, throughput, vectors' --formats e4m3 --ops foo
refuse 2 '--units: no operation of the sweep has units (--ops gemm or model)' --formats e4m3 --ops error \
    --units exact
refuse 2 '--bias: no operation' --formats e4m3 --ops error --bias
refuse 2 'nearest is hopper_wgmma' --formats e4m3 --units hoper_wgmma
refuse 2 "matches 'zz*'" --formats e4m3 --units 'zz*'
refuse 2 "'hopper_wgmma' fits nothing" --formats mxfp8 --ops gemm --units exact,hopper_wgmma
refuse 2 'known: fp32, bf16, fp16' --formats e4m3 --out-types e4m3
refuse 2 'no recorded vectors' --formats nvfp4 --ops vectors
refuse 2 'known: fp32, bf16, fp16' --formats e4m3 --inputs e4m3
refuse 2 'nearest is cuda' --formats e4m3 --backends cudda
refuse 2 'unknown law' --formats e4m3 --data gauss
refuse 2 'crest' --formats e4m3 --data crest:9:16
refuse 2 "'0'" --formats e4m3 --m 0
refuse 2 "'-3'" --formats e4m3 --m -3
refuse 2 "'x'" --formats e4m3 --k x
refuse 2 "'1.5'" --formats e4m3 --k 1.5
refuse 2 'lo:hi:step' --formats e4m3 --k 1:2
refuse 2 'ends before it begins' --formats e4m3 --k 9:1:1
refuse 2 'never ends' --formats e4m3 --k 1:9:0
refuse 2 'never ends' --formats e4m3 --k 1:9:*1
refuse 2 'too many elements' --formats e4m3 --m 4294967296 --k 4294967296
refuse 2 '9223372036854775807' --formats e4m3 --m 9223372036854775808
refuse 2 'more than 4194304 cases' --formats e4m3 --m 1:10000:1 --k 1:10000:1
refuse 2 "'-1'" --formats e4m3 --seeds -1
refuse 2 'known: smoke, default, paper' --formats e4m3 --level huge

# Real tensors.
refuse 5 'nowhere.h5' --formats e4m3 --data tensors:nowhere.h5
refuse 2 'names no file' --formats e4m3 --data tensors:
refuse 2 'no tensor of' --formats e4m3 --data 'tensors:minilm.h5#nothing*'
printf 'garbage that is no HDF5' >bad.h5
refuse 2 'bad.h5' --formats e4m3 --data tensors:bad.h5
printf '\x10\0\0\0\0\0\0\0{"a":' >bad.safetensors
refuse 2 'bad.safetensors' --formats e4m3 --data tensors:bad.safetensors
printf '\x93NUMPY\x01\0' >bad.npy
refuse 2 'bad.npy' --formats e4m3 --data tensors:bad.npy

# Expressions and plans.
refuse 2 'nearest is format' --formats e4m3 --where formt=e4m3
refuse 2 'no comparison' --formats e4m3 --where m
refuse 2 'no whole number' --formats e4m3 --exclude m=x
refuse 2 '= and !=' --formats e4m3 --where 'format<e4m3'
refuse 2 'unknown column' --formats e4m3 --where status=RAN
refuse 2 '--list-names' --formats e4m3 --where foo=1
refuse 2 'nearest are scale_rule, scale_format' --formats e4m3 --where scale=1
refuse 4 'nothing selected' --formats e4m3 --where m=3
refuse 4 'nothing selected' --formats e4m3 --exclude 'm>0'
refuse 4 'nothing selected' --formats e4m3 --where m=3 --list
refuse 5 'cannot open' --plan nowhere.plan
printf '[a]\nformats e4m3\nrule amax\n' >bad.plan
refuse 2 'run_sweep: bad.plan:3: rule' --plan bad.plan
printf '[a]\nformats = e4m3\n' >bad.plan
refuse 2 "bad.plan:2: there is no = between option and value: write 'formats e4m3'" --plan bad.plan
printf '[a]\nformats=e4m3\n' >bad.plan
refuse 2 'there is no = between' --plan bad.plan
printf '[a]\n' >bad.plan
refuse 2 'no formats' --plan bad.plan
refuse 2 'no section' --plan empty
printf 'formats e4m3\nm x\n' >bad.plan
refuse 2 'run_sweep: bad.plan:2: m: ' --plan bad.plan

# How to run it.
refuse 2 'no shard' "${small[@]}" --shard 0/3
refuse 2 'no shard' "${small[@]}" --shard 4/3
refuse 2 'no shard' "${small[@]}" --shard 1
refuse 2 '1 to 1024' "${small[@]}" --threads 0
refuse 2 '1 to 1024' "${small[@]}" --threads 1025
refuse 2 '1 to 1024' "${small[@]}" --threads two
refuse 2 '--isa: unknown instruction set ' "${small[@]}" --isa neon
refuse 2 '--isa: unknown instruction set' "${small[@]}" --isa ''
grep -qw avx512f /proc/cpuinfo || refuse 5 '--isa: ' "${small[@]}" --isa avx512
refuse 2 'above 0' "${small[@]}" --max-seconds 0
refuse 2 'above 0' "${small[@]}" --max-seconds nan
refuse 2 'above 0' "${small[@]}" --case-timeout -1
refuse 2 'whole number from 1' "${small[@]}" --max-failures 0
refuse 2 'auto, bar, lines, none' "${small[@]}" --progress dots
refuse 2 'exclude each other' "${small[@]}" --overwrite --reuse
refuse 2 'exclude each other' "${small[@]}" --resume --overwrite
refuse 2 'exclude each other' "${small[@]}" --list --merge
refuse 2 'exclude each other' "${small[@]}" --list --list-names
refuse 2 'exclude each other' "${small[@]}" -v -q
refuse 2 'name is empty' "${small[@]}" --out ''
refuse 2 'unexpected argument' "${small[@]}" more
refuse 2 'nearest is --formats' --frmats e4m3
refuse 2 'unknown option' -x
refuse 2 'no line of arguments' --repro "'"
refuse 2 'no line of arguments' --repro ''
refuse 2 'cannot hold another' --repro '--formats e4m3 --repro x'
refuse 2 'nearest is e4m3' --repro '--formats e4m4'

# Results.
refuse 5 'nowhere.h5' --show nowhere.h5
refuse 5 'bad.h5' --show bad.h5
refuse 2 'needs --show' --columns m
refuse 2 'needs --show' --formats e4m3 --format tsv
refuse 2 'no format' --show bad.h5 --format xml
refuse 2 '--formats is an option of a sweep' --show bad.h5 --formats e4m3
refuse 2 "--columns '*'" --show bad.h5 --where foo=1
refuse 2 "--columns '*'" --show bad.h5 --exclude foo=1
refuse 2 "--columns '*'" --show bad.h5 --columns foo
refuse 2 'nearest is qsnr_db' --show bad.h5 --columns qsnr
refuse 2 'no number' --show bad.h5 --where 'qsnr_db>x'

# Environment.
QG_ISA=neon refuse 2 'QG_ISA: unknown instruction set' "${small[@]}"
PMI_RANK=2 PMI_SIZE=2 refuse 5 'PMI_RANK' "${small[@]}"
OMPI_COMM_WORLD_RANK=0 refuse 5 'OMPI_COMM_WORLD_SIZE' "${small[@]}"
SLURM_ARRAY_TASK_ID=x refuse 5 'SLURM_ARRAY_TASK_ID' "${small[@]}"
QG_DATA_DIR=$scratch refuse 5 'QG_DATA_DIR' --formats e4m3

# accept PART ARGUMENT...: exit code 0 and PART on standard output.
accept() {
    local part=$1
    shift
    checks=$((checks + 1))
    timeout 60 "$run_sweep" "$@" >out 2>err || complain "exit code $?: $*: $(cat err)"
    grep -qF -- "$part" out || complain "lacks '$part': $*: $(head -5 out)"
}

accept 'Usage: run_sweep' --help
accept 'emulator' --help
accept '--formats=L' --help
accept '[--formats=L]' --usage
accept 'run_sweep (quantgauge)' --version
accept '# all: op error, format mxfp8, layout group:32, scale_rule floor,' "${small[@]}" --list
accept 'scale_rule' --formats mxfp8 --data normal --m 1 --k 64 --list
COLUMNS=100 accept '# all: op error,' --ops error --formats e4m3,mxfp8,nvfp4 --list
awk '!/^# all/ && length > 100' out >wide
[ ! -s wide ] || complain "--list is wider than 100 columns: $(head -1 wide)"
grep -q 'format .*layout .*scale_rule .*data .*m .*k' out || complain "columns: $(head -2 out)"
COLUMNS=132 accept 'blackwell_mma_fp8+promote:128 ' --ops error,gemm,throughput \
    --formats e4m3,mxfp8,nvfp4 --list
awk '!/^# all/ && length > 132' out >wide
[ ! -s wide ] || complain "--list of products is wider than 132 columns: $(head -1 wide)"
grep -q 'format .*layout .*rule .*unit .*data .*m .*n .*k' out || complain "columns: $(head -2 out)"
# Into a file or a pipe every id and every unit is whole, as are reasons.
accept ' rtx_blackwell_mma+promote:128 ' --level smoke --formats e4m3,mxfp8,nvfp4 --list
grep -qvE '^(#|[0-9a-f]{16} )' out && complain "--list without a terminal cuts an id: $(tail -2 out)"
accept 'SKIPPED: parts of 320 elements of k (+split:2) cut the scales of +promote:128' --ops gemm \
    --formats e4m3 --layouts group:128 --units hopper_wgmma+promote:128+split:2 --data normal --m 1 \
    --n 2 --k 512,640 --list
accept 'vectors:hopper_wgmma-e4m3-f32-h200.qgvec' --ops vectors --formats e4m3 --list
# A recording that cannot be read is a failure with its reason, also alone.
mkdir -p damaged/datasets/vectors/hardware
: >damaged/datasets/vectors/hardware/empty.qgvec
checks=$((checks + 1))
code=0
QG_DATA_DIR=damaged timeout 60 "$run_sweep" --ops vectors --formats e4m3 --out damaged.h5 >out 2>err || code=$?
[ $code = 1 ] || complain "a damaged recording: exit code $code: $(cat err)"
grep -qF "FAILED: empty.qgvec:1: the first line must be '# qgvec 1'" out ||
    complain "a damaged recording has no reason: $(cat out)"
accept '# 1 case, ' --ops gemm --formats e4m3 --layouts per_row --units exact --bias --out-types bf16 \
    --data normal --m 1 --n 2 --k 3 --list
# Every name that is listed is accepted, and no line is too wide.
accept 'fixed:0x1p-1' --list-names
awk 'length > 80' out >wide
[ ! -s wide ] || complain "--list-names is wider than 80 columns: $(cat wide)"
for words in e4m3 nvfp4_4over6 two_level_torchao 'ue4m3+fp32' stochastic 'group:G' 'crest:K\[:G\]' \
    emulator scale_rule_b; do
    grep -qE -- "(^| )${words//+/\\+}( |\$)" out || complain "--list-names lacks $words"
done
cp out names
for name in $(sed -n '/^  recipe/,/^$/{s/^  \([^ ]*\) .*/\1/p}' names | tail -n +2); do
    case $name in te_delayed*) continue ;; esac # no sweep has a history
    accept '# 1 case' --ops error --formats "$name" --data normal --m 1 --k 128 --seeds 1 --rounding rne \
        --inputs fp32 --backends cpu --rules "$(awk -v n="$name" '$1 == n { print $4 }' names)" --list
done
"$run_sweep" --help >out
awk 'length > 80' out >wide
[ ! -s wide ] || complain "--help is wider than 80 columns: $(cat wide)"
accept '# 1 case, 64 elements' "${small[@]}" --list
accept '# 1 case, 64 elements' --repro "run_sweep ${small[*]}" --list
accept '# 3 cases' --ops error --backends emulator --formats mxfp8 --data normal --m 1 --k 64 --list
accept '# 6 cases' --ops error --formats mxfp8 --data normal --m 1 --k 64 --list # emulator and cpu
# Two shards share the cases between them; every line is in one of them.
accept '#' --formats e4m3 --level smoke --data normal --list
grep -v '^#' out | sort >all
accept '#' --formats e4m3 --level smoke --data normal --list --shard 1/2
grep -q 'shard 1 of 2' err || complain 'the shard is not printed'
grep -v '^#' out >parts
SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_STEP=2 \
    accept '#' --formats e4m3 --level smoke --data normal --list
grep -q 'shard 2 of 2 (SLURM_ARRAY_TASK_ID)' err || complain 'the shard of the array is not printed'
grep -v '^#' out >>parts
sort parts | cmp -s - all || complain 'the shards are not the whole'
for launcher in 'OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3' 'PMI_RANK=0 PMI_SIZE=3' \
    'SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=3'; do
    # shellcheck disable=SC2086
    env $launcher "$run_sweep" "${small[@]}" --list >out 2>err
    grep -q 'shard 1 of 3' err || complain "no shard from $launcher"
    # shellcheck disable=SC2086
    env $launcher "$run_sweep" "${small[@]}" --list --shard 1/1 >out 2>err
    [ ! -s err ] || complain "--shard 1/1 does not disable $launcher"
done
SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 accept '# 1 case' "${small[@]}" --list
[ ! -s err ] || complain 'a step of one task is no shard'

# Standard output that cannot be written is an environment error.
"$run_sweep" "${small[@]}" --list >/dev/full 2>err
[ $? = 5 ] || complain 'a full standard output is not noticed'

# Asked for and not there: the other cases run, exit code 5.
"$run_sweep" "${small[@]}" --backends emulator,cuda >out 2>err
[ $? = 5 ] || complain 'an absent backend is not 5'
grep -q '1 RAN, 1 UNAVAILABLE' out || complain "counts: $(cat out)"
rm -rf results.h5*
# Nothing but skipped cases is nothing measured.
"$run_sweep" --formats nvfp4 --rules two_level --layouts group:16,per_row --formats nvint4 \
    --where layout=per_row --data normal --m 1 --k 16 >out 2>err
[ $? = 2 ] || complain 'a value that fits nothing stays an error under --where'
"$run_sweep" --formats nvfp4,e4m3 --layouts group:16,per_row --data normal --m 1 --k 16 \
    --where 'layout=per_row&format=nvfp4' >out 2>err
[ $? = 4 ] || complain 'skipped cases alone are not 4'

echo "$checks command lines, $failures failures"
[ $failures = 0 ]
