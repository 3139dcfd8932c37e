"""The instruction set: a sweep's content does not depend on it, /runs says which it was, and what
this processor lacks is refused. Recorded vectors as cases of a sweep."""

import os
import pathlib
import shutil

import h5py
from sweep_tools import Folder, check

ISAS = ("scalar", "avx2", "avx512")
PLAN = ["--formats", "e4m3,e5m2,fp16,mxfp8,nvfp4", "--ops", "error,gemm,vectors",
        "--units", "hopper_wgmma,blackwell_mx,blackwell_mxf4,ampere_mma,exact,fp32_fma",
        "--layouts", "default", "--data", "outliers:100", "--m", "17", "--n", "9",
        "--k", "120,1024", "--out-types", "fp32,bf16", "--backends", "emulator"]


def here():
    """The instruction sets of this processor, by its own words."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = next((set(line.split()) for line in file if line.startswith("flags")), set())
    wanted = {"scalar": set(), "avx2": {"avx2", "fma", "f16c"},
              "avx512": {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"}}
    return [name for name in ISAS if wanted[name] <= flags]


def column(folder, name):
    with h5py.File(folder.file) as file:
        return [value.decode() for value in file[name][:]]


def run_of(folder):
    with h5py.File(folder.file) as file:
        check(list(file["runs"]) == ["0"], "more than one run")
        run = file["runs/0"].attrs
        return run["isa"], run["isa_cap"]


def content_is_the_same(names):
    digests, variants = {}, {}
    for name in names:
        with Folder(PLAN) as folder:
            done = folder.run("--isa", name, "-q", QG_ISA="scalar")
            check(done.returncode == 0, name, done.returncode, done.stderr)
            check(run_of(folder) == (name, name), name, "was recorded as", run_of(folder))
            digests[name] = folder.digest()
            variants[name] = set(column(folder, "cases/impl_used"))
    check(len(set(digests.values())) == 1, "contents differ:", digests)
    for name in names[1:]:
        check(variants[name] != variants["scalar"], name, "ran nothing of its own:", variants)
    print(digests, variants)


def the_environment_counts(names):
    with Folder(PLAN[:2] + ["--ops", "error", "--data", "normal", "--m", "1", "--k", "32"]) as folder:
        check(folder.run("-q", QG_ISA="scalar").returncode == 0, "QG_ISA=scalar failed")
        check(run_of(folder) == ("scalar", "scalar"), run_of(folder))
        digest = folder.digest()
        folder.clear()
        check(folder.run("-q", QG_ISA="").returncode == 0, "an empty QG_ISA failed")
        check(run_of(folder) == (names[-1], "none"), run_of(folder))
        check(folder.digest() == digest, "content differs")


def what_is_missing_is_refused(names):
    for name in [name for name in ISAS if name not in names]:
        with Folder(PLAN) as folder:
            for done in (folder.run("--isa", name), folder.run(QG_ISA=name)):
                check(done.returncode == 5 and done.stderr.count("\n") == 1, name, done.stderr)


def vectors_are_cases():
    plan = ["--formats", "e4m3,fp16", "--ops", "vectors"]
    with Folder(plan) as folder:
        done = folder.run()
        check(done.returncode == 0, done.returncode, done.stderr)
        status = column(folder, "cases/status")
        check(set(status) == {"PASSED"} and len(status) > 15, status)
        check(set(column(folder, "cases/op")) == {"vectors"}, "another op ran")
        check(set(column(folder, "cases/format")) == {"e4m3", "fp16"}, "formats are missing")
        data = column(folder, "cases/data")
        check(len(set(data)) == len(data) and "vectors:hopper_wgmma-e4m3-f32-h200.qgvec" in data,
              data)
        with h5py.File(folder.file) as file:
            check(set(file["counts/n"][:]) == {500}, file["counts/n"][:])
            check(set(file["counts/code_mismatches"][:]) == {0}, "mismatches")
            check(set(file["counts/saturated"][:]) == {-1}, "what does not apply is counted")
            check(set(file["metrics/max_ulp"][:]) == {0}, file["metrics/max_ulp"][:])
        line = column(folder, "cases/repro")[3]
    with Folder([]) as folder:
        done = folder.run("--repro", line)
        check(done.returncode == 0 and column(folder, "cases/data") == [data[3]], line,
              done.stderr)


def where_files_lie_does_not_matter():
    """A copy of the recorded files gives the same content; one wrong digit in it is a failure."""
    plan = ["--formats", "e4m3", "--ops", "vectors"]
    with Folder(plan) as folder:
        check(folder.run("-q").returncode == 0, "the shipped files")
        digest = folder.digest()
        folder.clear()
        copy = folder.path / "datasets/vectors/hardware"
        source = pathlib.Path(os.environ["QG_SOURCE_DIR"]) / "datasets/vectors/hardware"
        shutil.copytree(source, copy)
        done = folder.run("-q", QG_DATA_DIR=str(folder.path))
        check(done.returncode == 0 and folder.digest() == digest, "the copy", done.stderr)
        folder.clear()
        path = copy / "hopper_wgmma-e4m3-f32-h200.qgvec"
        lines = path.read_text().split("\n")
        lines[99] = lines[99][:-1] + ("1" if lines[99][-1] == "0" else "0")
        path.write_text("\n".join(lines))
        done = folder.run(QG_DATA_DIR=str(folder.path))
        check(done.returncode == 1, done.returncode, done.stderr)
        failed = dict(zip(column(folder, "cases/reason"), column(folder, "cases/status")))
        failed.pop("")
        [(reason, status)] = failed.items()
        check(status == "FAILED" and
              reason.startswith(f"1 of 500 lines differ: {path.name}:100: d wanted "), reason)
        check(f"{path.name}:100" in done.stdout, "the summary does not name it:", done.stdout)


available = here()
content_is_the_same(available)
the_environment_counts(available)
what_is_missing_is_refused(available)
vectors_are_cases()
where_files_lie_does_not_matter()
