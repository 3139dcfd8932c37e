"""Both backends in a sweep: codes, scales and values of the cpu are compared with the emulator's,
products are held by a bound, speeds are measured. Content does not depend on the instruction set, on
shards, threads, kills, although times do.

ctest-timeout: 900"""

import signal

import h5py
import numpy
import sweep_tools
from sweep_tools import Folder, check

# What is measured of unit native depends on libraries and machine, and is no part of the digest.
PLAN = ["--formats", "e4m3,mxfp8,nvfp4", "--rules", "default", "--units",
        "exact,hopper_wgmma,native", "--data", "normal,outliers:100", "--m", "17", "--n", "8",
        "--k", "512", "--inputs", "fp32,bf16", "--layouts", "default", "--threads", "1"]


def verdicts():
    with Folder(PLAN) as folder:
        done = folder.run("-v")
        check(done.returncode == 0, done.returncode, done.stderr)
        with h5py.File(folder.file) as file:
            cases = {name: file["cases/" + name][:] for name in
                     ("op", "backend", "unit", "status", "reason", "impl_used", "output_digest",
                      "input_type", "repro")}
            timing = {name: file["timing/" + name][:] for name in file["timing"]}
            mismatches = file["counts/code_mismatches"][:], file["counts/scale_mismatches"][:]
            counted = file["counts/saturated"][:]
            error = file["metrics/rel_frobenius"][:]
        measured = numpy.isin(cases["status"], (b"RAN", b"PASSED"))
        check(set(cases["status"]) <= {b"RAN", b"PASSED", b"SKIPPED"}, set(cases["status"]))
        check(set(cases["op"]) == {b"error", b"gemm", b"partition", b"throughput"},
              set(cases["op"]))
        cpu, emulator = cases["backend"] == b"cpu", cases["backend"] == b"emulator"
        is_error, is_gemm = cases["op"] == b"error", cases["op"] == b"gemm"
        speed = cases["op"] == b"throughput"
        first = numpy.flatnonzero(is_error & emulator)
        second = numpy.flatnonzero(is_error & cpu)
        check(len(first) == len(second) > 0 and (first + 1 == second).all(), "order", first, second)
        check((cases["status"][second] == b"PASSED").all(), cases["reason"][second])
        check((cases["output_digest"][first] == cases["output_digest"][second]).all(), "digests")
        check((error[first] == error[second]).all(), "errors")
        check(all((m[second] == 0).all() and (m[first] == -1).all() for m in mismatches), mismatches)
        check((counted[second] == -1).all() and (counted[first] >= 0).all(), "counts")
        native = is_gemm & (cases["unit"] == b"native")
        check(native.any() and (native == (is_gemm & cpu)).all(), "native is the cpu's")
        check((cases["status"][native] == b"PASSED").all(), cases["reason"][native])
        check(speed.sum() == len(second) and (speed & emulator).sum() == 0, "speeds")
        check(all(i.startswith(b"cpu ") for i in cases["impl_used"][cpu & measured]), "impl_used")
        check((timing["gb_per_s"][speed] > 0).all() and (timing["memcpy_ratio"][speed] > 0).all() and
              (timing["samples"][speed] >= 5).all(), timing)
        check(numpy.isnan(timing["median_s"][~speed]).all(), "times of other operations")
        lines = [l for l in done.stderr.splitlines() if l.startswith("cpu: mxfp8 group:32 of bf16 by ")]
        check(len(lines) == 3, "not a line for each rule:", done.stderr)
        check("memcpy" in done.stdout and "the emulator's bytes" in done.stdout, done.stdout)
        check(max(len(line) for line in done.stdout.splitlines()) <= 120, done.stdout)
        line = cases["repro"][second[0]].decode()
    with Folder([]) as folder:
        done = folder.run("--repro", line)
        check(done.returncode == 0 and folder.texts("status") == ["PASSED"], line, done.stderr)
    return digest_of()


def digest_of(*more, **extra):
    with Folder(PLAN + list(more)) as folder:
        done = folder.run("-q", **extra)
        check(done.returncode == 0, more, extra, done.returncode, done.stderr)
        return folder.digest()


def in_shards(digest):
    with Folder(PLAN) as folder:
        for shard in ("2/3", "1/3", "3/3"):
            done = folder.run("-q", "--shard", shard)
            check(done.returncode == 0, shard, done.returncode, done.stderr)
        check(folder.digest() == digest, "three shards differ from one")


def killed(digest):
    chance = sweep_tools.seeded("backends")
    kills = finished = 0
    with Folder(PLAN) as folder:
        while kills < 5 and finished < 15:
            sweep = folder.start("-q")
            sweep_tools.kill_at(sweep, folder, chance)
            if sweep.returncode == 0:
                check(folder.digest() == digest, "content differs after resuming")
                folder.clear()
                finished += 1
                continue
            check(sweep.returncode == -signal.SIGKILL, "the sweep failed:", sweep.returncode)
            kills += 1
        check(folder.run("-q").returncode == 0, "the last run failed")
        check(folder.digest() == digest, "content differs after resuming")
    print("kills:", kills, "finished between:", finished)


whole = verdicts()
check(digest_of(QG_ISA="scalar") == whole, "QG_ISA=scalar differs")
check(digest_of("--threads", "3") == whole, "three threads differ from one")
in_shards(whole)
killed(whole)
