"""Proves that the floors hold: an include that climbs does not compile, and test_floors.sh rejects
each thing that it forbids and nothing that merely resembles it."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(os.environ["QG_SOURCE_DIR"])
build = pathlib.Path(os.environ["QG_BUILD_DIR"])
failures = []


def read_floors():
    floors = {}
    for line in (source / "cmake/floors.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            folder, *below = line.split()
            floors[pathlib.Path(folder).name] = (source / folder, below)
    return floors


def compile_commands():
    """Compiler and include options of each floor, as it is really built."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        parts = (part for word in words for part in word.split("/"))
        target = next((part for part in parts if part.endswith(".dir")), "")
        includes = []
        for i, word in enumerate(words):
            if word == "-isystem":
                includes += words[i : i + 2]
            elif word.startswith("-I") or word.startswith("-D") or word.startswith("-std="):
                includes.append(word)
        name = target.removeprefix("qg_").removesuffix(".dir")
        commands.setdefault("experiments" if name == "engine" else name, [words[0], *includes])
    return commands


def check_compiler(floors, scratch):
    commands = compile_commands()
    probed = 0
    for name, (folder, below) in floors.items():
        if name not in commands:
            continue
        for other, (other_folder, _) in floors.items():
            header = next(iter(sorted(other_folder.glob("*.h"))), None)
            if header is None:
                continue
            probe = scratch / "probe.c"
            probe.write_text(f"#include <{header.name}>\ntypedef int probe;\n")
            run = subprocess.run([*commands[name], "-fsyntax-only", str(probe)], cwd=scratch,
                                 capture_output=True, text=True)
            allowed = other == name or other in below
            probed += 1
            if allowed and run.returncode != 0:
                failures.append(f"{name} cannot include {header.name} of {other}:\n{run.stderr}")
            if not allowed and run.returncode == 0:
                failures.append(f"{name} compiles with {header.name} of {other}, which is above it")
            if not allowed and run.returncode != 0 and header.name not in run.stderr:
                failures.append(f"{name} with {header.name}, another reason:\n{run.stderr}")
    print(f"{probed} includes compiled or refused as the floors say")


# Rule, file, text: the line that must be reported.
VIOLATIONS = [
    ("path-in-include", "lib/recipes/planted_quotes.c", '#include "../core/planted_core.h"'),
    ("path-in-include", "lib/recipes/planted_angle.c", "#include <core/planted_core.h>"),
    ("path-in-include", "experiments/planted_driver.c", '#include "core/planted_core.h"'),
    ("path-in-include", "kernels/planted_kernel.cu", '#include "lib/core/planted_core.h"'),
    ("climbs", "lib/recipes/planted_up.c", "#include <planted_measure.h>"),
    ("climbs", "lib/emulator/planted_sibling.c", '#include "planted_measure.h"'),
    ("climbs", "lib/measure/planted_store.c", "#  include <planted_generated.h>"),
    ("climbs", "kernels/planted_kernel_up.cu", "#include <planted_measure.h>"),
    ("public-header-inside", "lib/measure/planted_public.c", "#include <quantgauge.h>"),
    ("prints", "lib/core/planted_printf.c", 'void f(void) { printf("x"); }'),
    ("prints", "lib/core/planted_stderr.c", 'void f(void) { fprintf(stderr, "x"); }'),
    ("prints", "lib/core/planted_puts.c", 'void f(void) { puts("x"); }'),
    ("ends-the-process", "lib/core/planted_exit.c", "void f(void) { exit (1); }"),
    ("ends-the-process", "lib/core/planted_abort.c", "void f(int x) { if (x) abort(); }"),
    ("log2", "lib/measure/planted_log2.c", "double f(double x) { return log2(x); }"),
    ("log2", "lib/measure/planted_log2f.c", "float f(float x) { return log2f(x); }"),
    ("fast-math", "lib/measure/planted_pragma.c", '#pragma GCC optimize ("fast-math")'),
    ("fast-math", "lib/measure/planted_contract.c", "#pragma STDC FP_CONTRACT ON"),
    ("fast-math", "lib/planted/CMakeLists.txt", "add_compile_options(-ffast-math)"),
    ("hdf5-below-store", "lib/emulator/planted_hdf5.c", "#include <hdf5.h>"),
    ("hdf5-below-store", "lib/runtime/planted_hdf5_quotes.c", '#include "H5public.h"'),
    ("input-or-output", "lib/emulator/planted_fopen.c", 'void *f(void) { return fopen("", ""); }'),
    ("duplicate-name", "tests/planted_core.h", "typedef int planted;"),
]

# What must not be reported.
INNOCENT = {
    "lib/core/planted_core.h": "typedef int planted;\n",
    "lib/measure/planted_measure.h": "#include <planted_core.h>\n",
    "lib/store/planted_generated.h.in": "typedef int planted;\n",
    "lib/store/planted_innocent.c": (
        "#include <hdf5.h>\n#include <sys/stat.h>\n#include <planted_measure.h>\n"
        "// printf(\"x\"); exit(1); log2(x); #include \"../core/planted_core.h\"\n"
        "/* abort();\n   fprintf(stderr, \"x\"); */\n"
        "int f(char *s, int log2_bins) { return snprintf(s, 4, \"printf(x) /* exit(1)\"); }\n"
        "void my_exit(int); char q = '\"'; int exit_code; // '\n"
        "void g(const char *, ...) __attribute__((format(printf, 1, 2)));\n"
    ),
    "experiments/planted_program.c": (
        "#include <planted_generated.h>\n#include <quantgauge.h>\n"
        "int main(void) { printf(\"x\"); return 0; }\n"
    ),
    "tests/planted_test.c": "#include <planted_measure.h>\n",
    "lib/planted_innocent/CMakeLists.txt": "# never -ffast-math\n",
    "lib/planted_innocent/README.md": "",
    "tests/planted_innocent/README.md": "",
}


def lint(tree):
    run = subprocess.run(["bash", str(source / "tests/lint/test_floors.sh"), str(tree)],
                         capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def plant(tree, files):
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def check_lint(scratch):
    tree = scratch / "tree"
    for folder in ("cmake", "lib", "kernels", "experiments", "tests"):
        if (source / folder).is_dir():
            shutil.copytree(source / folder, tree / folder,
                            ignore=shutil.ignore_patterns("__pycache__"))
    _, before = lint(tree)
    plant(tree, INNOCENT)
    _, after = lint(tree)
    new = [line for line in after.splitlines() if line not in before and "planted" in line]
    failures.extend(f"rejected without a reason: {line}" for line in new)

    plant(tree, {name: f"\n{text}\n" for _, name, text in VIOLATIONS})
    code, report = lint(tree)
    if code != 1:
        failures.append(f"exit code {code} for a tree with violations")
    for rule, name, text in VIOLATIONS:
        wanted = f"{name}: {rule}" if rule == "duplicate-name" else f"{name}:2: {rule}: "
        other = "lib/core/planted_core.h: duplicate-name" # either of the two may be named
        if wanted not in report and not (rule == "duplicate-name" and other in report):
            failures.append(f"{rule} does not see {text!r} in {name}")
    print(f"{len(VIOLATIONS)} planted violations looked for")


with tempfile.TemporaryDirectory() as folder:
    check_compiler(read_floors(), pathlib.Path(folder))
    check_lint(pathlib.Path(folder))
print("\n".join(failures))
sys.exit(1 if failures else 0)
