"""make_figures from a small sweep: equal bytes, exit codes, errors, texts of foreign origin, --paper."""

import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import h5py
import numpy

from sweep_tools import RUN_SWEEP, check, environment

MAKE_FIGURES = RUN_SWEEP.parent / "make_figures"
SWEEPS = {
    "errors.h5": ["--ops", "error", "--formats", "e4m3,mxfp8", "--layouts", "default", "--rules",
                  "default", "--data", "normal", "--m", "1,4,16", "--k", "32,64,128", "--seeds",
                  "1:3:1", "--backends", "emulator,cpu"],
    "times.h5": ["--ops", "throughput", "--formats", "mxfp8", "--data", "normal", "--m", "4", "--k",
                 "64,256", "--backends", "cpu"],
}
DRAWN = ["F01_representable_values", "F02_rounding_error", "F12_qsnr_sizes",
         "F13_error_distribution", "F15_agreement", "F17_throughput"]
MINE = "F1,F2,F12,F13,F15,F17"


def run(*arguments, code=0, says=(), folder=None, preexec=None, program=MAKE_FIGURES, **extra):
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True,
                          env=environment(**extra), cwd=folder, timeout=250, preexec_fn=preexec)
    check(done.returncode == code, arguments, "exit", done.returncode, "not", code, done.stdout,
          done.stderr)
    for word in says:
        check(word in done.stderr, arguments, "does not say", repr(word), ":", done.stderr)
    check(code == 0 or done.stderr.count("\n") >= 1, arguments, "fails without a word")
    return done


def contents(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def measure(base):
    for name, words in SWEEPS.items():
        run(*words, "--out", base / name, "-q", program=RUN_SWEEP)
    return [base / name for name in SWEEPS]


def draws_equal_bytes(base, files):
    done = run("--figure", MINE, "--out", base / "one", *files)
    check("6 figures drawn, 0 lack data" in done.stdout, done.stdout)
    run("--figure", MINE, "--out", base / "two", *files, "-q")
    one, two = contents(base / "one"), contents(base / "two")
    check(sorted(one) == sorted(two), "not the same files")
    wanted = [f"{stem}.{ending}" for stem in DRAWN for ending in ("gp", "pdf", "png", "svg", "tsv")]
    check(sorted(one) == sorted(wanted + ["index.html", "report.md"]), sorted(one))
    for name in one:
        check(one[name] == two[name], name, "differs between two runs")
    check(b"(D:0000" in one["F12_qsnr_sizes.pdf"] or b"/CreationDate" not in
          one["F12_qsnr_sizes.pdf"], "the PDF holds a date")
    png = one["F12_qsnr_sizes.png"]
    check(int.from_bytes(png[16:20], "big") == 2100, "not 300 dpi of 7 inches")


def scripts_stand_alone(base):
    alone = base / "alone"
    alone.mkdir()
    for stem in DRAWN:
        for ending in ("gp", "tsv"):
            shutil.copy(base / "one" / f"{stem}.{ending}", alone)
        subprocess.run(["gnuplot", f"{stem}.gp"], cwd=alone, check=True, stderr=subprocess.DEVNULL)
        for ending in ("svg", "png"):
            name = f"{stem}.{ending}"
            check((alone / name).read_bytes() == (base / "one" / name).read_bytes(), name,
                  "is drawn otherwise by its script alone")


def data_say_what_was_measured(base):
    """The TSV of F15 and F13 against the result file itself."""
    with h5py.File(base / "errors.h5") as file:
        n = file["counts/n"][:].sum() / 2
        digest = file.attrs["content_digest"]
    text = (base / "one/F15_agreement.tsv").read_text()
    digest = digest if isinstance(digest, str) else f"{int(digest):016x}" \
        if not isinstance(digest, bytes) else digest.decode()
    check(f"errors.h5, content {digest}" in text, "the source is not named:", text[:400])
    lines = [l.split("\t") for l in text.splitlines() if "\tmeasured\t" in l]
    exact = [l for l in lines if l[1] == "elements"]
    check(len(exact) == 2 and all(float(l[3]) == 0 for l in exact), "backends agree:", exact)
    least = [l for l in lines if l[1] == "1 of n"]
    check(abs(sum(1 / float(l[3]) for l in least) / n - 1) < 1e-6, "n is", n, least)
    shares = [float(l.split("\t")[4]) for l in
              (base / "one/F13_error_distribution.tsv").read_text().splitlines()
              if "\tE4M3\t" in l]
    check(shares == sorted(shares) and 0 < shares[-1] <= 1, "no distribution:", shares)


def reports_are_whole(base):
    page = (base / "one/index.html").read_text()
    check(page.count("data:image/svg+xml;base64,") == 6 and page.count("<img") == 6, "pictures")
    check(not re.search(r"""(src|href)=["'](?!data:|#)""", page), "the page needs another file")
    check('name="viewport"' in page and "seeds 1 to 3" in page, "captions")
    text = (base / "one/report.md").read_text()
    for stem in DRAWN:
        check(f"({stem}.svg)" in text, stem, "is not in report.md")
    check("| compiler |" in text and "Not drawn" not in text, "chapters of report.md")


def codes_are_right(base, files):
    out = ["--out", base / "codes"]
    done = run("--figure", "F1,F12,F17", *out)
    check("1 figures drawn, 2 lack data" in done.stdout, done.stdout)
    page = (base / "codes/report.md").read_text()
    check("## Not drawn" in page and "F12.plan" in page, page)
    run("--figure", "F1,F12", "--strict", *out, code=3, says=["--strict: 1 of 2"])
    run("--figure", "F12,throughput", *out, code=4, says=["no figure"])
    run("--figure", "F12", "--term", "png", *out, files[0])
    run("--figure", "F1*", "--strict", *out, files[0], code=3)
    for words, said in (
            (["--figure", "F77"], "unknown figure 'F77'"),
            (["--figure", "agrement"], "the nearest is agreement"),
            (["--figure", "x*"], "matches no figure"),
            (["--term", "svg,gif"], "'gif' is none of svg, png, pdf"),
            (["--threads", "none"], "--threads: 'none'"),
            (["--isa", "sse9"], "sse9"),
            (["-v", "-q"], "exclude each other"),
            (["--list", "--paper"], "exclude each other"),
            (["--nonsense"], "--nonsense")):
        run(*words, "--out", base / "never", code=2, says=[said])
    check(not (base / "never").exists(), "a usage error made a folder")
    lines = run("--list", files[0]).stdout
    check("F17" in lines and "lacks data" in lines.split("F17")[1], lines)
    check("lacks data" not in lines.split("F12")[1].split("F13")[0], lines)


def commands_measure_what_lacks(base):
    lines = run("--list", "--figure", "F13").stdout
    command = [l.strip() for l in lines.splitlines() if "--plan" in l]
    check(len(command) == 1, lines)
    work = base / "work"
    work.mkdir()
    subprocess.run(command[0] + " --where 'format=mxfp4' -q", shell=True, check=True, cwd=work,
                   env=environment())
    run("--figure", "F13", "--strict", "--out", "o", shlex.split(command[0])[-1], folder=work)


def files_are_foreign(base, files):
    out = ["--out", base / "foreign"]
    text, cut = base / "text.h5", base / "cut.h5"
    text.write_text("no result file")
    data = files[0].read_bytes()
    cut.write_bytes(data[:len(data) // 2])
    with h5py.File(base / "other.h5", "w") as file:
        file["x"] = [1, 2]
    for path in (text, cut, base / "other.h5", base / "absent.h5"):
        run(path, *out, code=5, says=[path.name])
    check(contents(base / "foreign") == {}, "an unreadable file left figures")
    changed = base / "changed.h5"
    shutil.copy(files[0], changed)
    with h5py.File(changed, "r+") as file:
        file["metrics/qsnr_db"][0] = 1.0
    run("--figure", "F12", changed, *out, says=["does not match"])
    (base / "a_file").write_text("")
    run("--out", base / "a_file", code=5, says=["a_file", "is no folder"])
    run("--out", base / "no/such", code=5, says=["no/such"])
    if os.geteuid() != 0:
        locked = base / "locked"
        locked.mkdir(mode=0o500)
        run("--out", locked, code=5, says=["locked"])


def fake_gnuplot(base, name, text):
    folder = base / name
    folder.mkdir()
    program = folder / "gnuplot"
    program.write_text("#!/bin/sh\n" + text)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def gnuplot_fails(base):
    words = ["--figure", "F1", "--term", "svg"]
    picture = base / "broken" / "F01_representable_values.svg"
    run(*words, "--out", base / "broken", code=5, PATH="/nonexistent",
        says=["gnuplot was not found", "gnuplot-nox", "F01_representable_values.gp"])
    path = fake_gnuplot(base, "says",
                        "echo >&2; echo 'plot nonsense' >&2; echo '\"F.gp\" line 7: a reason' >&2\n"
                        "exit 1\n")
    run(*words, "--out", base / "broken", code=5, PATH=path + ":" + os.environ["PATH"],
        says=['"F.gp" line 7: a reason'])
    path = fake_gnuplot(base, "cuts", f"printf '<svg><g>' > '{picture}.part'\n")
    run(*words, "--out", base / "broken", code=5, PATH=path + ":" + os.environ["PATH"],
        says=["unfinished"])
    left = [p.name for p in (base / "broken").iterdir()]
    check(not [n for n in left if n.endswith((".part", ".svg"))], "left behind:", left)
    report = (base / "broken/report.md").read_text()
    check("failed" in report, report)


def disks_are_full(base):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    run("--figure", "F1", "--out", base / "full", code=5, preexec=limit,
        says=["F01_representable_values.tsv", "cannot be written"])
    left = sorted(p.name for p in (base / "full").iterdir())
    check(left == ["index.html", "report.md"], "left behind:", left)  # small, whole, and say so
    check("failed" in (base / "full/report.md").read_text(), "the report hides it")


def texts_are_texts(base):
    """Names in a result file and of it are shown, never obeyed."""
    evil = "a'b\"<script>`touch pwned`$(touch pwned)|*_%s"
    path = base / "r\n'\"<b>&.h5"
    shutil.copy(base / "times.h5", path)
    with h5py.File(path, "r+") as file:
        attributes, n = dict(file["cases/data"].attrs), len(file["cases/data"])
        del file["cases/data"]
        kind = h5py.string_dtype("utf-8", len(evil))
        column = file.create_dataset("cases/data", data=numpy.array([evil.encode()] * n, kind))
        column.attrs.update(attributes)
    run(path, "--figure", "F17", "--out", base / "evil", folder=base, says=["does not match"])
    check(not list(base.rglob("pwned")), "a name was run")
    page = (base / "evil/index.html").read_text()
    check("<script>" not in page and "<b>" not in page, "markup of a name is in the page")
    check("r '&quot;&lt;b&gt;&amp;.h5" in page, "the file is not named")
    check("a'b&quot;&lt;script&gt;`touch pwned`" in page, "the data are not named")
    text = (base / "evil/report.md").read_text()
    check("&lt;script>\\`touch pwned\\`" in text and "<script" not in text, "report.md", text)
    data = (base / "evil/F17_throughput.tsv").read_text()
    check(all(l[:1] in "#\t" for l in data.splitlines() if l), "a name broke a line of the data")


def papers_are_measured(base):
    data = base / "data"
    plans = data / "experiments/plans"
    plans.mkdir(parents=True)
    for figure, formats in (("F12", "mxfp8"), ("F13", "mxfp4")):
        (plans / f"{figure}.plan").write_text(
            f"[normal]\nops error\nformats {formats}\nrules rceil\nbackends cpu\ndata normal\n"
            "m 1,4,16\nk 32,64,128\n")
    words = ["--paper", "--figure", "F1,F12,F13", "--out", base / "paper", "--threads", "1"]
    run(*words, "--strict", QG_DATA_DIR=str(data))
    plan = (base / "paper/paper.plan").read_text()
    check(plan.count("[F1") == 2 and "[F13, normal]" in plan, plan)
    with h5py.File(base / "paper/paper.h5") as file:
        check(len(file["cases/op"]) == 18, "not the union of the plans")
    before = contents(base / "paper")
    run(*words, "-q", QG_DATA_DIR=str(data))
    after = contents(base / "paper")
    check({k: v for k, v in before.items() if k != "paper.h5"} ==
          {k: v for k, v in after.items() if k != "paper.h5"}, "a second run differs")
    (plans / "F13.plan").write_text("[normal]\nops error\nformats nonsense\n")
    run(*words, code=2, says=["nonsense"], QG_DATA_DIR=str(data))
    (plans / "F13.plan").unlink()
    run(*words, code=5, says=["F13.plan", "F13"], QG_DATA_DIR=str(data))


def plans_fit_their_figures(base):
    """Every plan that a figure names is there and plans something."""
    lines = run("--list").stdout
    commands = [shlex.split(l) for l in lines.splitlines() if "--plan" in l]
    check(len(commands) >= 4, lines)
    for command in commands:
        plan = command[command.index("--plan") + 1]
        done = run("--plan", plan, "--list", program=RUN_SWEEP)
        check(int(re.search(r"# (\d+) cases", done.stdout).group(1)) > 0, plan)


def main():
    if not shutil.which("gnuplot"):
        print("gnuplot is not there")
        sys.exit(77)
    base = pathlib.Path(tempfile.mkdtemp(prefix="make_figures."))
    try:
        files = measure(base)
        draws_equal_bytes(base, files)
        scripts_stand_alone(base)
        data_say_what_was_measured(base)
        reports_are_whole(base)
        codes_are_right(base, files)
        commands_measure_what_lacks(base)
        files_are_foreign(base, files)
        gnuplot_fails(base)
        disks_are_full(base)
        texts_are_texts(base)
        papers_are_measured(base)
        plans_fit_their_figures(base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


main()
