"""run_sweep --learn-route: timings of both kernels of groups become a route, which is written as a whole
beside what the file says of other recipes; what is wrong is said. The timings are made up: files of a
sweep on backend cpu, rewritten to say that a GPU gave them.

ctest-timeout: 300"""

import os
import pathlib
import subprocess
import tempfile

import h5py
import numpy
from sweep_tools import RUN_SWEEP, check, environment

HEADER = "gpu\trecipe\tinput\tk_from\tm_from\tkernel\tratio\tsamples"
GPU = "NVIDIA H100 80GB HBM3"
NAME = "NVIDIA_H100_80GB_HBM3.route.tsv"
# What was published of 15 points: the time of the shared kernel over the twin's.
PUBLISHED = {(5120, 16): 0.84, (5120, 17): 0.95, (5120, 25): 0.76, (5120, 1168): 3.4,
             (5120, 4576): 3.59, (6144, 16): 0.82, (6144, 17): 0.80, (6144, 25): 0.87,
             (6144, 1168): 3.3, (6144, 4576): 3.5, (17408, 16): 1.02, (17408, 17): 1.05,
             (17408, 25): 1.08, (17408, 1168): 3.59, (17408, 4576): 3.3}


def run(*arguments, **extra):
    return subprocess.run([str(RUN_SWEEP), *map(str, arguments)], capture_output=True, text=True,
                          env=environment(**extra), timeout=300)


def sweep(path, formats="metrale_act128", m="1,2,3,4", k="128,256"):
    done = run("--formats", formats, "--layouts", "group:128", "--ops", "throughput", "--backends",
               "cpu", "--inputs", "bf16", "--data", "normal", "--m", m, "--k", k, "--out", path,
               "-q", "--overwrite")
    check(done.returncode == 0, done.stderr)


def replace(group, name, values):
    old = group[name]
    attributes = dict(old.attrs)
    del group[name]
    made = group.create_dataset(name, data=values)
    for key, value in attributes.items():
        made.attrs[key] = value


def texts(value, count):
    """As the file has them: UTF-8 of a fixed length."""
    size = len(value.encode())
    return numpy.array([value.encode()] * count, dtype=h5py.string_dtype("utf-8", size))


def pretend(path, kernel, median, gpu=GPU, mad=1e-9):
    """The rows of a file become those of a kernel: median(row, m, k) seconds."""
    with h5py.File(path, "r+") as file:
        cases, timing = file["cases"], file["timing"]
        count = len(cases["m"])
        replace(cases, "backend", texts("cuda", count))
        replace(cases, "impl_used", texts("cuda: group_" + kernel, count))
        shapes = zip(cases["m"][:], cases["k"][:])
        timing["median_s"][:] = [median(i, int(m), int(k)) for i, (m, k) in enumerate(shapes)]
        timing["mad_s"][:] = mad
        timing["samples"][:] = 20
        run_0 = file["runs/0"]
        if "gpu" in run_0:
            replace(run_0, "gpu", numpy.array(gpu.encode(), dtype=h5py.string_dtype(
                "utf-8", len(gpu.encode()))))
        else:
            run_0.attrs["gpu"] = gpu


def rows(path):
    lines = pathlib.Path(path).read_text().splitlines()
    check(lines[0] == HEADER, lines)
    return [line.split("\t") for line in lines[1:]]


def pair(folder, shared, hopper, **more):
    files = []
    for kernel, median in (("shared", shared), ("hopper", hopper)):
        path = folder / f"{kernel}.h5"
        sweep(path, **{k: v for k, v in more.items() if k in ("formats", "m", "k")})
        pretend(path, kernel, median, **{k: v for k, v in more.items() if k in ("gpu", "mad")})
        files.append(path)
    return files


def into_the_data_folder(folder):
    data = folder / "data"
    files = pair(folder, lambda i, m, k: 1e-6 * m, lambda i, m, k: 2.5e-6)
    done = run("--learn-route", *files, QG_DATA_DIR=str(data))
    path = data / "reports" / "device" / NAME
    check(done.returncode == 0 and str(path) in done.stdout, done.stdout, done.stderr)
    found = rows(path)
    check(found == [[GPU, "metrale_act128", "bf16", "128", "1", "shared", "2.5", "40"],
                    [GPU, "metrale_act128", "bf16", "128", "3", "hopper", "1.2", "40"],
                    [GPU, "metrale_act128", "bf16", "256", "1", "shared", "2.5", "40"],
                    [GPU, "metrale_act128", "bf16", "256", "3", "hopper", "1.2", "40"]], found)
    # Another recipe joins, the first is learned again: its old rows go.
    pair(folder, lambda i, m, k: 1e-6, lambda i, m, k: 2e-6, formats="e4m3", m="8", k="384")
    more = folder / "more"
    more.mkdir()
    again = pair(more, lambda i, m, k: 3e-6, lambda i, m, k: 1e-6)
    done = run("--learn-route", folder / "shared.h5", folder / "hopper.h5", *again,
               QG_DATA_DIR=str(data))
    check(done.returncode == 0, done.stderr)
    found = rows(path)
    check([row[1:6] for row in found] ==
          [["e4m3 group:128 amax", "bf16", "384", "8", "shared"],
           ["metrale_act128", "bf16", "128", "1", "hopper"],
           ["metrale_act128", "bf16", "256", "1", "hopper"]], found)
    check(sorted(p.name for p in path.parent.iterdir()) == [NAME], "left behind")
    done = run("--learn-route", again[0], again[1], QG_DATA_DIR=str(data))
    check(done.returncode == 0 and rows(path) == found, "the other recipe is lost", rows(path))


def spread(folder):
    """Within the spread the neighbour's kernel stays."""
    shared = {1: 1.0, 2: 1.02, 3: 1.0, 4: 2.0}
    files = pair(folder, lambda i, m, k: shared[m], lambda i, m, k: {1: 2.0, 2: 1.0}.get(m, 1.01),
                 mad=0.011, k="128")
    out = folder / "spread.tsv"
    done = run("--learn-route", *files, "--out", out)
    check(done.returncode == 0, done.stderr)
    check([row[4:6] for row in rows(out)] == [["1", "shared"], ["4", "hopper"]], rows(out))
    # One after the other: the smallest median of several counts.
    slower = folder / "slower.h5"
    sweep(slower, k="128")
    pretend(slower, "shared", lambda i, m, k: 100.0)
    done = run("--learn-route", slower, *files, "--out", folder / "again.tsv")
    check(done.returncode == 0 and rows(folder / "again.tsv") == rows(out), "a slower file")


def published(folder):
    """M12: the route learned from the published points sends each to the faster kernel."""
    sizes = {"m": ",".join(str(m) for m in sorted({m for _, m in PUBLISHED})), "k": "128,256,384"}
    true_k = {128: 5120, 256: 6144, 384: 17408}
    files = pair(folder, lambda i, m, k: PUBLISHED[true_k[k], m], lambda i, m, k: 1.0, mad=1e-3,
                 **sizes)
    for path in files:
        with h5py.File(path, "r+") as file:
            file["cases/k"][:] = [true_k[int(k)] for k in file["cases/k"][:]]
    out = folder / "published.tsv"
    done = run("--learn-route", *files, "--out", out)
    check(done.returncode == 0, done.stderr)
    found = rows(out)
    for (k, m), ratio in PUBLISHED.items():
        below = [row for row in found if int(row[3]) == k and int(row[4]) <= m]
        check(below and below[-1][5] == ("hopper" if ratio > 1 else "shared"), k, m, found)
    check([row[3:6] for row in found] == [["5120", "16", "shared"], ["5120", "1168", "hopper"],
                                          ["6144", "16", "shared"], ["6144", "1168", "hopper"],
                                          ["17408", "16", "hopper"]], found)


def refusals(folder):
    files = pair(folder, lambda i, m, k: 1.0, lambda i, m, k: 2.0, m="1", k="128")
    done = run("--learn-route", files[0], "--out", folder / "none.tsv")
    check(done.returncode == 4 and "both kernels" in done.stderr, done.returncode, done.stderr)
    check(not (folder / "none.tsv").exists(), "an empty route was written")
    done = run("--learn-route", folder / "absent.h5")
    check(done.returncode == 5 and "absent.h5" in done.stderr, done.returncode, done.stderr)
    done = run("--learn-route", *files, "--formats", "e4m3")
    check(done.returncode == 2 and "--formats" in done.stderr, done.returncode, done.stderr)
    done = run("--learn-route", *files, "--show", files[0])
    check(done.returncode == 2, done.returncode, done.stderr)
    done = run("--learn-route", *files, "--out", folder)
    check(done.returncode == 5, done.returncode, done.stderr)
    # The limit of a file's size is a write that fails, no signal.
    out = folder / "limited.tsv"
    done = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", str(RUN_SWEEP),
                           "--learn-route", *map(str, files), "--out", str(out)], capture_output=True,
                          text=True, env=environment(), timeout=100)
    check(done.returncode == 5 and "cannot write" in done.stderr, done.returncode, done.stderr)
    check(not list(folder.glob("limited*")), "something was written")
    # A file of routes that somebody spoilt is not written over.
    spoilt = folder / "spoilt.tsv"
    text = f"{HEADER}\n{GPU}\te4m3\tbf16\t1\t1\ttwin\t1\t1\n"
    spoilt.write_text(text)
    done = run("--learn-route", *files, "--out", spoilt)
    check(done.returncode == 2 and "spoilt.tsv:2:" in done.stderr and "twin" in done.stderr,
          done.returncode, done.stderr)
    check(spoilt.read_text() == text, "the spoilt file changed")
    other = folder / "other.h5"
    sweep(other, m="1", k="128")
    pretend(other, "hopper", lambda i, m, k: 1.0, gpu="NVIDIA L4")
    for_both = [*files, other, folder / "l4.h5"]
    sweep(for_both[3], m="1", k="128")
    pretend(for_both[3], "shared", lambda i, m, k: 1.0, gpu="NVIDIA L4")
    done = run("--learn-route", *for_both, "--out", folder / "two.tsv")
    check(done.returncode == 2 and "NVIDIA L4" in done.stderr, done.returncode, done.stderr)
    done = run("--learn-route", *for_both, QG_DATA_DIR=str(folder / "two"))
    check(done.returncode == 0 and len(list((folder / "two/reports/device").iterdir())) == 2,
          done.stderr)
    pretend(other, "hopper", lambda i, m, k: 1.0, gpu="none")
    done = run("--learn-route", other)
    check(done.returncode == 2 and "GPU" in done.stderr, done.returncode, done.stderr)


def levers(folder):
    plan = ["--formats", "e4m3", "--ops", "partition", "--m", "1", "--k", "128", "--list"]
    done = run(*plan, "--group-kernel", "twin")
    check(done.returncode == 2 and "--group-kernel" in done.stderr, done.stderr)
    done = run(*plan, QG_GROUP_KERNEL="twin")
    check(done.returncode == 2 and "QG_GROUP_KERNEL" in done.stderr, done.stderr)
    for word in ("auto", "shared", "hopper"):
        check(run(*plan, "--group-kernel", word, QG_GROUP_KERNEL="twin").returncode == 0, word)
        check(run(*plan, QG_GROUP_KERNEL=word).returncode == 0, word)
    # It chooses a kernel and no results: the same cases, the same content.
    digests = set()
    for word in ("shared", "hopper"):
        out = folder / f"lever-{word}.h5"
        done = run("--formats", "e4m3", "--ops", "partition", "--m", "1,100", "--k", "128,1152",
                   "--group-kernel", word, "--out", out, "-q")
        check(done.returncode == 0, done.stderr)
        with h5py.File(out) as file:
            digests.add(file.attrs["content_digest"])
    check(len(digests) == 1, digests)


for test in (into_the_data_folder, spread, published, refusals, levers):
    with tempfile.TemporaryDirectory(prefix="route_test.") as scratch:
        test(pathlib.Path(scratch))
