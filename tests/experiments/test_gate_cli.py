"""run_gate from the shell: exit codes, messages, formats, baselines, known failures, and files that
are incomplete, damaged, of another schema or no result files.

ctest-timeout: 300"""

import json
import os
import pathlib
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import h5py
import numpy
from sweep_tools import Folder, check

RUN_GATE = pathlib.Path(os.environ["QG_BIN_DIR"]) / "run_gate"
GATES = (pathlib.Path(os.environ["QG_SOURCE_DIR"]) / "reports/gates.tsv").read_text()
HEADER = "id\tkind\twhere\tmetric\tlimit\treason\texpires\n"
PLAN = ["--formats", "mxfp8", "--rules", "rceil", "--ops", "error", "--data", "normal", "--m", "4",
        "--k", "256", "--seeds", "1:5:1", "--threads", "1", "--backends", "emulator,cpu"]


def gate(*words, code=0, data=None, **extra):
    """The output of run_gate, and its messages."""
    environment = {**os.environ, **extra}
    done = subprocess.run([str(RUN_GATE), *map(str, words)], capture_output=True, text=True,
                          env=environment)
    check(done.returncode == code, words, "gave", done.returncode, "not", code, done.stdout[-2000:],
          done.stderr)
    return done.stdout, done.stderr


def says(text, *words):
    for word in words:
        check(word in text, "no", repr(word), "in", text)


def edited(folder, name, change):
    path = folder.path / name
    shutil.copy(folder.file, path)
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def usage(folder):
    for words, word in ((["--nonsense"], "--nonsense"), (["--format", "pdf"], "none of text"),
                        (["--today", "2024-02-30"], "--today"), (["--explain", "xyz"], "--explain"),
                        (["-v", "-q"], "exclude"), (["--threads", "0"], "--threads"),
                        (["--isa", "mmx"], "mmx")):
        says(gate(*words, folder.file, code=2)[1], "run_gate: ", word)
    says(gate(code=2)[1], "no result file")
    says(gate("--help")[0], "backward_bound", "Exit codes")
    says(gate("--version")[0], "run_gate (quantgauge)")
    gate("--usage")


def malformed_gates(folder):
    path = folder.path / "gates.tsv"
    good = "a\tbound\t*\tqsnr_db\t>= 10\tbecause\n"
    for text, line, word in (
            ("", "", "no gate"), ("id\tkind\n", ":1:", "columns"), (HEADER, "", "no gate"),
            (HEADER + good.replace("bound", "bund"), ":2:", "bund"),
            (HEADER + good.replace("because", ""), ":2:", "reason"),
            (HEADER + good + good, ":3:", "second gate"),
            (HEADER + good.replace("qsnr_db", "qsnr"), ":2:", "unknown name"),
            (HEADER + good.replace(">= 10", ">= (10"), ":2:", "limit"),
            (HEADER + good.replace(">= 10", "10"), ":2:", "begins with none"),
            (HEADER + good.replace("*", "formt=a"), ":2:", "formt"),
            (HEADER + good.replace("bound", "known"), ":2:", "expires"),
            (HEADER + "a\tknown\t*\t*\t\tbecause\t2024-1-1\n", ":2:", "YYYY-MM-DD"),
            (HEADER + "a\tknown\t*\t*\t\tbecause\t2024-02-30\n", ":2:", "YYYY-MM-DD"),
            (HEADER + good + "b\tknown\t*\tc*\t\tbecause\t2024-01-01\n", ":3:", "matches c*"),
            (HEADER + "a\tdrift\t*\tclipped\t<= 0\tbecause\n", ":2:", "baselines hold"),
            (HEADER + "a\tbits\t*\toutput_digest\t= 0\tbecause\n", ":2:", "equal backends"),
            (HEADER + "a\tconsistency\t*\tqsnr_db\t= 0\tbecause\n", ":2:", "equal sums")):
        path.write_text(text)
        says(gate("--gates", path, folder.file, code=2)[1], str(path) + line, word)
    says(gate("--gates", folder.path / "none.tsv", folder.file, code=5)[1], "none.tsv")


def foreign_files(folder):
    path = folder.path / "foreign.h5"
    path.write_bytes(b"this is no HDF5 file")
    says(gate(path, code=5)[1], "foreign.h5")
    path.write_bytes(folder.file.read_bytes()[:20000])
    says(gate(path, code=5)[1], "foreign.h5")
    says(gate(folder.path / "none.h5", code=5)[1], "none.h5")
    path = edited(folder, "schema.h5", lambda f: f.attrs.__setitem__("schema_version",
                                                                    numpy.int64(2)))
    says(gate(path, code=5)[1], "schema")
    path = edited(folder, "convention.h5", lambda f: f.attrs.__setitem__("Conventions", "CF-1.8"))
    says(gate(path, code=5)[1], "convention.h5")


def changed_files(folder):
    """A file that was changed is gated, and fails consistency."""
    def double(file):
        file["metrics/rel_frobenius"][3] *= 2
    out, _ = gate(edited(folder, "double.h5", double), code=1)
    says(out, "file-is-whole", "content_digest", "rel_frobenius is stored as", "run_sweep --")
    def spoil(file):
        file["metrics/qsnr_db"][0] = numpy.nan
    says(gate(edited(folder, "nan.h5", spoil), code=1)[0], "qsnr_db is stored as nan")
    def shrink(file):
        file["metrics/shrinkage"][0] += 1e-12
    says(gate(edited(folder, "shrink.h5", shrink), code=1)[0], "shrinkage is stored as")
    def lose_sum(file):
        file["sums/abs_e"][0] = file["metrics/mean_abs"][0] = numpy.nan
    says(gate(edited(folder, "sum.h5", lose_sum), code=1)[0], "abs_e is NaN")
    def miscount(file):
        file["sums/exact"][2] = 5000
    says(gate(edited(folder, "count.h5", miscount), code=1)[0], "a count is stored as")
    def other_bytes(file):
        file["cases/output_digest"][1] = 5
    path = edited(folder, "bytes.h5", other_bytes)
    says(gate(path, code=1)[0], "backends-agree", "output_digest 0000000000000005")
    # Two outcomes of a case: which is the baseline is nobody's guess.
    gates, base = folder.path / "gates.tsv", folder.path / "two.tsv"
    gates.write_text(HEADER + "a\tbound\t*\tqsnr_db\t>= 10\tbecause\n")
    says(gate("--gates", gates, "--update-baseline", "--baseline", base, folder.file, path,
              code=2)[1], "files that differ")
    check(not base.exists(), "a baseline was written")


def incomplete_files(folder):
    """Parts of a sweep: what they lack is named, from the plan that they hold."""
    parts = []
    for shard in ("1/2", "2/2"):
        other = Folder(PLAN + ["--shard", shard])
        check(other.run("-q").returncode in (0, 3), "shard", shard)
        parts.append((other, sorted(other.parts.glob("*.h5"))[0]))
    with h5py.File(parts[0][1]) as file:
        there = len(file["cases/case_id"])
    check(0 < there < 10, "the shard has", there, "of 10 cases")
    out, _ = gate(parts[0][1], code=3)
    says(out, "MISSING every-case-has-a-result", "has no result", "run_sweep --")
    check(out.count("has no result") == 10 - there, out)
    says(out.splitlines()[-1], "MISSING: ", f"{10 - there} MISSING")
    check(gate(parts[0][1], parts[0][1], code=3)[0].count("has no result") == 10 - there,
          "what two files of a plan lack counts twice")
    gate("--allow-missing", parts[0][1])
    out, _ = gate("--format", "junit", parts[0][1], code=3)
    check(sum(1 for _ in ElementTree.fromstring(out).iter("failure")) == 10 - there, out)
    gate(parts[0][1], parts[1][1])
    gate(parts[0][1], folder.file)
    for other, _ in parts:
        shutil.rmtree(other.path)


def timed_out_cases(folder):
    """A case that overstayed is MISSING, a skipped one is not."""
    def change(status):
        def edit(file):
            width = file["cases/status"].dtype
            texts = file["cases/status"][:].astype("S16")
            texts[0] = status
            attributes = dict(file["cases/status"].attrs)
            del file["cases/status"]
            file["cases"].create_dataset("status", data=texts).attrs.update(attributes)
            check(width.kind in "SO", width)
        return edit
    gates = folder.path / "gates.tsv"
    gates.write_text("".join(line + "\n" for line in GATES.splitlines()
                             if not line.startswith("file-is-whole")))
    says(gate("--gates", gates, edited(folder, "late.h5", change("TIMEOUT")), code=3)[0],
         "MISSING", "TIMEOUT")
    says(gate("--gates", gates, edited(folder, "away.h5", change("UNAVAILABLE")), code=3)[0],
         "MISSING", "UNAVAILABLE")
    gate("--gates", gates, edited(folder, "skip.h5", change("SKIPPED")))
    out, _ = gate("--gates", gates, "--format", "json", edited(folder, "doubt.h5",
                                                               change("MISTRUSTED")))
    doubted = {r["gate"] for r in json.loads(out)["results"] if r["verdict"] == "MISTRUSTED"}
    check({"qsnr-theory", "qsnr-least", "error-within-step"} <= doubted, doubted)
    base = folder.path / "doubt.tsv"
    gate("--update-baseline", "--baseline", base, folder.file)
    out, _ = gate("--gates", gates, "--baseline", base, "--format", "json",
                  folder.path / "doubt.h5")
    check("qsnr-drift" in {r["gate"] for r in json.loads(out)["results"]
                           if r["verdict"] == "MISTRUSTED"}, "a drift of what is not trusted")
    check("backends-agree" not in doubted and "metrics-follow-from-sums" not in doubted, doubted)
    says(gate("--gates", gates, edited(folder, "crash.h5", change("CRASHED")), code=1)[0],
         "FAIL no-failures")


def baselines(folder):
    path = folder.path / "base.tsv"
    says(gate("--update-baseline", folder.file, code=2, QG_DATA_DIR=str(folder.data))[1],
         "--baseline PATH")
    out, _ = gate("--update-baseline", "--baseline", path, folder.file)
    says(out, "2 rows added", "wrote")
    says(gate("--baseline", path, folder.file)[0], "drift", "bytes-as-before")
    check(" NEW" not in gate("--baseline", path, folder.file)[0], "NEW with a whole baseline")

    # Another byte: the bits fail. Another mean: drift.
    text = path.read_text()
    row = text.splitlines()[-1].split("\t")
    digests = row[22].split(",")
    path.write_text(text.replace(digests[0], "0" * 15 + "1"))
    says(gate("--baseline", path, folder.file, code=1)[0], "FAIL bytes-as-before",
         "in the baseline 0000000000000001")
    path.write_text(text.replace(row[25], str(float(row[25]) + 5)))
    says(gate("--baseline", path, folder.file, code=1)[0], "FAIL qsnr-drift")
    out, _ = gate("--update-baseline", "--baseline", path, folder.file)
    says(out, "2 changed", "qsnr_db", "->")
    check(path.read_text() == text, "not written as before")
    gate("--update-baseline", "--baseline", path, folder.file, folder.file)
    check(path.read_text() == text, "a case of two files counts twice")

    # Other definitions: nothing to compare, and no failure.
    path.write_text(text.replace(row[24], "0" * 16))
    says(gate("--baseline", path, folder.file)[0], "INCOMPARABLE")

    # A case of an explicit baseline that no file has.
    case = row[21].split(",")[0]
    path.write_text(text.replace(case, "f" * 16))
    says(gate("--baseline", path, folder.file, code=3)[0], "of the baseline", "NEW")
    gate("--baseline", path, "--allow-missing", folder.file)
    # Chosen, not named: cases outside of the plan do not matter.
    chosen = folder.data / "reports/baselines"
    chosen.mkdir(parents=True, exist_ok=True)
    (chosen / "one.tsv").write_text(path.read_text())
    (chosen.parent / "gates.tsv").write_text(GATES)
    says(gate(folder.file, QG_DATA_DIR=str(folder.data))[1], "one.tsv")

    # Malformed ones name file and line.
    for wrong, word in ((text.replace("\tqsnr_db\t", "\tqsnr\t"), ":4: "),
                        (text.replace(case, "xyz"), "16 hexadecimal"),
                        (text.replace("1,2,3,4,5", "1,2,3"), "differ in number"),
                        (text.replace("1,2,3,4,5", "1,two"), "not a seed"),
                        (text.replace("_spread\n", "_spread\tmore\n"), ":4: "),
                        (text.replace(row[25], "nan"), "not a number"),
                        (text.replace(row[26], ""), "needs a spread"),
                        (text.replace(row[26], "-1"), "no spread"),
                        (text.replace(row[26], "inf"), "no spread"),
                        (text + "\t".join(row) + "\n", "is there twice"),
                        (text[:text.index("_spread\n") + 8], "no row"),
                        (text.rsplit("\t", 1)[0] + "\n", "number of fields"), ("", "no header")):
        path.write_text(wrong)
        says(gate("--baseline", path, folder.file, code=2)[1], "base.tsv", word)
    says(gate("--baseline", folder.path / "none.tsv", folder.file, code=5)[1], "none.tsv")
    says(gate("--update-baseline", "--baseline", folder.path / "no/such.tsv", folder.file,
              code=5)[1], "such.tsv")

    # What does not pass does not become right.
    def spoil(file):
        file["metrics/qsnr_db"][0] = 3
    path.write_text(text)
    out, messages = gate("--update-baseline", "--baseline", path, edited(folder, "bad.h5", spoil),
                         code=1)
    says(messages, "stays as it is")
    check(path.read_text() == text, "the baseline was replaced")


def foreign_names(folder):
    """A tensor's name with tabs and line ends: the baseline that is written can be read."""
    def rename(file):
        texts = file["cases/tensor"]
        attributes, count = dict(texts.attrs), len(texts)
        del file["cases/tensor"]
        file["cases"].create_dataset("tensor", data=numpy.full(count, b"a\tb\nc")).attrs.update(
            attributes)
    gates, path = folder.path / "gates.tsv", folder.path / "foreign.tsv"
    gates.write_text("".join(line + "\n" for line in GATES.splitlines()
                             if not line.startswith("file-is-whole")))
    results = edited(folder, "names.h5", rename)
    gate("--gates", gates, "--update-baseline", "--baseline", path, results)
    says(path.read_text(), "\ta?b?c\t")
    check(" NEW" not in gate("--gates", gates, "--baseline", path, results)[0], "not found again")


def few_seeds(folder):
    path = folder.path / "few.tsv"
    with Folder(PLAN[:-6] + ["--seeds", "1,2", "--threads", "1", "--backends", "emulator"]) as other:
        check(other.run("-q").returncode == 0, "sweep")
        out, _ = gate("--update-baseline", "--baseline", path, other.file)
        says(out, "fewer than 5 seeds")
        check(path.read_text().splitlines()[-1].endswith("\t" * 10), "metrics of two seeds")
        says(gate("--baseline", path, other.file)[0], "bytes-as-before")
    del folder


def native_products(folder):
    """They are held to their bound, and never become a baseline."""
    path = folder.path / "native.tsv"
    with Folder(["--formats", "e4m3", "--layouts", "per_tensor", "--ops", "gemm", "--units",
                 "native,exact", "--data", "normal", "--m", "4", "--n", "4", "--k", "64", "--seeds",
                 "1", "--backends", "emulator,cpu"]) as other:
        check(other.run("-q").returncode == 0, "sweep")
        gate("--update-baseline", "--baseline", path, other.file)
        check(" native" not in path.read_text() and "\tnative" not in path.read_text(), "native")
        out, _ = gate("--baseline", path, "--format", "json", other.file)
        native = [r for r in json.loads(out)["results"] if " native " in r.get("case", "")]
        check("backward-error" in {r["gate"] for r in native}, native)
        check("bytes-as-before" not in {r["gate"] for r in native}, native)
        check({r["verdict"] for r in native} == {"PASS"}, native)


def known_failures(folder):
    path = folder.path / "gates.tsv"
    bound = "strict\tbound\t*\tqsnr_db\t>= 90\ttoo much\n"
    known = "why\tknown\t{}\tstr*\t\ta ticket\t2030-06-30\n"
    path.write_text(HEADER + bound)
    gate("--gates", path, folder.file, code=1)
    path.write_text(HEADER + bound + known.format("*"))
    says(gate("--gates", path, "--today", "2030-06-30", folder.file)[0], "XFAIL")
    gate("--gates", path, "--today", "2030-07-01", folder.file, code=1)
    path.write_text(HEADER + bound + known.format("backend=cpu"))
    gate("--gates", path, "--today", "2030-01-01", folder.file, code=1)
    # Some of the cases still fail: the row stays.
    path.write_text(HEADER + bound.replace("90", "31.5") + known.format("*"))
    out, _ = gate("--gates", path, "--today", "2030-01-01", folder.file)
    check("XFAIL" in out and "XPASS" not in out and " PASS" in out, out)
    path.write_text(HEADER + bound.replace("90", "9") + known.format("*"))
    says(gate("--gates", path, "--today", "2030-01-01", folder.file, code=1)[0], "XPASS",
         "take the row out")
    gate("--gates", path, "--today", "2030-07-01", folder.file)
    path.write_text(HEADER + bound.replace("*", "op=gemm"))
    says(gate("--gates", path, folder.file, code=4)[1], "no gate applied")


def formats(folder):
    path = folder.path / "gates.tsv"
    path.write_text(HEADER + "strict\tbound\tbackend=cpu\tqsnr_db\t>= 90\ttoo <much> & \"more\"\n"
                    "easy\tbound\t*\tqsnr_db\t31 +- 10\tplain\n")
    out, _ = gate("--gates", path, "--format", "junit", folder.file, code=1)
    suites = {s.get("name"): s for s in ElementTree.fromstring(out).iter("testsuite")}
    check(suites["strict"].get("failures") == "5" and suites["easy"].get("failures") == "0", out)
    check(len(suites["easy"].findall("testcase")) == 1, "passing rows are not summed up")
    failure = suites["strict"].find("testcase/failure")
    says(failure.get("message"), "FAIL", "qsnr_db", ">= 90")
    says(failure.text, "too <much>", "run_sweep ")
    out, _ = gate("--gates", path, "--format", "json", folder.file, code=1)
    found = json.loads(out)
    check(found["verdict"] == "FAIL" and len(found["results"]) == 15, out)
    out, _ = gate("--gates", path, "--format", "markdown", folder.file, code=1)
    says(out, "| strict", "**FAIL**", "`run_sweep ")
    case = found["results"][0]["case_id"]
    out, _ = gate("--gates", path, "--explain", case, folder.file, code=1)
    says(out, case, "strict", "value", "qsnr_db =", "why:")
    says(gate("--explain", "0" * 16, folder.file, code=4)[1], "no case")
    check(gate("-q", folder.file)[0] == "", "-q says something")


with Folder(PLAN) as scratch:
    scratch.data = scratch.path / "data"
    (scratch.data / "reports").mkdir(parents=True)
    (scratch.data / "reports/gates.tsv").write_text(GATES)
    os.environ["QG_DATA_DIR"] = str(scratch.data)
    done = scratch.run("-q")
    check(done.returncode == 0, done.stderr)
    says(gate(scratch.file)[1], "none has any of these cases")
    for test in (usage, malformed_gates, foreign_files, changed_files, incomplete_files,
                 timed_out_cases, foreign_names, few_seeds, native_products, known_failures,
                 formats, baselines):
        test(scratch)
        print(test.__name__)
