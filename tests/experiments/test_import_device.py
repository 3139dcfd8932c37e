"""run_sweep --import-device: a device check's file as a result file, and every way in which a foreign
file may be wrong: FILE:LINE, exit code 2, and nothing written."""

import os
import pathlib
import random
import subprocess
import sys
import tempfile

import h5py
import numpy

BIN = pathlib.Path(os.environ["QG_BIN_DIR"])
COLUMNS = {
    "bytes": "kernel format layout scale_rule rounding input_type out_type data seed m n k storage "
             "code_differences scale_differences guard_differences",
    "control": "name kernel caught",
    "gemm": "format layout scale_rule format_b layout_b scale_rule_b unit accumulation out_type c "
            "bias seed m n k differences algorithm",
    "probe": "power accumulation unit k i j survivors simulated",
    "time": "kernel format layout scale_rule input_type state m n k launches samples median_s mad_s "
            "min_s max_s bytes flops copy_s",
}
FACTS = {"device": "Test GPU", "architecture": "90", "sms": "132", "l2_bytes": "52428800",
         "memory": "151397597184", "driver": "13000", "runtime": "13010", "cublaslt": "130100",
         "version": "0.1.0", "commit": "abc+dirty", "date": "2026-01-02T03:04:05Z"}
BYTES = ("bytes group_shared metrale_act128 group:128 amax rne bf16 - normal 1 3 0 256 row_major 0 0 "
         "0 PASSED -")
TWIN = BYTES.replace("shared", "hopper")
FAILED = BYTES.replace("normal", "specials").replace("0 0 0 PASSED -", "5 1 0 FAILED codes_differ")
CONTROL = "control truncates group_shared 17 PASSED -"
GEMM = ("gemm e4m3 per_tensor fixed:1 e5m2 per_tensor fixed:1 hopper_wgmma+promote:128 promoted fp32 0 "
        "0 1 16 32 64 0 id=66 PASSED -")
PROBE = "probe 8 fast hopper_wgmma 1024 0 127 896 896 PASSED -"
TIME = ("time group_shared metrale_act128 group:128 amax bf16 hot 3 0 256 20 11 2e-6 1e-8 1.9e-6 3e-6 "
        "2316 0 1e-6 RAN -")
ROWS = [BYTES, TWIN, FAILED, CONTROL, GEMM, PROBE, TIME, TIME.replace("hot", "cold"),
        "time product_fast e4m3 per_tensor fixed:1 fp32 hot 64 64 64 20 11 1e-5 0 1e-5 2e-5 16384 "
        "524288 nan RAN -"]


def check(condition, *words):
    if not condition:
        print("FAILED:", *words)
        sys.exit(1)


def row(text):
    return "\t".join("" if word == "-" else word for word in text.split(" "))


def file_text(rows=ROWS, facts=FACTS, columns=COLUMNS):
    passed = sum(" PASSED" in text for text in rows)
    failed = sum(" FAILED" in text for text in rows)
    facts = {**facts, "result": f"{passed + failed} checks, {failed} failures, 7 seconds"}
    lines = ["# qgdevice 1", *(f"# {key}: {value}" for key, value in facts.items())]
    lines += [f"# columns {kind}: {names} verdict reason" for kind, names in columns.items()]
    return "\n".join(lines + [row(text) for text in rows]) + "\n"


class Folder:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.source, self.out = self.path / "check.txt", self.path / "results.h5"

    def run(self, text, *more):
        data = text if isinstance(text, bytes) else text.encode()
        self.source.write_bytes(data)
        return subprocess.run([str(BIN / "run_sweep"), "--import-device", str(self.source), "--out",
                               str(self.out), *more], capture_output=True, text=True, timeout=60)

    def refuses(self, text, *words, code=2):
        done = self.run(text)
        check(done.returncode == code, done.returncode, words, done.stdout, done.stderr)
        check(done.stderr.count("\n") == 1 and all(w in done.stderr for w in words), words,
              done.stderr)
        check(sorted(p.name for p in self.path.iterdir()) == ["check.txt"], "something was written")

    def texts(self, column):
        with h5py.File(self.out) as file:
            return [text.decode() for text in file["cases/" + column][:]]


def test_rows_become_cases(folder):
    done = folder.run(file_text())
    check(done.returncode == 1, done.stdout, done.stderr) # a row FAILED
    check("9 rows: 5 PASSED, 1 FAILED, 0 SKIPPED, 3 RAN" in done.stdout, done.stdout)
    check(folder.texts("op") == ["error"] * 4 + ["gemm"] * 2 + ["throughput"] * 3)
    check(folder.texts("status") == ["PASSED"] * 2 + ["FAILED"] + ["PASSED"] * 3 + ["RAN"] * 3)
    check(folder.texts("reason")[2] == "codes_differ")
    check(set(folder.texts("backend")) == {"cuda"})
    # m 3 is too few for the twin on 132 SMs: the shared kernel is the one that a sweep would run.
    check(folder.texts("tensor")[:3] == ["", "kernel=group_hopper", ""], folder.texts("tensor"))
    check(folder.texts("tensor")[6:] == ["", "cold", "kernel=product_fast"], folder.texts("tensor"))
    check(folder.texts("impl_used")[0] == "cuda group_shared", folder.texts("impl_used"))
    check(folder.texts("reference")[4] == "hopper_wgmma+promote:128")
    with h5py.File(folder.out) as file:
        check(file.attrs["complete"] == 1)
        counts, timing = file["counts"], file["timing"]
        check(list(counts["code_mismatches"][:5]) == [0, 0, 5, -1, 0])
        check(list(counts["scale_mismatches"][:4]) == [0, 0, 1, -1])
        check(timing["median_s"][6] == 2e-6 and timing["mad_s"][6] == 1e-8)
        check(timing["samples"][6] == 11 and timing["bytes"][6] == 2316)
        check(abs(timing["gb_per_s"][6] - 2316e-9 / 2e-6) < 1e-12)
        check(timing["memcpy_ratio"][6] == 0.5 and numpy.isnan(timing["memcpy_ratio"][8]))
        check(timing["flops"][8] == 524288 and timing["gflop_per_s"][8] > 50)
        run = file["runs"][sorted(file["runs"])[0]].attrs
        for key, value in {"gpu": "Test GPU", "cuda": "13010", "driver": "13000", "sms": "132",
                           "cublaslt": "130100", "commit": "abc+dirty",
                           "start": FACTS["date"]}.items():
            text = run[key].decode() if isinstance(run[key], bytes) else run[key]
            check(text == value, key, text)
        check(len(set(file["cases/case_id"][:])) == len(ROWS), "ids are not unique")


def test_ids_are_those_of_a_sweep(folder):
    """The same case by run_sweep --backends cpu: its id but for the backend's name; so the lines that
    the id is of are taken from there, with the backend replaced."""
    cases = (("error", ["--formats", "metrale_act128", "--m", "3", "--k", "256"], 0),
             ("throughput", ["--formats", "metrale_act128", "--m", "3", "--k", "256"], 6))
    done = folder.run(file_text())
    check(done.returncode == 1, done.stderr)
    with h5py.File(folder.out) as file:
        ours = file["cases/case_id"][:]
    axes = ["op", "format", "layout", "scale_rule", "scale_format", "rounding", "input_type", "data",
            "tensor", "m", "n", "k", "seed", "unit", "out_type"]
    for op, options, at in cases:
        out = folder.path / f"{op}.h5"
        done = subprocess.run([str(BIN / "run_sweep"), *options, "--ops", op, "--data", "normal",
                               "--inputs", "bf16", "--backends", "cpu", "--out", str(out), "-q"],
                              capture_output=True, text=True, timeout=100)
        check(done.returncode == 0, done.stderr)
        with h5py.File(out) as file, h5py.File(folder.out) as mine:
            for axis in axes:
                theirs = file["cases/" + axis][0]
                check(mine["cases/" + axis][at] == theirs, axis, mine["cases/" + axis][at], theirs)
            check(file["cases/case_id"][0] != ours[at], "another backend, the same id")


def test_a_file_that_is_there_stays(folder):
    folder.out.write_text("mine")
    done = folder.run(file_text())
    check(done.returncode == 2 and "is there already" in done.stderr, done.stderr)
    check(folder.out.read_text() == "mine")
    check(folder.run(file_text(), "--overwrite").returncode == 1)
    check(folder.texts("op"), "not overwritten")
    check(folder.run(file_text(), "--formats", "e4m3").returncode == 2)
    check(folder.run(file_text(rows=ROWS[:2], facts={**FACTS, "left": "probe, 1 checks (no)"}),
                     "--overwrite").returncode == 3)
    check(folder.run(file_text(rows=ROWS[:2]), "--overwrite").returncode == 0)
    check(folder.run(file_text(rows=[]), "--overwrite").returncode == 4, "nothing was measured")
    done = subprocess.run([str(BIN / "run_sweep"), "--import-device", str(folder.path / "none"),
                           "--out", str(folder.path / "x.h5")], capture_output=True, text=True)
    check(done.returncode == 5 and "cannot read" in done.stderr, done.stderr)


def test_what_is_malformed(folder):
    lines = len(file_text(rows=[]).splitlines())
    at = f"check.txt:{lines + 1}: "
    good = file_text()
    folder.refuses("", "an empty file")
    folder.refuses("hello\n", "check.txt:1:", "not the file of a device check")
    folder.refuses(good.replace("qgdevice 1", "qgdevice 2"), "check.txt:1:")
    folder.refuses(good[:-1], "ends within a line")
    folder.refuses(good.replace("# sms: 132\n", ""), "does not say its device")
    folder.refuses("\n".join(good.splitlines()[:-2]) + "\n" + "\n".join(good.splitlines()[-1:])
                   .replace("RAN", "PASSED") + "\n", "was it cut?")
    folder.refuses(good.replace("# columns time: kernel", "# columns time: colonel"),
                   "the columns of 'time'")
    folder.refuses(good.encode().replace(b"amax", b"am\x00x", 1), "zero byte")
    folder.refuses(good.encode().replace(b"amax", b"am\xffx", 1), "0xff")
    folder.refuses(good.replace("Test GPU", "G" * 5000), "a line of")
    folder.refuses(good.replace("Test GPU", ""), "does not say its device")
    for sms in ("0", "-132", "132.5", str(2**31)):
        folder.refuses(good.replace("sms: 132", "sms: " + sms), "does not say its device and its SMs")
    folder.refuses(good.replace("# sms: 132\n", "# sms: 132\n# sms: 78\n"), "check.txt:5: 'sms' is said "
                   "twice")
    many = {**FACTS, **{f"fact{i}": "x" for i in range(100000)}}
    folder.refuses(file_text(facts=many), "check.txt:1002: more than 1000 facts")
    for text, *words in ((BYTES.replace("bytes", "bites"), "no kind of row: 'bites'"),
                         (BYTES + " more", "has 19 fields, not 20"),
                         (BYTES.replace(" row_major", ""), "has 19 fields, not 18"),
                         (BYTES.replace("PASSED", "GOOD"), "no verdict: 'GOOD'"),
                         (BYTES.replace(" 256 ", " 2x6 "), "field 13", "'2x6'"),
                         (BYTES.replace(" 256 ", " -256 "), "'-256'"),
                         (BYTES.replace(" 256 ", " 99999999999999999999 "), "is no whole number"),
                         (BYTES.replace("bf16", "bf17"), "'bf17' is no format"),
                         (BYTES.replace(" amax", " emax"), "'emax' is no scale rule"),
                         (GEMM.replace("16 32 64", f"{2**62} 4 64"), "'4' is no size whose product"),
                         (CONTROL.replace("17", "nan"), "'nan'"),
                         (PROBE.replace("896 896", "896 x"), "'x' is no number"),
                         (GEMM.replace("fp32 0", "fp33 0"), "'fp33'"),
                         (TIME.replace("2e-6", "nan"), "'nan' is no time"),
                         (TIME.replace("2e-6", "0"), "'0' is no time above 0"),
                         (TIME.replace("2e-6", "1e999"), "is no time"),
                         (TIME.replace("2e-6", "-2e-6"), "is no time"),
                         (TIME.replace("hot", "tepid"), "'tepid' is no state")):
        folder.refuses(file_text(rows=[text]), at, *words)
    folder.refuses(file_text(rows=[BYTES, TWIN, BYTES]), f"check.txt:{lines + 3}: ",
                   f"the same case as in line {lines + 1}")


def test_fuzz(folder):
    """Cut, changed, doubled: exit 0 to 3 with a whole file, or 2 without any; never a crash."""
    generator = random.Random(5)
    good = file_text().encode()
    for _ in range(150):
        data = bytearray(good)
        for _ in range(generator.randint(1, 4)):
            place = generator.randrange(len(data))
            kind = generator.randrange(4)
            if kind == 0:
                del data[place:place + generator.randint(1, 60)]
            elif kind == 1:
                data[place] = generator.choice(b"\t\n #:0nX\xe9\x01")
            elif kind == 2:
                data[place:place] = data[place:place + generator.randint(1, 200)]
            else:
                data[place:place] = generator.choice(
                    [b"nan", b"1e400", b"9" * 30, b"\t" * 40, b"-", b"x" * 300])
        done = folder.run(bytes(data))
        check(done.returncode in (0, 1, 2, 3), done.returncode, done.stderr, bytes(data))
        check("Sanitizer" not in done.stderr, done.stderr)
        check(folder.out.exists() == (done.returncode != 2), done.returncode, done.stderr)
        if folder.out.exists():
            with h5py.File(folder.out) as file:
                check(file.attrs["complete"] in (0, 1))
            folder.out.unlink()
        check([p.name for p in folder.path.iterdir()] == ["check.txt"], "something is left")


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory() as path:
                test(Folder(path))
            print("passed", name)


main()
