#!/usr/bin/env bash
# check_vectors as its users see it: what it generates it verifies, a wrong digit is one mismatch,
# malformed files and options give one line and the right exit code, the committed vectors hold, and
# mutated files end in bounded time with a documented exit code.
# ctest-timeout: 600
set -euo pipefail
export LC_ALL=C
program=$QG_BIN_DIR/check_vectors
vectors=$QG_SOURCE_DIR/tests/data
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# expect CODE LINES WORDS ARGUMENT...: runs the program; LINES lines on stderr, the first of which
# contains WORDS.
expect() {
    local code=$1 lines=$2 words=$3 got=0
    shift 3
    "$program" "$@" >out 2>err </dev/null || got=$?
    [ $got = "$code" ] || fail "$*: exit $got, not $code: $(head -1 err)"
    [ "$(wc -l <err)" = "$lines" ] || fail "$*: $(wc -l <err) lines on stderr, not $lines"
    [ -z "$words" ] || head -1 err | grep -qF -- "$words" ||
        fail "$*: '$(head -1 err)' does not say '$words'"
}

# ------------------------------------------------------------------ generate and verify

formats="e4m3 e5m2 e4m3fnuz e3m4 e2m3 e2m1 ue4m3 mxint8 int4 int8_full bf16 fp16 tf32 fp32 fp64
    binary8p1se binary8p4uf f8e4m3b7"
roundings=(rne rna rtz rtp rtn rto stochastic stochastic:B:7 stochastic:C:32)
i=0
for format in $formats; do
    rounding=${roundings[i++ % ${#roundings[@]}]}
    overflow=saturate
    [ $((i % 2)) = 0 ] || overflow=format
    expect 0 0 "" generate --encode "$format" --rounding "$rounding" --overflow $overflow \
        --level 2 --count 40 --out "encode-$format.qgvec"
    expect 0 0 "" generate --decode "$format" --level 2 --count 40 --out "decode-$format.qgvec"
done
recipes="mxfp8 mxfp6_e3m2 mxfp4 mxint4 te_mxfp8 nvfp4 nvfp4_torchao nvfp4_4over6 nvint4 rlx_e4m3
    rlx_nvfp4 rlx_mxfp4x2 deepseek_w128x128 te_e5m2_pow2 vllm_ue8m0 mx9 mx4 msfp12"
for recipe in $recipes; do
    expect 0 0 "" generate --quantize "$recipe" --level 1,2 --count 20 \
        --out "quantize-$recipe.qgvec"
done
expect 0 0 "" generate --quantize mxfp4 --rule best --rounding stochastic --k 5 --out best.qgvec
expect 0 0 "" generate --quantize e4m3 --rows 3 --k 7 --rule fixed:0.5 --out fixed.qgvec

# dot UNIT [A [B [OUT [SCALE]]]]
dot() {
    local name=dot-${*//:/_}
    local arguments=(--unit "$1" --level "1,2")
    [ $# -lt 2 ] || arguments=(--unit "$1" --level 2)
    [ $# -lt 2 ] || arguments+=(--a-format "$2")
    [ $# -lt 3 ] || arguments+=(--b-format "$3")
    [ $# -lt 4 ] || arguments+=(--out-format "$4")
    [ $# -lt 5 ] || arguments+=(--scale "$5")
    expect 0 0 "" generate "${arguments[@]}" --count 40
    mv out "${name// /-}.qgvec"
}
for unit in volta_mma turing_mma ampere_mma ada_mma hopper_mma hopper_mma_fp8 hopper_wgmma \
    blackwell_mma blackwell_mma_fp8 blackwell_tcgen05 blackwell_mx blackwell_mxf4 \
    rtx_blackwell_mma cdna1_mfma cdna2_mfma cdna2_mfma_1k cdna3_mfma; do
    dot "$unit"
done
for unit in ada_mma hopper_mma_fp8 hopper_wgmma blackwell_mma_fp8 blackwell_tcgen05; do
    for a in e4m3 e5m2; do
        for b in e4m3 e5m2; do
            dot $unit $a $b fp32
            dot $unit $a $b fp16
        done
    done
done
for a in e4m3 e5m2 e2m3 e3m2 e2m1; do
    for b in e4m3 e5m2 e2m3 e3m2 e2m1; do
        dot blackwell_mx $a $b fp32 e8m0:32
        dot rtx_blackwell_mma $a $b fp32
    done
done
dot ampere_mma fp64
dot volta_mma fp16 fp16 fp16
dot cdna3_mfma e4m3fnuz e5m2fnuz
dot blackwell_mxf4 e2m1 e2m1 fp32 e8m0:32
dot blackwell_mxf4 e2m1 e2m1 fp32 ue4m3:16
expect 0 0 "" generate --unit hopper_wgmma --a-format e5m2 --k 100 --out long.qgvec
expect 0 0 "" generate --unit blackwell_mx --scale e8m0:64 --k 100 --out ragged.qgvec
head -20 ragged.qgvec | grep -qx '# columns: a\[100\] sa\[2\] b\[100\] sb\[2\] c d' ||
    fail "ragged.qgvec: $(grep columns ragged.qgvec)"
grep -q "^# comment: evidence .* V-HW, equals recorded outputs" dot-volta_mma.qgvec ||
    fail "dot-volta_mma.qgvec does not tell how well its row is known"
grep -q "^# comment: evidence .* INF, " dot-hopper_mma_fp8-e4m3-e4m3-fp32.qgvec ||
    fail "dot-hopper_mma_fp8 does not tell that it is inferred"
written=(./*.qgvec)
expect 0 0 "" verify "${written[@]}"
[ "$(tail -1 out | sed 's/^[0-9]* lines, //')" = "0 mismatches" ] ||
    fail "last line: $(tail -1 out)"
grep -c ': [0-9]* matches, 0 mismatches$' out >count
[ "$(cat count)" = ${#written[@]} ] || fail "$(cat count) files reported"

# The same seed gives the same bytes, another seed others; standard output is the default.
"$program" generate --encode e4m3 --level 2 --seed 5 >a.txt
"$program" generate --encode e4m3 --level 2 --seed 5 --out b.txt --threads 3 --isa scalar
cmp a.txt b.txt || fail "standard output and --out differ"
"$program" generate --encode e4m3 --level 2 --seed 6 | cmp -s - a.txt && fail "the seed is ignored"
"$program" verify - <a.txt >out || fail "standard input is not read"
[ "$(tail -1 out)" = "1000 lines, 0 mismatches" ] || fail "standard input: $(tail -1 out)"

# ------------------------------------------------------------------ a wrong digit

# flip FILE: changes the last digit of the last line, which is an output's.
flip() {
    sed -E '$ { s/0$/X/; s/[1-9a-f]$/0/; s/X$/1/ }' "$1" >flipped.qgvec
    cmp -s "$1" flipped.qgvec && fail "$1: nothing was flipped"
    expect 1 0 "" verify flipped.qgvec
    grep -q "^flipped.qgvec:$(wc -l <flipped.qgvec): .*wanted .* got " out ||
        fail "$1: $(head -1 out)"
    [ "$(tail -1 out)" = "$(grep -cv '^#' "$1") lines, 1 mismatches" ] || fail "$1: $(tail -1 out)"
}
for file in encode-*.qgvec decode-*.qgvec quantize-*.qgvec best.qgvec dot-*.qgvec ragged.qgvec; do
    flip "$file"
done
sed 's/ [0-9a-f]*$/ 55/' encode-e2m1.qgvec >all.qgvec
sed -i 's/^#\(.*\) 55$/#\1/; 1s/.*/# qgvec 1/' all.qgvec
grep -v '^#' all.qgvec >cases
{ grep '^#' encode-e2m1.qgvec; cat cases; } >all.qgvec
expect 1 0 "" verify all.qgvec encode-e4m3.qgvec
[ "$(grep -c 'wanted' out)" = 10 ] || fail "$(grep -c 'wanted' out) mismatches shown, not 10"
[ "$(tail -1 out)" = "80 lines, 40 mismatches" ] || fail "$(tail -1 out)"

# ------------------------------------------------------------------ the committed vectors

expect 0 0 "" verify "$vectors"/*.qgvec
[ "$(tail -1 out)" = "$(cat "$vectors"/*.qgvec | grep -cv '^#') lines, 0 mismatches" ] ||
    fail "committed vectors: $(tail -1 out)"
for file in "$vectors"/*.qgvec; do
    read -ra words < <(sed -n 's/^# comment: made by: check_vectors //p' "$file")
    "$program" "${words[@]}" | grep -v '^# origin: ' |
        cmp -s - <(grep -vE '^# (origin|comment): ' "$file") ||
        fail "$file differs from: check_vectors ${words[*]}"
done

# ------------------------------------------------------------------ recorded on hardware

recorded=("$QG_SOURCE_DIR"/datasets/vectors/hardware/*.qgvec)
[ ${#recorded[@]} = 44 ] || fail "${#recorded[@]} recorded files, not 44"
expect 0 0 "" verify "${recorded[@]}"
[ "$(tail -1 out)" = "22000 lines, 0 mismatches" ] || fail "recorded on hardware: $(tail -1 out)"
for file in "${recorded[@]:0:12}"; do
    flip "$file"
done

# ------------------------------------------------------------------ malformed files and options

head=$'# qgvec 1\n# kind: encode\n# format: e4m3\n# rounding: rne\n# overflow: saturate\n'
malformed() { # WORDS TEXT
    printf '%s' "$2" >bad.qgvec
    expect 2 1 "$1" verify bad.qgvec
    [ ! -s out ] || fail "$1: something ran"
}
malformed "bad.qgvec:1: the first line" ""
malformed "bad.qgvec:1: the first line" $'kind: encode\n'
malformed "bad.qgvec:2: unknown kind spin" $'# qgvec 1\n# kind: spin\n'
malformed "bad.qgvec:3: unknown format" $'# qgvec 1\n# kind: decode\n# format: e4m33\n'
malformed "bad.qgvec:6: unknown key formt; the nearest is format" "$head"$'# formt: e4m3\n'
malformed "bad.qgvec:6: field code has 1 characters, not 2" "$head"$'3f800000 3\n'
malformed "bad.qgvec:6: field x holds a character" "$head"$'3f80000z 38\n'
malformed "bad.qgvec:7: an empty line" "$head"$'3f800000 38\n\n'
expect 2 2 "bad.qgvec:7" verify encode-e4m3.qgvec bad.qgvec bad.qgvec # nothing runs, each is named
[ ! -s out ] || fail "a malformed file among good ones: something ran"

dot=$'# qgvec 1\n# kind: dot\n# unit: ada_mma\n# a: bf16\n# b: bf16\n'
malformed "bad.qgvec:3: unit exact has no instruction" $'# qgvec 1\n# kind: dot\n# unit: exact\n'
malformed "bad.qgvec:3: unit hopper_mma+promote:32 has modifiers" \
    $'# qgvec 1\n# kind: dot\n# unit: hopper_mma+promote:32\n'
malformed "bad.qgvec:6: unit ada_mma does not accumulate bf16 times bf16 in fp16, but in fp32" \
    "$dot"$'# c: fp16\n# d: fp16\n# k: 1\n'
malformed "bad.qgvec:7: d is fp16, but the accumulator" "$dot"$'# c: fp32\n# d: fp16\n# k: 1\n'
malformed "bad.qgvec:7: the header has no k" "$dot"$'# c: fp32\n# d: fp32\n'
malformed "bad.qgvec:9: field a has 2 characters, not 4" \
    "$dot"$'# c: fp32\n# d: fp32\n# k: 1\n3f 3f80 00000000 00000000\n'
malformed "bad.qgvec:1: the line ends in a carriage return" $'# qgvec 1\r\n# kind: dot\r\n'
sed 's/$/\r/' dot-volta_mma.qgvec >bad.qgvec
expect 2 1 "bad.qgvec:1: the line ends in a carriage return" verify bad.qgvec
{ grep '^#' encode-e4m3.qgvec; grep -v '^#' encode-e4m3.qgvec | sed 's/$/\r/'; } >bad.qgvec
line=$(($(grep -c '^#' encode-e4m3.qgvec) + 1))
expect 2 1 "bad.qgvec:$line: the line ends in a carriage return" verify bad.qgvec
printf '%s' "$head" >empty.qgvec
expect 4 1 "no line to check" verify empty.qgvec
expect 5 1 "absent.qgvec: cannot open" verify absent.qgvec
expect 5 1 "cannot read" verify "$scratch"

expect 2 1 "needs a command" -v
expect 2 1 "unknown command check" check
expect 2 1 "at least one file" verify
expect 2 1 "verify takes files" verify a.txt --seed 3
expect 2 1 "generate takes no file" generate x --encode e4m3
expect 2 1 "needs one of" generate
expect 2 1 "needs one of" generate --encode e4m3 --decode e4m3
expect 2 1 "the nearest is mxfp8" generate --quantize mxpf8
expect 2 1 "--encode: unknown format 'e4m4x'" generate --encode e4m4x
expect 2 1 "run_sweep --list-names lists all" generate --encode e4m4x
expect 2 1 "run_sweep --list-names lists all" generate --unit ada_mma --out-format fp33
expect 2 1 "--rounding: unknown rounding 'up'" generate --quantize mxfp8 --rounding up
expect 2 1 "run_sweep --list-names lists all" generate --encode e4m3 --rounding up
expect 2 1 "unknown" generate --quantize mxfp8 --rule celi
expect 2 1 "e8m0 is encoded with" generate --encode e8m0 --rounding rto
expect 2 1 "--overflow wrap" generate --encode e4m3 --overflow wrap
expect 2 1 "--rule does not belong to --encode" generate --encode e4m3 --rule floor
expect 2 1 "--rounding does not belong to --decode" generate --decode e4m3 --rounding rne
expect 2 1 "--overflow does not belong to --quantize" generate --quantize mxfp8 --overflow format
expect 2 1 "more than one block" generate --quantize mxfp8 --k 33
expect 2 1 "amax history" generate --quantize te_delayed_e4m3
expect 2 1 "--level 3" generate --encode e4m3 --level 3
expect 2 1 "belong to --level 2" generate --encode e4m3 --count 3
expect 2 1 "--count -1" generate --encode e4m3 --level 2 --count -1
expect 2 1 "--count 0" generate --encode e4m3 --level 2 --count 0
expect 2 1 "--seed 18446744073709551616" generate --encode e4m3 --level 2 \
    --seed 18446744073709551616
expect 2 1 "--scale belongs to --unit" generate --encode e4m3 --scale e8m0:32
expect 2 1 "--rule does not belong to --unit" generate --unit ada_mma --rule floor
expect 2 1 "--unit: unknown unit hoper_mma; the nearest is hopper_mma" generate --unit hoper_mma
expect 2 1 "known are volta_mma, " generate --unit spin
expect 2 1 "--unit: unit exact has no instruction" generate --unit exact
expect 2 1 "has modifiers" generate --unit hopper_wgmma+promote:128
expect 2 1 "does not take e2m1" generate --unit hopper_wgmma --a-format e2m1
expect 2 1 "does not multiply fp16 by bf16" generate --unit ada_mma --a-format fp16 --b-format bf16
expect 2 1 "--scale e8m0: write FORMAT:BLOCK" generate --unit blackwell_mx --scale e8m0
expect 2 1 "--scale e8m0:x: BLOCK" generate --unit blackwell_mx --scale e8m0:x
expect 2 1 "must be a multiple of 32" generate --unit blackwell_mx --scale e8m0:16
expect 2 1 "has no block scales" generate --unit ada_mma --scale e8m0:32
expect 2 1 "--k 0" generate --unit ada_mma --k 0
expect 2 1 "verify takes files" verify a.txt --a-format e4m3
expect 2 1 "--nonsense" verify a.txt --nonsense
expect 2 1 "unknown instruction set 'sse'" verify a.txt --isa sse
expect 2 1 "--threads many" verify a.txt --threads many
expect 2 1 "--threads 0: no number from 1 to 1024" verify a.txt --threads 0
expect 2 1 "--threads 0: no number from 1 to 1024" generate --encode e4m3 --threads 0
expect 2 1 "exclude each other" verify a.txt -v -q
expect 5 1 "cannot write" generate --encode e4m3 --out absent/file.qgvec
expect 0 0 "" --help
grep -q -e '--unit' out || fail "--help does not tell --unit"
grep -q 'Exit codes: 0' out || fail "--help does not tell the exit codes"
expect 0 0 "" --usage
expect 0 0 "" --version
grep -qE '^check_vectors \(quantgauge\) [0-9]+\.[0-9]+\.[0-9]+$' out || fail "--version: $(cat out)"
if [ -w /dev/full ]; then
    code=0
    "$program" generate --encode e4m3 >/dev/full 2>err || code=$?
    [ $code = 5 ] || fail "a full disk: exit $code, not 5"
fi

# A failed write leaves what was there, and no temporary file.
mkdir folder.qgvec
expect 5 1 "folder.qgvec: cannot write" generate --encode e4m3 --out folder.qgvec
[ ! -e folder.qgvec.tmp ] || fail "folder.qgvec.tmp remains"

# What is no regular file stays; a link's file is replaced, and the link stays.
mkfifo pipe.qgvec
expect 5 1 "pipe.qgvec: cannot write: it is no regular file" generate --encode e4m3 --out pipe.qgvec
[ -p pipe.qgvec ] || fail "a FIFO was replaced"
expect 5 1 "pipe.qgvec: cannot read: it is no regular file" verify pipe.qgvec
expect 5 1 "/dev/null: cannot read: it is no regular file" verify /dev/null
cat a.txt | "$program" verify /dev/stdin >out || fail "a pipe as /dev/stdin is not read"
"$program" verify <(cat a.txt) >out || fail "the pipe of <(command) is not read"
ln -s pipe.qgvec pipe-link.qgvec
expect 5 1 "it is no regular file" generate --encode e4m3 --out pipe-link.qgvec
[ -p pipe-link.qgvec ] || fail "the FIFO of a link was replaced"
[ -L pipe-link.qgvec ] || fail "a link to a FIFO was replaced"
expect 5 1 "/dev/null: cannot write: it is no regular file" generate --encode e4m3 --out /dev/null
[ -c /dev/null ] || fail "/dev/null was replaced"
echo before >target.qgvec
ln -s target.qgvec link.qgvec
expect 0 0 "" generate --encode e4m3 --level 2 --seed 5 --out link.qgvec
[ -L link.qgvec ] || fail "a link was replaced"
cmp a.txt target.qgvec || fail "the file of a link was not replaced"

# A killed run leaves the old file, and FILE.tmp, which the next run replaces.
cp a.txt kept.qgvec
"$program" generate --encode e4m3 --level 2 --count 1000000000 --out kept.qgvec &
victim=$!
for _ in $(seq 200); do
    [ -s kept.qgvec.tmp ] && break
    sleep 0.05
done
kill -9 $victim
wait $victim 2>/dev/null || true
[ -s kept.qgvec.tmp ] || fail "a killed run left no temporary file: the test tests nothing"
cmp a.txt kept.qgvec || fail "a killed run changed the file"
expect 0 0 "" generate --encode e4m3 --level 2 --seed 6 --out kept.qgvec
[ ! -e kept.qgvec.tmp ] || fail "kept.qgvec.tmp remains"
expect 0 0 "" verify kept.qgvec
[ "$(tail -1 out)" = "1000 lines, 0 mismatches" ] || fail "after a killed run: $(tail -1 out)"

# ------------------------------------------------------------------ mutated files

mkdir mutants
"$QG_PYTHON" - encode-e2m1.qgvec quantize-{mx9,nvfp4}.qgvec decode-fp64.qgvec \
    dot-{volta_mma,blackwell_mxf4-e2m1-e2m1-fp32-ue4m3_16}.qgvec <<'PYTHON'
import random, sys
choice = random.Random(20240)
seeds = []
for name in sys.argv[1:]:
    lines = open(name, "rb").read().splitlines(keepends=True)
    seeds.append(b"".join(lines[:18]))
numbers = [b"9223372036854775808", b"-1", b"0", b"1048576", b"99999999", b"18446744073709551615"]
for i in range(400):
    data = bytearray(choice.choice(seeds))
    for _ in range(choice.randint(1, 3)):
        at = choice.randrange(len(data) + 1)
        what = choice.randrange(7)
        if what == 0:
            del data[at:]
        elif what == 1 and at < len(data):
            data[at] ^= 1 << choice.randrange(8)
        elif what == 2:
            data[at:at] = bytes([choice.randrange(256)])
        elif what == 3:
            del data[at : at + choice.randint(1, 9)]
        elif what == 4:
            data[at:at] = data[at : at + choice.randint(1, 200)]
        elif what == 5:
            digits = [j for j, c in enumerate(data) if 48 <= c < 58][: 30]
            if digits:
                j = choice.choice(digits)
                data[j : j + 1] = choice.choice(numbers)
        else:
            end = data.find(b"\n", at)
            if end >= 0:
                data[end : end + 1] = choice.choice([b"", b" ", b"\r\n", b"\n\n", b"\0"])
        if not data:
            break
    open(f"mutants/{i}.qgvec", "wb").write(data)
PYTHON
for mutant in mutants/*; do
    code=0
    timeout 20 "$program" verify "$mutant" >out 2>err || code=$?
    case $code in
    0 | 1 | 2 | 4) ;;
    *) fail "$mutant: exit $code: $(head -1 err)" ;;
    esac
    if [ $code = 2 ]; then
        [ "$(wc -l <err)" = 1 ] || fail "$mutant: more than one line"
        grep -q "^check_vectors: $mutant:[0-9]*: " err || fail "$mutant: $(cat err)"
    fi
    echo $code
done | sort | uniq -c >codes
if ! grep -q ' 2$' codes || ! grep -qE ' [01]$' codes; then
    fail "mutants: $(tr '\n' ';' <codes)"
fi

[ $failures = 0 ] || exit 1
echo "${#written[@]} files, mutants by exit code: $(tr -s ' \n' ' ' <codes)"
