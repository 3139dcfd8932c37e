"""device_check on the host: its kernels run over the shim, its products come from a fake cuBLASLt or,
with --simulate, from the emulator. What is tested is the check itself: that what is right passes, that
what is wrong fails, that time and missing parts are told, and that the files are whole.
ctest-timeout: 300"""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["QG_BUILD_DIR"])
PROGRAM = pathlib.Path(os.environ["QG_BIN_DIR"]) / "device_check"
SOURCE = pathlib.Path(os.environ["QG_SOURCE_DIR"])
SHIM = BUILD / "tests/bin/quantgauge_cuda_shim.so"
FAKE = BUILD / "tests/bin/fake_cublaslt.so"
HOPPER = "hopper_wgmma,hopper_wgmma+promote:128"


def check(condition, *words):
    if not condition:
        print("FAILED:", *words)
        sys.exit(1)


def run(*arguments, path=None, **extra):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("QG_CU")}
    environment.update({"QG_CUDA_MODULE": str(SHIM), "QG_CUBLASLT": str(FAKE), **extra})
    if path:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    return subprocess.run([str(PROGRAM), *map(str, arguments)], capture_output=True, text=True,
                          env=environment, timeout=280)


def read(path):
    """The facts and rows of a file, with the columns that it names itself."""
    lines = path.read_text().splitlines()
    check(lines[0] == "# qgdevice 1", path, lines[0])
    facts, columns, rows = {}, {}, []
    for line in lines[1:]:
        if line.startswith("# columns "):
            kind, names = line[len("# columns "):].split(": ")
            columns[kind] = names.split()
        elif line.startswith("# "):
            key, value = line[2:].split(": ", 1)
            facts.setdefault(key, []).append(value)
        else:
            kind, *fields = line.split("\t")
            check(len(fields) == len(columns[kind]), line)
            rows.append({"kind": kind, **dict(zip(columns[kind], fields))})
    return facts, rows


def kinds(rows, kind):
    return [row for row in rows if row["kind"] == kind]


def test_everything_on_tiny_shapes(folder):
    out = folder / "all.txt"
    done = run("--small", "--simulate", HOPPER, "--out", out)
    facts, rows = read(out)
    left = facts.get("left", [])
    check(done.returncode == (3 if left else 0), done.returncode, done.stdout, done.stderr)
    lines = done.stdout.splitlines()
    check(len(lines) < 100, len(lines), "lines of standard output")
    passed = sum(row["verdict"] == "PASSED" for row in rows)
    failed = sum(row["verdict"] == "FAILED" for row in rows)
    check(lines[-1].startswith(f"{passed} checks, {failed} failures, "), lines[-1])
    check(facts["result"] == [lines[-1]], facts["result"])
    check(failed == 0, [row for row in rows if row["verdict"] == "FAILED"][:3])
    for key in ("device", "sms", "l2_bytes", "memory", "driver", "runtime", "cublaslt", "commit",
                "flags", "date"):
        check(len(facts.get(key, [])) == 1, key, facts)
    check([line for line in lines if line.startswith("left: ")] == ["left: " + l for l in left])
    for kind in ("bytes", "control", "gemm", "probe"):
        check(kinds(rows, kind), "no rows of", kind)
    check({r["kernel"] for r in kinds(rows, "bytes")} >= {"group_shared", "group_hopper"})
    check({r["unit"] for r in kinds(rows, "probe")} == set(HOPPER.split(",")))
    names = {r["name"] for r in kinds(rows, "control")}
    check(len(names) == 9, names)
    for name in names - {"none"}:
        for row in kinds(rows, "control"):
            check(row["name"] != name or int(row["caught"]) > 0, row)
    for row in kinds(rows, "time"):
        check(float(row["median_s"]) > 0 and int(row["launches"]) >= 20, row)
        check(row["kernel"].startswith("product") or float(row["copy_s"]) > 0, row)
    check(list(folder.glob("*.tmp")) == [], "temporary files are left")


def test_another_accumulator_is_told(folder):
    """Products in double precision are no Hopper's: the fake's, and other units of the emulator."""
    out = folder / "fake.txt"
    done = run("--small", "--stages", "probe", "--out", out)
    if "cublaslt_missing" not in read(out)[0]:
        check(done.returncode == 1, done.stdout, done.stderr)
        check("exact explains every output" in done.stdout, done.stdout)
    for units, found in ((("hopper_wgmma+split:2", HOPPER.split(",")[1]), "hopper_wgmma+split:2"),
                         (("hopper_wgmma", "hopper_wgmma+promote:64"), "hopper_wgmma+promote:64")):
        done = run("--small", "--stages", "probe,gemm", "--simulate", ",".join(units))
        check(done.returncode == 0, units, done.stdout)
        check(f"{found} explains every output\n" in done.stdout, done.stdout)
    done = run("--small", "--stages", "probe", "--simulate", "blackwell_tcgen05")
    check(done.returncode == 1, done.stdout)
    # Without the probe the expected unit is what products are held against.
    done = run("--small", "--stages", "gemm", "--simulate", "hopper_wgmma,hopper_wgmma+promote:64")
    check(done.returncode == 1 and "outputs differ from" in done.stdout, done.stdout)


def test_time_is_kept(folder):
    out = folder / "late.txt"
    done = run("--small", "--max-seconds", "0.000001", "--out", out)
    facts, rows = read(out)
    check(done.returncode == 3, done.returncode, done.stdout)
    check(rows == [] and len(facts["left"]) == 10, facts)
    check(done.stdout.splitlines()[-1].startswith("0 checks, 0 failures, "), done.stdout)
    check("left: seed, 1 checks (time is up)" in done.stdout, done.stdout)


def test_refusals(folder):
    def refuses(code, word, *arguments, **extra):
        done = run(*arguments, **extra)
        check(done.returncode == code, arguments, done.returncode, done.stderr)
        check(word in done.stderr, arguments, done.stderr)
        check(done.stdout == "" and done.stderr.count("\n") == 1, done.stdout, done.stderr)

    refuses(5, "there is no device to check", QG_CUDA_MODULE=str(folder / "none.so"))
    refuses(2, "--stages: no stage is called 'bites'", "--stages", "bytes,bites")
    refuses(2, "--max-seconds", "--max-seconds", "soon")
    refuses(2, "--max-seconds", "--max-seconds", "-1")
    refuses(2, "--simulate", "--simulate", "abacus")
    refuses(2, "without an option", "file")
    refuses(2, "--stages: the list is empty", "--stages", "")
    # Before the checks, and not after minutes of them.
    refuses(5, "cannot write", "--out", folder / "no/where.txt")
    refuses(5, "no regular file", "--out", folder)
    old = folder / "old.txt"
    old.write_text("old")
    os.chmod(folder, stat.S_IRUSR | stat.S_IXUSR)
    done = run("--small", "--stages", "controls", "--out", old)
    os.chmod(folder, stat.S_IRWXU)
    check(os.geteuid() == 0 or (done.returncode == 5 and old.read_text() == "old"), done.stderr)
    done = run("--help")
    check(done.returncode == 0 and "--max-seconds" in done.stdout, done.stdout)


def test_sanitizer(folder):
    """A stand-in for compute-sanitizer: its exit code is what counts, and its time is limited."""
    tool = folder / "compute-sanitizer"
    for body, code, word in (("exit 0", 0, "memcheck"), ("exit 99", 1, "the tool found errors"),
                             ("exit 1", 1, "checks failed under the tool"),
                             ("exit 77", 3, "it could not run: exit code 77"),
                             ("sleep 100", 3, "time is up"), ("kill -9 $$", 3, "could not run")):
        tool.write_text(f'#!/bin/sh\n[ "$1" = --tool ] || exit 55\n{body}\n')
        tool.chmod(0o755)
        done = run("--stages", "sanitizer", "--sanitizer", tool, "--sanitizer-seconds", "1")
        check(done.returncode == code and word in done.stdout, body, done.returncode, done.stdout)
    done = run("--stages", "sanitizer", "--sanitizer", folder / "missing")
    check(done.returncode == 3, done.stdout)
    done = run("--stages", "sanitizer")
    check(done.returncode == 0 and "not run" in done.stdout, done.stdout)


def test_the_parts_configure_alone(folder):
    """-DQG_PARTS=device: without pkg-config, HDF5, popt, jansson, Check, BLAS, and without xxhash."""
    build = folder / "build"
    done = subprocess.run(
        ["cmake", "-S", str(SOURCE), "-B", str(build), "-DQG_PARTS=device", "-DQG_CUDA=OFF",
         "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON", "-DQG_PKG_CONFIG=QG_PKG_CONFIG-NOTFOUND",
         "-DQG_XXHASH_INCLUDE_DIR=QG_XXHASH_INCLUDE_DIR-NOTFOUND"],
        capture_output=True, text=True, timeout=200)
    check(done.returncode == 0, done.stderr)
    cache = (build / "CMakeCache.txt").read_text()
    for name in ("HDF5", "POPT", "JANSSON", "CHECK", "OPENBLAS", "ZLIB"):
        check(f"{name}_FOUND" not in cache, name, "was looked for")
    bad = subprocess.run(["cmake", "-S", str(SOURCE), "-B", str(build), "-DQG_PARTS=some"],
                         capture_output=True, text=True, timeout=200)
    check(bad.returncode != 0 and "QG_PARTS is 'some'" in bad.stderr, bad.stderr)


def test_the_script_refuses(folder):
    script = SOURCE / "scripts/device_check.sh"
    tools = folder / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "sed", "env", "sort", "paste", "mktemp", "rm", "mkdir", "nproc",
                 "cat", "cmake", "gcc", "g++", "cc", "c++"):
        found = subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True, text=True)
        if found.stdout.strip():
            (tools / name).symlink_to(found.stdout.strip())

    def script_says(code, word, *arguments, **extra):
        done = subprocess.run([str(tools / "bash"), str(script), *arguments], text=True,
                              capture_output=True, env={"PATH": str(tools), **extra}, timeout=100)
        check(done.returncode == code and word in done.stdout + done.stderr, arguments,
              done.returncode, done.stdout, done.stderr)

    script_says(2, "unknown option --what", "--what")
    script_says(2, "--arch: 'seventy' is no architecture", "--arch", "seventy")
    script_says(2, "needs a value", "--out")
    for seconds in ("0", "0.5", "-1", "08x", "9" * 20):
        script_says(2, "is no time in seconds from 1", "--max-seconds", seconds)
    script_says(5, "cannot write", "--out", str(folder / "no/where.txt"))
    script_says(0, "--max-seconds S", "--help")
    if not pathlib.Path("/usr/local/cuda/bin/nvcc").exists():
        script_says(5, "nvcc is neither in PATH")
    for name in ("g++", "c++"):
        (tools / name).unlink(missing_ok=True)
    script_says(5, "needs a C++ compiler")


def main():
    if not SHIM.exists():
        print("skipped: no", SHIM)
        sys.exit(77)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory() as folder:
                test(pathlib.Path(folder))
            print("passed", name)


main()
