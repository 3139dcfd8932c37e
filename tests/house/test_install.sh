#!/usr/bin/env bash
# An installed tree works from wherever it is moved to: its programs, pkg-config with the shared and
# with the static library, and the CMake package. It names no path of the machine that built it.
# ctest-labels: nosan
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "$*"
    exit 1
}

cmake --install "$QG_BUILD_DIR" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/moved tree"
prefix="$scratch/moved tree"
pc=$(dirname "$(find "$prefix" -name quantgauge.pc)")
libdir=$(dirname "$pc")
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# Programs, data, and what they say of the machine that built them. (clang notes the file of every
# OpenMP region as ;file;function;line;column;; whatever the prefix map says: those do not count.)
for program in run_sweep run_gate make_figures check_vectors; do
    if [ -x "$QG_BIN_DIR/$program" ]; then
        (cd / && "$prefix/bin/$program" --version >/dev/null) || fail "$program --version failed"
    fi
done
for folder in datasets reports; do
    if [ -d "$QG_SOURCE_DIR/$folder" ]; then
        [ -d "$prefix/share/quantgauge/$folder" ] || fail "share/quantgauge/$folder is missing"
    fi
done
for path in "$QG_SOURCE_DIR" "$QG_BUILD_DIR" "$scratch/first"; do
    leaks=$(find "$prefix" -type f -exec strings -af {} + |
        grep -F "$path/" | grep -v ';;$' || true)
    [ -z "$leaks" ] || fail "$path is named in:"$'\n'"$leaks"
done

# Each header stands alone.
for header in "$prefix"/include/quantgauge/*.h; do
    "$QG_CC" -std=c11 -fsyntax-only -I "$prefix/include/quantgauge" -x c "$header" ||
        fail "$(basename "$header") does not compile alone"
done

cat >"$scratch/consumer.c" <<'C'
#include <quantgauge.h>
int main(void) { return qg_init() == QG_OK ? 0 : 1; }
C

# pkg-config. Its words carry backslashes before spaces: eval reads them as the shell would.
cflags=() shared=() static=()
export PKG_CONFIG_PATH=$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
[ "$(pkg-config --modversion quantgauge)" != "" ] || fail "quantgauge.pc has no version"
eval "cflags=($(pkg-config --cflags quantgauge))"
eval "shared=($(pkg-config --libs quantgauge))"
eval "static=($(pkg-config --static --libs quantgauge))"
"$QG_CC" -std=c11 "${cflags[@]}" "$scratch/consumer.c" "${shared[@]}" -o "$scratch/shared"
readelf -d "$scratch/shared" | grep -q 'NEEDED.*libquantgauge\.so\.' || fail "no soname"
"$scratch/shared" || fail "the consumer of the shared library failed"
"$QG_CC" -std=c11 "${cflags[@]}" "$scratch/consumer.c" \
    "${static[@]/#-lquantgauge/-l:libquantgauge.a}" -o "$scratch/static"
env -u LD_LIBRARY_PATH "$scratch/static" || fail "the consumer of the static library failed"

# The same from C++: every function is declared with C linkage. Its own flags, since the C compiler of
# the tests may be told more than C++ knows.
if command -v g++ >/dev/null; then
    cat >"$scratch/consumer.cc" <<'CC'
#include <qg_graph_gradient.h>
#include <qg_graph_pass.h>
#include <qg_graph_text.h>
#include <quantgauge.h>
int main() {
    qg_recipe recipe;
    qg_shape shape;
    qg_law *law = nullptr;
    bool good = qg_init() == QG_OK && qg_recipe_find("mxfp8", &recipe) == QG_OK &&
                qg_shape_of(&recipe, 2, 33, &shape) == QG_OK && shape.scales_size == 4 &&
                qg_law_parse("normal", &law) == QG_OK && qg_exp(0) == 1;
    qg_law_free(law);
    return good ? 0 : 1;
}
CC
    g++ -std=c++17 -Wall -Wextra -Werror "${cflags[@]}" "$scratch/consumer.cc" "${shared[@]}" -o "$scratch/cxx"
    "$scratch/cxx" || fail "the C++ consumer failed"
fi

# The manual's example, as printed in quantgauge.h.
sed -n '/^\/\/     #include/,/^\/\/     }$/s/^\/\/     \?//p' "$prefix/include/quantgauge/quantgauge.h" \
    >"$scratch/manual.c"
"$QG_CC" -std=c11 "${cflags[@]}" "$scratch/manual.c" "${shared[@]}" -o "$scratch/manual" ||
    fail "the example of quantgauge.h does not compile"
[ "$("$scratch/manual")" = "31.86 dB" ] || fail "the example of quantgauge.h does not print 31.86 dB"

# The README's example of a graph prints what the README says: the first C block and what follows it.
readme=$QG_SOURCE_DIR/README.md
awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$readme" >"$scratch/graph.c"
awk '/^```c$/ { seen = 1 } seen && /^prints$/ { prints = 1 }
     prints && /^```$/ { if (inside) exit; inside = 1; next } inside' "$readme" >"$scratch/wanted"
"$QG_CC" -std=c11 "${cflags[@]}" "$scratch/graph.c" "${shared[@]}" -o "$scratch/graph" ||
    fail "the README's graph does not compile"
"$scratch/graph" | diff - "$scratch/wanted" || fail "the README's graph prints something else"

# The CMake package.
mkdir "$scratch/project"
cat >"$scratch/project/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(quantgauge 0.1 REQUIRED)
foreach(library quantgauge quantgauge_static)
    add_executable(with_${library} ../consumer.c)
    target_link_libraries(with_${library} quantgauge::${library})
endforeach()
TEXT
{
    cmake -S "$scratch/project" -B "$scratch/project/build" -DCMAKE_C_COMPILER="$QG_CC" \
        -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$scratch/project/build"
} >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
for library in quantgauge quantgauge_static; do
    "$scratch/project/build/with_$library" || fail "the CMake consumer of $library failed"
done
