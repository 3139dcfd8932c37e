"""Operation `model` from the shell, on the seeded transformer: columns, a NumPy program with the same
quantization, shards, threads and kills, lines that reproduce a case, messages, gates, figures.

ctest-timeout: 600"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import h5py
import numpy
import sweep_tools
from sweep_tools import Folder, check, environment

BIN = pathlib.Path(os.environ["QG_BIN_DIR"])
sys.path.insert(0, str(pathlib.Path(os.environ["QG_SOURCE_DIR"]) / "datasets"))
import seeded_transformer  # noqa: E402
from capture_activations import Transformer, unit_mean  # noqa: E402

NODES = 48
SENTENCES, HIDDEN = 8, 64
COMMON = ["--ops", "model", "--data", "model:seeded", "--threads", "1", "--backends", "emulator"]
# 5 recipes on exact, 3 of them also on hopper_wgmma
PLAN = COMMON + ["--formats", "e4m3,int8,mxfp4", "--layouts", "default", "--rules", "default",
                 "--units", "exact,hopper_wgmma+promote:128", "--exclude", "layout=per_tensor",
                 "--exclude", "layout=block*", "--exclude", "scale_rule=even"]


def rows_of(path, **wanted):
    """The rows of a file as dictionaries: texts of /cases, numbers of /metrics and others."""
    with h5py.File(path) as file:
        columns = {name: [v.decode() if isinstance(v, bytes) else v for v in file["cases/" + name][:]]
                   for name in file["cases"]}
        for name in ("metrics/qsnr_db", "metrics/cosine", "metrics/spearman",
                     "metrics/backward_error", "counts/n", "counts/underflowed", "counts/clipped",
                     "sums/xx", "sums/qq", "sums/ee"):
            columns[name] = file[name][:]
    rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


# ----------------------------------------------------------------------------------------- columns

def columns(folder):
    rows = rows_of(folder.file)
    measured = [row for row in rows if row["status"] == "RAN"]
    skipped = [row for row in rows if row["status"] == "SKIPPED"]
    check(len(measured) + len(skipped) == len(rows) > 0, {row["status"] for row in rows})
    check(len(measured) % NODES == 0, len(measured), "rows are no whole runs")
    for row in rows:
        check((row["op"], row["reference"], row["data"]) == ("model", "fp32", "model:seeded"), row)
        check(row["n"] == 0 and row["bias"] == 0 and row["input_type"] == "fp32", row)
        check(row["format_b"] == row["format"] and row["layout_b"] == row["layout"], row)
        check(row["out_type"] == "fp32" and row["seed"] == 1 and row["sm_count"] == 0, row)
    for row in measured:
        is_embedding = row["tensor"] == "embedding"
        check(row["m"] * row["k"] == row["counts/n"] > 0, row)
        check(numpy.isnan(row["metrics/backward_error"]), row)
        check(numpy.isnan(row["metrics/spearman"]) != is_embedding, row)
        check(5 < row["metrics/qsnr_db"] < 120, row)
        check(row["input_digest"] == measured[0]["input_digest"] != 0, row)
        check(row["output_digest"] != 0 and row["impl_used"].startswith("emulator "), row)
        check(row["counts/underflowed"] >= 0 and row["counts/clipped"] == -1, row)
        check(row["reason"] == "", row)
    check(len({row["case_id"] for row in rows}) == len(rows), "cases share an id")
    # What cannot run is one case with its reason.
    for row in skipped:
        check(row["tensor"] == "embedding" and row["output_digest"] == 0, row)
        check("hopper_wgmma" in row["reason"], row)
    check(len(skipped) == len({row["case_id"] for row in skipped}) > 0, skipped)


def first_case_pays(folder):
    """All nodes come from one run: the first case of it takes nearly all the time."""
    seconds = [row["seconds"] for row in rows_of(folder.file, status="RAN")]
    first = sum(seconds[::NODES])
    check(first > 5 * (sum(seconds) - first), first, sum(seconds))


def table(done):
    lines = done.stdout.splitlines()
    head = lines[0].split()
    check(head[:1] == ["format"] and {"cosine", "QSNR", "rho", "worst"} <= set(head), lines[0])
    check("model" not in head, "a column of the one model", lines[0])
    body = lines[1:next(i for i, line in enumerate(lines) if line.startswith("worst nodes: "))]
    said = " ".join(lines[len(body) + 1:])
    check(sum(map(int, re.findall(r"in (\d+) row", said))) == len(body), said)
    check(len(body) == 8, done.stdout)  # a line for each run
    check(max(map(len, lines[:len(body) + 1])) <= 80, done.stdout)
    check(re.search(r"\d+ cases: \d+ RAN, \d+ SKIPPED", done.stdout), done.stdout)
    check(re.search(r"SKIPPED 2: hopper_wgmma", done.stdout), done.stdout)


def one_row():
    with Folder(COMMON + ["--formats", "int4", "--layouts", "per_row", "--units", "exact"]) as folder:
        done = folder.run(COLUMNS="60")
        check(done.returncode == 0, done.stderr)
        worst = min(rows_of(folder.file), key=lambda row: row["metrics/qsnr_db"])
        embedding, = rows_of(folder.file, tensor="embedding")
        line = done.stdout.splitlines()[1].split()
        check(line == ["int4", f"{embedding['metrics/cosine']:.5f}",
                       f"{embedding['metrics/qsnr_db']:.2f}", f"{embedding['metrics/spearman']:.5f}",
                       f"{worst['metrics/qsnr_db']:.2f}"], line)
        check(done.stdout.splitlines()[2] == f"worst nodes: {worst['tensor']} in 1 row", done.stdout)
        shown(folder)


def shown(folder):
    """The node stays and stays whole; what all rows have in common does not."""
    def show(*options):
        done = subprocess.run([str(sweep_tools.RUN_SWEEP), "--show", str(folder.file), *options],
                              capture_output=True, text=True, env=environment(COLUMNS="60"))
        return done.stdout.splitlines() or done.stderr
    lines = show("--where", "tensor=embedding")
    check(lines[0].split() == ["format", "tensor", "qsnr_db", "cosine", "spearman"], lines)
    check(lines[1].split()[:2] == ["int4", "embedding"] and len(lines) == 2, lines)
    lines = show()
    check(lines[0].split() == ["format", "tensor", "qsnr_db", "cosine", "spearman"], lines)
    check([line.split()[1] for line in lines[1:]] == [row["tensor"] for row in rows_of(folder.file)],
          lines)
    check("spearman" not in show("--where", "tensor=layer0/*")[0], "of embeddings alone")
    check("the nearest is spearman" in show("--columns", "rho"), show("--columns", "rho"))
    check("the nearest is spearman" in show("--where", "rho<1"), show("--where", "rho<1"))


def units_differ():
    """Units that begin alike can be told apart on narrow terminals: layouts give way first."""
    with Folder(COMMON + ["--formats", "mxfp4,nvfp4", "--out-types", "fp32,bf16", "--units",
                          "blackwell_mx*", "--where", "tensor=embedding"]) as folder:
        for width, units in ((81, {"blackwell_mx", "blackwell_mxf4"}), (80, None), (74, None)):
            lines = folder.run("--overwrite", COLUMNS=str(width)).stdout.splitlines()
            rows = lines[1:next(i for i, line in enumerate(lines) if line.startswith("worst node"))]
            check(max(map(len, rows)) <= width and len(set(rows)) == len(rows) > 0, lines)
            at = lines[0].split().index("unit")
            shown = {row.split()[at] for row in rows}
            check(len(shown) == 2 and shown == (units or shown), width, lines)


# --------------------------------------------------------------------------------------- NumPy twin

def by_rows(x, largest):
    """x quantized by rows to integers with rule amax, and dequantized."""
    x = x.astype(numpy.float32)
    scale = (numpy.abs(x).max(axis=1, keepdims=True) / numpy.float32(largest)).astype(numpy.float32)
    codes = numpy.clip(numpy.rint(x / scale), -largest, largest).astype(numpy.float32)
    return (codes * scale).astype(numpy.float64)


class Quantized(Transformer):
    """The seeded transformer with int8 activations, and weights as `largest` says."""

    largest = 127

    def linear(self, name, values):
        weights = by_rows(self.float32[f"{name}.weight"], self.largest)
        product = by_rows(values, 127) @ weights.T
        return product.astype(numpy.float32) + self.tensors[f"{name}.bias"]


class WithInt4Weights(Quantized):
    largest = 7


def ranks(values):
    order = numpy.empty(len(values))
    order[numpy.argsort(values)] = numpy.arange(len(values))
    return order


def similarities(x):
    upper = numpy.triu_indices(len(x), 1)
    return (x @ x.T)[upper]


def numpy_twin(quantized, formats_b):
    weights, tokens = seeded_transformer.weights(), seeded_transformer.sentences()
    shape = (seeded_transformer.LAYERS, seeded_transformer.HEADS)
    x, q = (numpy.array([unit_mean(model(weights, *shape).run(t)[0]) for t in tokens])
            for model in (Transformer, quantized))
    check(x.shape == (SENTENCES, HIDDEN), x.shape)
    cosine = (x * q).sum() / numpy.sqrt((x * x).sum() * (q * q).sum())
    qsnr = 10 * numpy.log10((x * x).sum() / ((q - x) ** 2).sum())
    rho = numpy.corrcoef(ranks(similarities(x)), ranks(similarities(q)))[0, 1]
    with Folder(COMMON + ["--formats", "int8", "--formats-b", formats_b, "--layouts", "per_row",
                          "--units", "exact", "--where", "tensor=embedding"]) as folder:
        check(folder.run("-q").returncode == 0, formats_b)
        row, = rows_of(folder.file)
    # Codes at the boundary between two may differ between binary32 and binary64 activations.
    print(f"int8 by {formats_b}, NumPy: cosine {cosine:.7f} QSNR {qsnr:.3f} rho {rho:.5f}; sweep: "
          f"{row['metrics/cosine']:.7f} {row['metrics/qsnr_db']:.3f} {row['metrics/spearman']:.5f}")
    check(abs(row["metrics/cosine"] - cosine) < 2e-6, row["metrics/cosine"], cosine)
    check(abs(row["metrics/qsnr_db"] - qsnr) < 0.2, row["metrics/qsnr_db"], qsnr)
    check(abs(row["metrics/spearman"] - rho) < 0.002, row["metrics/spearman"], rho)
    check(abs(row["sums/xx"] - SENTENCES) < 1e-5 and abs(row["sums/qq"] - SENTENCES) < 1e-5, row)


# ----------------------------------------------------------------------------------- same content

def in_shards(digest):
    with Folder(PLAN) as folder:
        for shard in ("1/3", "2/3", "3/3"):
            done = folder.run("--shard", shard)
            check(done.returncode == 0, shard, done.returncode, done.stderr)
            measured = re.search(r"(\d+) RAN", done.stdout)
            check(shard == "3/3" or int(measured[1]) % NODES == 0, "a run in parts:", done.stdout)
        check(folder.digest() == digest, "three shards differ from one")


def on_threads(digest):
    with Folder(PLAN + ["--threads", "3"]) as folder:
        check(folder.run("-q").returncode == 0, "on three threads")
        check(folder.digest() == digest, "three threads differ from one")
    with Folder(PLAN) as folder:
        check(folder.run("-q", QG_ISA="scalar").returncode == 0, "with QG_ISA=scalar")
        check(folder.digest() == digest, "the scalar model differs")


def killed(digest):
    """Kills within runs, too: the cases that are left find no run and make their own."""
    sweep_tools.kill_often(5, sweep_tools.seeded("model"), digest, PLAN, 15)


def reproduced(folder):
    """The line of a case gives the case alone, with all that was measured."""
    rows = rows_of(folder.file)
    for row in rows[::len(rows) // 5]:
        if row["status"] != "RAN":
            continue
        with Folder(shlex.split(row["repro"])) as alone:
            done = alone.run("-q")
            check(done.returncode == 0, row["repro"], done.stderr)
            again, = rows_of(alone.file)
            for name in ("case_id", "tensor", "output_digest", "metrics/qsnr_db", "sums/ee"):
                check(again[name] == row[name], name, again[name], row[name], row["repro"])


# ---------------------------------------------------------------------------------------- messages

def messages():
    minilm = ["--formats", "mxfp8", "--ops", "model"]
    for options, code, words in (
            (COMMON + ["--formats", "bf16"], 2, "formats of up to 8 bits"),
            (["--formats", "mxfp8", "--ops", "model", "--data", "normal"], 2, "model:seeded"),
            (["--formats", "mxfp8", "--ops", "error", "--data", "model:seeded"], 2, "--ops model"),
            (COMMON + ["--formats", "mxfp8", "--m", "3"], 2, "no operation of the sweep has m"),
            (COMMON + ["--formats", "mxfp8", "--where", "tensor=none"], 4, "nothing selected"),
            (minilm + ["--data", "model:/nowhere.safetensors"], 5, "/nowhere.safetensors"),
            (minilm, 5, "fetch_minilm.py"), (minilm + ["--list"], 5, "fetch_minilm.py")):
        with Folder(options) as folder:
            done = folder.run("-q", HOME="/nowhere", XDG_CACHE_HOME="/nowhere")
            check(done.returncode == code, options, "gave", done.returncode, done.stderr)
            check(words in done.stderr and done.stderr.count("\n") == 1, words, done.stderr)
            check(not folder.file.exists(), options, "left a file")


def write_zeros(path, last=0):
    """A file of MiniLM's architecture: zeros that take no room, but for the last byte."""
    path.parent.mkdir(exist_ok=True)
    pairs = {"embeddings.LayerNorm": (384,)}
    for layer in range(6):
        at = f"encoder.layer.{layer}."
        pairs |= {at + "attention.self." + part: (384, 384) for part in ("query", "key", "value")}
        pairs |= {at + "attention.output.dense": (384, 384), at + "intermediate.dense": (1536, 384),
                  at + "output.dense": (384, 1536), at + "attention.output.LayerNorm": (384,),
                  at + "output.LayerNorm": (384,)}
    shapes = {f"embeddings.{name}_embeddings.weight": (rows, 384) for name, rows in
              (("word", 30522), ("position", 512), ("token_type", 2))}
    for name, shape in pairs.items():
        shapes |= {name + ".weight": shape, name + ".bias": shape[:1]}
    header, end = {"embeddings.position_ids": {"dtype": "I64", "shape": (1, 512),
                                               "data_offsets": [0, 4096]}}, 4096
    for name, shape in shapes.items():
        size = 4 * int(numpy.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + end)
    with open(path, "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(bytes([last]))
    return f"model:{path}"


def of_one_name():
    """Two models of one name would be pooled; one model by two paths is one. A line of column repro
    runs where the file is."""
    options = ["--ops", "model", "--formats", "int8", "--layouts", "per_row", "--units", "exact",
               "--backends", "emulator", "--where", "tensor=embedding"]
    with Folder(options) as folder:
        one, same, other, renamed = (write_zeros(folder.path / name, last) for name, last in (
            ("a/model.safetensors", 0), ("b/model.safetensors", 0), ("c/model.safetensors", 1),
            ("c/other.safetensors", 1)))
        done = folder.run("--list", "--data", f"{one},{other}")
        check(done.returncode == 2, done.stdout, done.stderr)
        check(f"--data: {one[6:]} and {other[6:]} are two models of one name" in done.stderr, done.stderr)
        check("rename or link one" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        for data in (f"{one},{same}", f"{one},{renamed}"):
            done = folder.run("--list", "--data", data)
            check(done.returncode == 0, data, done.stderr)
            check(f"# {1 + (renamed in data)} case" in done.stdout, data, done.stdout)
        folder.run("-q", "--data", one)
        row, = rows_of(folder.file)
        check(str(folder.path) not in row["repro"] and row["data"] == "model:model.safetensors", row)
        for name, code in (("b", 0), (".", 5)):
            again = subprocess.run([str(sweep_tools.RUN_SWEEP), *shlex.split(row["repro"]), "--list"],
                                   cwd=folder.path / name, capture_output=True, text=True,
                                   env=environment())
            check(again.returncode == code, name, again.stderr)
            check(f"{row['case_id']:016x}" in again.stdout or "current folder" in again.stderr, again)


def listed():
    with Folder(PLAN) as folder:
        done = folder.run("--list")
        check(done.returncode == 0 and not folder.file.exists(), done.stderr)
        check("model:seeded#layer1/gelu" in done.stdout, done.stdout[:2000])
        check("# all: op model" in done.stdout, done.stdout[:200])


# ------------------------------------------------------------------------------- gates and figures

def gate(*words, code):
    done = subprocess.run([str(BIN / "run_gate"), *map(str, words)], capture_output=True, text=True,
                          env=environment())
    check(done.returncode == code, words, "gave", done.returncode, "not", code, done.stdout, done.stderr)
    return done.stdout


def gated(folder):
    said = gate(folder.file, code=0)
    check(re.search(r"metrics-follow-from-sums\s+consistency\s+\d{3}", said), said)
    check(not re.search(r"theory|backward|law", said), "a bound applies", said)
    baseline = folder.path / "baseline.tsv"
    gate("--baseline", baseline, "--update-baseline", folder.file, code=0)
    said = gate("--baseline", baseline, folder.file, code=0)
    check(re.search(r"bytes-as-before\s+bits\s+\d{3}\s+0\s", said), said)
    check(re.search(r"^PASS: \d+ PASS$", said, re.MULTILINE), said)
    changed = folder.path / "changed.h5"
    for column, gate_id, change in (("cases/output_digest", "bytes-as-before", lambda v: v ^ numpy.uint64(1)),
                                    ("metrics/cosine", "metrics-follow-from-sums", lambda v: v / 2)):
        shutil.copy(folder.file, changed)
        with h5py.File(changed, "r+") as file:
            file[column][3] = change(file[column][3])
        said = gate("--baseline", baseline, changed, code=1)
        check(re.search(gate_id + r"\s+\w+\s+\d+\s+1\s", said), column, said)


def figures(folder):
    """Figures of other operations are those without the rows of models."""
    done = {}
    for name, options in (("without", ["--ops", "error", "--data", "normal"]),
                          ("with", ["--ops", "error,model", "--data", "normal,model:seeded",
                                    "--units", "exact"])):
        with Folder(["--formats", "mxfp8,mxfp4", "--m", "16", "--k", "128", "--seeds", "1:5:1",
                     "--backends", "emulator", *options]) as sweep:
            check(sweep.run("-q").returncode == 0, options)
            out = folder.path / name
            subprocess.run([str(BIN / "make_figures"), str(sweep.file), "--out", str(out), "--term",
                            "svg"], capture_output=True, check=True, env=environment())
            done[name] = {path.name: [line for line in path.read_text().splitlines()
                                      if not line.startswith("#")] for path in out.glob("*.tsv")}
    check(done["with"] == done["without"] != {}, {k: list(v) for k, v in done.items()})


with Folder(PLAN) as whole:
    finished = whole.run()
    check(finished.returncode == 0, finished.returncode, finished.stderr)
    columns(whole)
    first_case_pays(whole)
    table(finished)
    reproduced(whole)
    gated(whole)
    figures(whole)
    content = whole.digest()
one_row()
units_differ()
numpy_twin(Quantized, "int8")
numpy_twin(WithInt4Weights, "int4")
in_shards(content)
on_threads(content)
killed(content)
messages()
of_one_name()
listed()
