#!/usr/bin/env bash
# The rules of the tree that no compiler checks, for the tree given as argument (default: this one).
# Prints `file:line: rule: text` for every violation and exits 1 if there is any. What each rule
# rejects is proved in test_floors_bite.py.
set -euo pipefail
export LC_ALL=C
cd "${1:-${QG_SOURCE_DIR:-$(dirname "${BASH_SOURCE[0]}")/../..}}"

folders=()
for folder in lib kernels experiments tests; do
    [ ! -d "$folder" ] || folders+=("$folder")
done
mapfile -t files < <(find "${folders[@]}" -type f -not -path '*/__pycache__/*' | sort)
mapfile -t code < <(printf '%s\n' "${files[@]}" | grep -E '\.(c|h|h\.in|cu|cuh)$')
mapfile -t builds < <(find . -name build -prune -o \
    \( -name CMakeLists.txt -o -name CMakePresets.json \) -print | sed 's|^\./||' | sort)

# One line of code per output line, `file:line:code`, without comments and, except in includes,
# without the contents of string and character literals.
strip() {
    awk '
        FNR == 1 { comment = 0 }
        {
            line = $0; out = ""
            include = !comment && line ~ /^[ \t]*#[ \t]*include/
            while (line != "") {
                if (comment) {
                    end = index(line, "*/")
                    if (!end) break
                    line = substr(line, end + 2); comment = 0; out = out " "
                } else if (substr(line, 1, 2) == "//" && !(include && quoted(out))) {
                    break
                } else if (substr(line, 1, 2) == "/*" && !(include && quoted(out))) {
                    comment = 1; line = substr(line, 3)
                } else if (!include && match(line, /^"([^"\\]|\\.)*"?/)) {
                    out = out "\"\""; line = substr(line, RLENGTH + 1)
                } else if (!include && match(line, /^\047([^\047\\]|\\.)+\047/)) {
                    out = out "0"; line = substr(line, RLENGTH + 1)
                } else {
                    out = out substr(line, 1, 1); line = substr(line, 2)
                }
            }
            if (out ~ /[^ \t]/) print FILENAME ":" FNR ":" out
        }
        # Inside the name of an include: it was opened and is not closed yet.
        function quoted(text, marks) {
            marks = gsub(/["<>]/, "", text)
            return marks % 2
        }
    ' "$@"
}
stripped=$(mktemp)
found=$(mktemp)
trap 'rm -f "$stripped" "$found"' EXIT
[ ${#code[@]} -eq 0 ] || strip "${code[@]}" >"$stripped"

# forbid RULE FILES PATTERN: no code line of the files that match FILES may match PATTERN.
forbid() {
    grep -E "^($2):[0-9]+:" "$stripped" | grep -E "^[^:]+:[0-9]+:.*($3)" |
        sed -E "s/^([^:]+:[0-9]+):[ \t]*/\1: $1: /" >>"$found" || true
}
call() { printf '(^|[^A-Za-z0-9_])(%s)[ \\t]*\\(' "$1"; }

library='(lib|kernels)/[^:]*'
below_store='(lib/(core|formats|layouts|recipes|emulator|measure|runtime|graph)|kernels)/[^:]*'
forbid prints "$library" "$(call 'v?printf|puts|putchar|perror')"
forbid prints "$library" '(^|[^A-Za-z0-9_])(stderr|stdout)([^A-Za-z0-9_]|$)'
forbid ends-the-process "$library" "$(call 'exit|_exit|_Exit|quick_exit|abort')"
forbid log2 "$library" "$(call 'log2[fl]?')"
forbid fast-math "$library|experiments/[^:]*|tests/[^:]*" \
    'fast[-_]math|FP_CONTRACT[ \t]+(ON|DEFAULT)'
forbid fast-math "$library|experiments/[^:]*|tests/[^:]*" \
    '__attribute__[ \t]*\(\([^)]*optimize|pragma[ \t]+GCC[ \t]+optimize'
forbid hdf5-below-store "$below_store" '#[ \t]*include[ \t]*["<](hdf5|H5)[^">]*'
forbid input-or-output 'lib/(emulator|runtime)/[^:]*' "$(call 'f?open|fread|fwrite|fopen|fscanf')"
forbid public-header-inside 'lib/[^:]*' '#[ \t]*include[ \t]*["<][^">]*quantgauge\.h'

for file in "${builds[@]}"; do
    sed -E 's/(^|[^\\])#.*/\1/' "$file" |
        grep -nE 'fast-math|Ofast|unsafe-math|use_fast_math|fp-contract=(fast|on)' |
        sed -E "s|^([0-9]+):[ \t]*|$file:\1: fast-math: |" >>"$found" || true
done

# A name stands for one file: includes name no folder.
printf '%s\n' "${files[@]}" | awk -F/ '
    $NF ~ /^(CMakeLists\.txt|README\.md|\.gitignore)$/ { next }
    { name = $NF; sub(/\.h\.in$/, ".h", name) }
    name in first { print $0 ": duplicate-name: also " first[name]; next }
    { first[name] = $0 }
' >>"$found"

# Includes: no folder in quotes, none before a project header, and only floors below.
awk -F: '
    FILENAME == "cmake/floors.txt" {
        if ($0 ~ /^[a-z]/) {
            count = split($0, word, /[ \t]+/)
            own = word[1]; sub(/.*\//, "", own)
            folder[own] = word[1]
            for (i = 2; i <= count; i++) below[own, word[i]] = 1
        }
        next
    }
    FILENAME == "-" { # the files of the tree
        name = $0; sub(/.*\//, "", name); sub(/\.h\.in$/, ".h", name)
        floor = floor_of($0)
        if (name ~ /\.(h|cuh|c|cu)$/) home[name] = floor
        next
    }
    {
        text = substr($0, length($1) + length($2) + 3)
        if (text !~ /^[ \t]*#[ \t]*include[ \t]*["<]/) next
        quotes = text ~ /include[ \t]*"/
        sub(/^[^"<]*["<]/, "", text); sub(/[">].*/, "", text)
        name = text; sub(/.*\//, "", name)
        place = $1 ":" $2 ": "
        if (text ~ /\// && (quotes || name in home)) {
            print place "path-in-include: " text
            next
        }
        if (!(name in home)) next
        from = floor_of($1); to = home[name]
        if (from == "tests" || from == "lib" || from == to || (from, to) in below) next
        # The one name that kernels take from whoever compiles them without CUDA.
        if (from == "kernels" && text == "cuda_shim.h") next
        if (to == "lib") { if (from != "experiments") print place "climbs: " text; next }
        print place "climbs: " from " may not include " text " of " to
    }
    function floor_of(path, part, n) {
        n = split(path, part, "/")
        if (part[1] != "lib") return part[1]
        return n > 2 ? part[2] : "lib"
    }
' cmake/floors.txt - "$stripped" < <(printf '%s\n' "${files[@]}") >>"$found"

if [ -s "$found" ]; then
    sort -u "$found"
    echo "$(sort -u "$found" | wc -l) violations"
    exit 1
fi
echo "${#code[@]} files of C and CUDA, no violation"
