"""run_sweep --show against what h5py reads, in every format; the end table of a run; repro lines."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import h5py
import numpy

RUN_SWEEP = str(pathlib.Path(os.environ["QG_BIN_DIR"]) / "run_sweep")
LAUNCHER_WORDS = ("OMPI_", "PMI_", "PMIX_", "SLURM_", "COLUMNS", "QG_")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_WORDS)}
PLAN = ["--ops", "error", "--formats", "e4m3,mxfp8,nvfp4", "--layouts", "default,per_row",
        "--rules", "default,amax_ue4m3", "--data", "normal,tensors:minilm.h5#*ffn_residual", "--m",
        "4,8", "--k", "64", "--backends", "emulator"]
failures = 0


def check(condition, *words):
    global failures
    if not condition:
        print("FAILED:", *words)
        failures += 1


def run(*arguments, **extra):
    return subprocess.run([RUN_SWEEP, *arguments], capture_output=True, text=True,
                          env={**ENVIRONMENT, **extra}, timeout=300)


def show(*arguments, code=0):
    done = run("--show", "results.h5", *arguments)
    check(done.returncode == code, arguments, done.returncode, done.stderr)
    return done.stdout


def stored(group, name):
    with h5py.File("results.h5") as file:
        return file[f"{group}/{name}"][()]


def texts(name):
    return [t.decode().rstrip("\0") for t in stored("cases", name)]


def the_end_of_a_run():
    done = run(*PLAN)
    check(done.returncode == 0, done.returncode, done.stderr)
    lines = done.stdout.splitlines()
    check(lines[0].split()[:4] == ["format", "layout", "rule", "cases"], lines[0])
    check(all(len(line) <= 80 for line in lines[:lines.index(next(
        line for line in lines if line.startswith("QSNR")))]), "wider than 80 columns")
    check(any("SKIPPED" in line and "group:G" in line for line in lines), "no reason of skips")
    check("wrote results.h5" in lines, lines)
    check(lines[-1].startswith("next: ") and "--show results.h5" in lines[-1], lines[-1])
    narrow = run(*PLAN, "--out", "narrow.h5", COLUMNS="60").stdout.splitlines()
    check(max(len(line) for line in narrow[:10]) <= 60, "wider than COLUMNS")
    check(run(*PLAN, "-q", "--out", "narrow.h5").stdout == "", "-q prints")
    table = {tuple(line.split()[:3]): line.split()[3:] for line in lines[1:]
             if len(line.split()) == 8 and not line.startswith("QSNR")}
    row = [i for i in range(len(texts("format")))
           if (texts("format")[i], texts("layout")[i], texts("scale_rule")[i]) ==
           ("e4m3", "per_row", "amax")]
    cells = table["e4m3", "per_row", "amax"]
    check(cells[0] == str(len(row)), "cases", cells, len(row))
    check(cells[1] == f"{numpy.median(stored('metrics', 'qsnr_db')[row]):.2f}", "QSNR", cells)
    check(cells[2] == f"{100 * numpy.median(stored('metrics', 'rel_frobenius')[row]):.2f}", cells)


def tsv():
    lines = show("--format", "tsv", "--columns", "*").splitlines()
    names = lines[0].split("\t")
    rows = [line.split("\t") for line in lines[1:]]
    check(len(rows) == len(texts("op")), "rows")
    check(all(len(row) == len(names) for row in rows), "columns")
    column = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    check([int(t, 16) for t in column["case_id"]] == list(stored("cases", "case_id")), "case_id")
    for name in ("format", "layout", "status", "reason", "repro", "tensor"):
        check(column[name] == texts(name), name)
    check([int(t) for t in column["m"]] == list(stored("cases", "m")), "m")
    for group, name in (("metrics", "qsnr_db"), ("sums", "xx"), ("timing", "gb_per_s")):
        check(numpy.array_equal(numpy.array(column[name], float), stored(group, name),
                                equal_nan=True), name)
    check([int(t) for t in column["counts/n"]] == list(stored("counts", "n")), "counts/n")


def as_json():
    rows = json.loads(show("--format", "json", "--columns", "*"))
    check(len(rows) == len(texts("op")), "rows of JSON")
    for i, row in enumerate(rows):
        qsnr = stored("metrics", "qsnr_db")[i]
        check((row["qsnr_db"] is None) == bool(numpy.isnan(qsnr)), "null for NaN")
        check(row["qsnr_db"] is None or row["qsnr_db"] == qsnr, "JSON keeps the value")
        check(int(row["case_id"], 16) == stored("cases", "case_id")[i], "case_id in JSON")
        check(row["seed"] == 1, "seed in JSON")
    only = json.loads(show("--format", "json", "--columns", "format,m", "--where", "m=8&format=nv*"))
    check(only and all(row == {"format": "nvfp4", "m": 8} for row in only), only)


def text_and_markdown():
    lines = show("--columns", "format,m,qsnr_db,gb_per_s,tensor").splitlines()
    check(lines[0].split() == ["format", "m", "qsnr_db", "gb_per_s", "tensor"], lines[0])
    check(lines[1].split()[3:] == ["-", "-"], "what does not apply is a dash:", lines[1])
    lines = show("--format", "markdown", "--columns", "format,m").splitlines()
    check(lines[0] == "| format | m |" and lines[1] == "|---|---:|", lines[:2])
    check(len(lines) == 2 + len(texts("op")), "rows of Markdown")
    check("reason" in show().splitlines()[0], "reasons are shown where there are any")
    check("reason" not in show("--where", "status=RAN").splitlines()[0], "and only there")


def default_columns():
    """The same in every format, readable, narrow."""
    text = show().splitlines()
    names = text[0].split()
    check(max(len(line) for line in text) <= 100, "wider than 100:", max(text, key=len))
    check({"format", "layout", "scale_rule", "m", "status", "qsnr_db"} <= set(names), names)
    check("op" not in names and "seed" not in names, "columns that do not differ:", names)
    check(show("--format", "tsv").splitlines()[0].split("\t") == names, "tsv differs")
    check(list(json.loads(show("--format", "json"))[0]) == names, "json differs")
    check(show("--format", "markdown").splitlines()[0].strip("| ").split(" | ") == names,
          "markdown differs")
    every = show("--columns", "*").splitlines()[0].split()
    check("gb_per_s" not in every and "sums/underflowed" in every, "empty columns in text:", every)
    check("gb_per_s" in show("--columns", "*", "--format", "tsv"), "tsv lacks a column")


def selections():
    total = len(texts("op"))
    ran = len(show("--where", "status=RAN", "--columns", "m").splitlines()) - 1
    skipped = len(show("--where", "status=SKIPPED", "--columns", "m").splitlines()) - 1
    both = len(show("--where", "status=RAN", "--where", "status=SKIPPED",
                    "--columns", "m").splitlines()) - 1
    check(ran + skipped == both == total and skipped > 0, ran, skipped, both, total)
    check(show("--where", "qsnr_db=nan", "--columns", "status").split()[1:] ==
          ["SKIPPED"] * skipped, "nan finds what is missing")
    names = show("--columns", "counts/s*,*_db", "--format", "tsv").splitlines()[0].split("\t")
    check(names == ["saturated", "subnormal", "scale_mismatches", "qsnr_db"], names)
    show("--where", "m=77", code=4)
    kept = show("--exclude", "status=RAN", "--columns", "status").split()[1:]
    check(kept == ["SKIPPED"] * skipped, "--exclude", kept[:3])
    kept = show("--where", "m=4", "--exclude", "status=SKIPPED&m=4", "--columns", "status,m")
    check(set(kept.split()[2:]) == {"RAN", "4"}, "--where with --exclude", kept[:200])


def repro_lines():
    """The stored line runs the same case, alone, and gives the same numbers."""
    ids, lines, status = stored("cases", "case_id"), texts("repro"), texts("status")
    digests = stored("cases", "output_digest")
    chosen = [i for i in range(len(ids)) if status[i] == "RAN"][::7]
    for i in chosen:
        shell = f"{shlex.quote(RUN_SWEEP)} {lines[i]} --out one.h5 --overwrite -q"
        done = subprocess.run(["sh", "-c", shell], env=ENVIRONMENT, capture_output=True, text=True)
        check(done.returncode == 0, shell, done.stderr)
        with h5py.File("one.h5") as file:
            check(list(file["cases/case_id"]) == [ids[i]], lines[i])
            check(file["cases/output_digest"][0] == digests[i], "other bytes:", lines[i])
        listed = run("--repro", lines[i], "--list").stdout
        check(f"{ids[i]:016x}" in listed, "--repro:", lines[i])


def incomplete_and_damaged_files():
    data = bytearray(pathlib.Path("results.h5").read_bytes())
    pathlib.Path("cut.h5").write_bytes(data[:len(data) // 2])
    done = run("--show", "cut.h5")
    check(done.returncode == 5 and done.stderr.count("\n") == 1, done.returncode, done.stderr)
    with h5py.File("results.h5", "r+") as file:
        file["cases/m"][0] = 5
    done = run("--show", "results.h5", "--columns", "m")
    check(done.returncode == 0 and "does not match its digest" in done.stderr, done.stderr)


with tempfile.TemporaryDirectory(prefix="show_test.") as folder:
    os.chdir(folder)
    the_end_of_a_run()
    tsv()
    as_json()
    text_and_markdown()
    default_columns()
    selections()
    repro_lines()
    incomplete_and_damaged_files()
    os.chdir("/")
sys.exit(failures != 0)
