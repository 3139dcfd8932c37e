"""Products in a sweep: a case has two rows, one for each reference. Merging, resuming, sharding and
killing keep both; tables and counts are of cases.

ctest-timeout: 900"""

import subprocess

import h5py
import numpy
import sweep_tools
from sweep_tools import Folder, check

# 3 of error, and 2 formats x 3 units (one of them impossible for mxfp8) x 2 out types x 2 n x 4 seeds
PLAN = ["--formats", "e4m3,mxfp8", "--layouts", "default", "--rules", "default", "--ops",
        "error,gemm", "--units", "exact,fp32_sequential,hopper_wgmma", "--data", "normal",
        "--out-types", "fp32,bf16", "--m", "17", "--n", "8,16", "--k", "512", "--seeds", "1:4:1",
        "--threads", "1", "--backends", "emulator"]


def rows_are_pairs():
    with Folder(PLAN) as folder:
        done = folder.run()
        check(done.returncode == 0, done.returncode, done.stderr)
        with h5py.File(folder.file) as file:
            cases = {name: file["cases/" + name][:] for name in
                     ("case_id", "op", "reference", "status", "unit", "out_type", "n",
                      "impl_used", "output_digest")}
            error = file["metrics/rel_frobenius"][:]
            backward = file["metrics/backward_error"][:]
        product = cases["op"] == b"gemm"
        ids, references = cases["case_id"][product], cases["reference"][product]
        check(len(ids) == 2 * len(set(ids)) > 0, "not two rows a case:", len(ids), len(set(ids)))
        check((ids[0::2] == ids[1::2]).all(), "the rows of a case are apart")
        check(set(references[0::2]) == {b"quantized"} and set(references[1::2]) == {b"source"},
              "references:", references[:4])
        check((cases["reference"][~product] == b"").all(), "error has a reference")
        measured = product & (cases["status"] == b"RAN")
        digests = cases["output_digest"][measured]
        check((digests[0::2] == digests[1::2]).all() and (digests != 0).all(), "output digests")
        check(numpy.isfinite(error[measured]).all() and numpy.isfinite(backward[measured]).all(),
              "a product without error sums")
        source = measured & (cases["reference"] == b"source")
        quantized = measured & (cases["reference"] == b"quantized")
        check((error[quantized] < error[source]).all(), "accumulation exceeds the whole error")
        check(all(i.startswith(b"emulator ") for i in cases["impl_used"][measured]), "impl_used")
        count = len(set(cases["case_id"]))
        check(f"\n{count} cases: " in done.stdout, "rows are counted as cases:", done.stdout)
        check("accum" in done.stdout and "QSNR dB" in done.stdout, done.stdout)
        table = done.stdout[:done.stdout.index("products: ")]
        check(max(len(line) for line in table.splitlines()) <= 80, done.stdout)
        shown = subprocess.run([str(sweep_tools.RUN_SWEEP), "--show", str(folder.file), "--where",
                                "op=gemm&unit=exact&seed=1"], capture_output=True, text=True)
        check("reference" in shown.stdout.splitlines()[0] and " quantized " in shown.stdout,
              shown.stdout, shown.stderr)
        again = folder.run()
        check(again.returncode == 0 and "already" in again.stderr, again.stderr)
        return folder.digest()


def in_shards(digest):
    with Folder(PLAN) as folder:
        for shard in ("1/3", "2/3", "3/3"):
            done = folder.run("-q", "--shard", shard)
            check(done.returncode == 0, shard, done.returncode, done.stderr)
        check(folder.digest() == digest, "three shards differ from one")


def on_threads(digest):
    with Folder(PLAN + ["--threads", "3"]) as folder:
        check(folder.run("-q").returncode == 0, "on three threads")
        check(folder.digest() == digest, "three threads differ from one")
    with Folder(PLAN) as folder:
        check(folder.run("-q", QG_ISA="scalar").returncode == 0, "with QG_ISA=scalar")
        check(folder.digest() == digest, "the scalar model differs")


def killed(digest):
    sweep_tools.kill_often(8, sweep_tools.seeded("products"), digest, PLAN, 20)


whole = rows_are_pairs()
in_shards(whole)
on_threads(whole)
killed(whole)
