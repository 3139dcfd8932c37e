"""The figures of quantization error, F3 to F8 and F14, drawn from small sweeps of their own plans:
which series they hold, that points lie on the lines of theory, that what the captions say is there,
and what is said where rows are missing. Limits stand with their reasons.

ctest-timeout: 300"""

import math
import os
import pathlib
import subprocess

import h5py
import numpy
from sweep_tools import Folder, check, environment

MAKE_FIGURES = pathlib.Path(os.environ["QG_BIN_DIR"]) / "make_figures"
PLANS = pathlib.Path(os.environ["QG_SOURCE_DIR"]) / "experiments" / "plans"
LARGEST = {"E4M3": 448, "E5M2": 57344, "E3M2": 28, "E2M1": 6, "INT8": 127}


def run_figures(folder, figure, *files):
    return subprocess.run([MAKE_FIGURES, "--figure", figure, "--term", "svg", "--out",
                           folder.path / "figures", *files], capture_output=True, text=True,
                          env=environment())


def one_thread(folder, *more):
    """Small cases: more threads only wait for one another."""
    done = folder.run("-q", "--threads", "1", *more)
    check(done.returncode == 0, folder.plan, done.returncode, done.stderr)


class Plot:
    """The series of a figure's TSV by (panel, label, mark), in order of x."""

    def __init__(self, path):
        self.series = {}
        for line in path.read_text().splitlines():
            fields = line.split("\t")
            if not line.startswith("#") and len(fields) == 8:
                self.series.setdefault(tuple(fields[:3]), []).append([float(v)
                                                                      for v in fields[3:7]])

    def points(self, label, mark="measured", panel=""):
        check((panel, label, mark) in self.series, "no series", panel, label, mark,
              list(self.series))
        found = numpy.array(self.series[panel, label, mark])
        return found[numpy.argsort(found[:, 0], kind="stable")].T

    def labels(self, mark="measured"):
        return [label for _, label, m in self.series if m == mark]

    def off_line(self, label, panel="", tolerance=1e-6):
        """x and measured - theory where both have the same x."""
        x, y, _, _ = self.points(label, panel=panel)
        line_x, line_y, _, _ = self.points(label, "theory", panel)
        nearest = [int(numpy.argmin(abs(line_x - v))) for v in x]
        kept = [i for i, j in enumerate(nearest) if abs(line_x[j] / x[i] - 1) <= tolerance]
        check(len(kept) >= 2, label, "has no points on its line")
        return x[kept], numpy.array([y[i] - line_y[nearest[i]] for i in kept])


def data_lines(path):
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def draw(figure, stem, narrowed, others=()):
    """Of the figure's plan, narrowed. `others`: options of a sweep whose rows no point may count."""
    with Folder(["--plan", str(PLANS / ("F3" if figure == "F14" else figure)) + ".plan",
                 *narrowed]) as folder:
        one_thread(folder)
        drawn = run_figures(folder, figure, folder.file)
        check(drawn.returncode == 0, figure, drawn.stdout, drawn.stderr)
        tsv = folder.path / "figures" / (stem + ".tsv")
        plot, alone = Plot(tsv), data_lines(tsv)
        report = (folder.path / "figures" / "report.md").read_text()
        if others:
            with Folder(["--ops", "error", *others]) as other:
                one_thread(other)
                check(run_figures(folder, figure, other.file, folder.file).returncode == 0, figure)
                check(data_lines(tsv) == alone, figure, "counts rows of another plan")
        with h5py.File(folder.file) as file:
            rows = {name: file[group + name][:] for group, name in (
                ("cases/", "format"), ("cases/", "scale_rule"), ("cases/", "data"),
                ("cases/", "layout"), ("metrics/", "qsnr_db"), ("counts/", "underflowed"))}
        return plot, report, rows


def seeds_of(rows, **wanted):
    kept = numpy.ones(len(rows["qsnr_db"]), bool)
    for name, value in wanted.items():
        kept &= rows[name] == value.encode()
    check(kept.sum() > 1, "rows", wanted)
    return rows["qsnr_db"][kept]


def check_near(what, off, limit):
    check((abs(off) <= limit).all(), what, "is off its line:", off, "limit", limit)


# Elements of a point in the sweeps below; 8.9 / sqrt(n) dB is one standard error of the QSNR of
# normal data (experiments/gate_theory.c). Five of them.
def five_errors(n):
    return 5 * 8.9 / math.sqrt(n)


def against_scale():
    plot, report, rows = draw(
        "F3", "F03_qsnr_scale", ["--m", "4", "--seeds", "1:3:1"],
        ["--formats", "e4m3,int8", "--layouts", "per_tensor,per_row", "--rules",
         "fixed:1,fixed:0x1p-3,amax", "--data", "normal,laplace", "--m", "2", "--k", "128"])
    check(plot.labels() == list(LARGEST), "series of F3", plot.labels())
    check("N(0, 1)" in report and "n = 49152" in report and "3 seeds" in report, "note", report)
    for label, largest in LARGEST.items():
        x, y, low, high = plot.points(label)
        check(len(x) == 32 and x[0] >= 2 ** -8 and x[-1] < 2 ** 24, label, "runs over", x)
        octave = math.log2(x[0] / largest)
        check(abs(octave - round(octave)) < 1e-6, label, "x is not F X")
        check_near(label + " at its mean", (low + high) / 2 - y, 1e-6)
        # Where one value in n saturates, or is not zero, it alone is the noise.
        x, off = plot.off_line(label)
        check_near(label, off, 1.0)
        check_near(label, off[(x < 2) | (x > 2 ** 4)], five_errors(49152))
        check(len(x) == 32, label, "has points off the line's places")
    x, y, low, high = plot.points("E4M3")
    values = seeds_of(rows, format="e4m3", scale_rule="fixed:0x1p-5")
    at = int(numpy.argmin(abs(x - 448 / 32)))
    check(math.isclose(y[at], values.mean(), rel_tol=1e-8), "E4M3 at X = 2^-5", y[at], values)
    half = 4.303 * values.std(ddof=1) / math.sqrt(3)
    check(math.isclose(high[at] - y[at], half, rel_tol=1e-5), "interval", high[at] - y[at], half)
    flat = plot.points("E4M3", "theory")[1][(plot.points("E4M3", "theory")[0] > 2 ** 4) &
                                            (plot.points("E4M3", "theory")[0] < 2 ** 9)]
    check(31.5155 < flat.min() and flat.max() < 31.5575, "plateau", flat)
    x, y, _, _ = plot.points("INT8", "theory")
    check(abs(numpy.diff(y[(x > 8) & (x < 60)]).mean() * 4 + 6.0206) < 0.01, "6 dB per octave")


def shares():
    plot, report, rows = draw("F14", "F14_saturated_underflowed", ["--m", "4", "--seeds", "1:3:1"],
                              ["--formats", "e4m3", "--layouts", "per_tensor", "--rules",
                               "fixed:0x1p-5", "--data", "normal", "--m", "2", "--k", "128"])
    n = 3 * 4 * 4096
    check(plot.labels() == [*LARGEST, "INT8 saturated"], "series of F14", plot.labels())
    check("n = 49152" in report, "note of F14")
    for label in plot.labels():
        x, off = plot.off_line(label)
        line_x, line_y, _, _ = plot.points(label, "theory")
        p = numpy.array([line_y[numpy.argmin(abs(line_x - v))] for v in x])
        check_near(label, off * n, 5 * numpy.sqrt(n * p) + 3)
        x, y, low, high = plot.points(label)
        check(len(x) == 32 and ((y >= 1e-6) & (y <= 1)).all(), label, "shares", y)
        check((numpy.isnan(low) | ((low <= y) & (y <= high))).all(), label, "bars")
    x, y, _, _ = plot.points("E2M1")
    kept = (rows["format"] == b"e2m1") & (rows["scale_rule"] == b"fixed:0x1p-1")
    at = int(numpy.argmin(abs(x - 3)))
    check(math.isclose(y[at], rows["underflowed"][kept].sum() / n, rel_tol=1e-8), "E2M1 at 1/2")
    # P(|z| < 1/8) = 0.09948, half a step of 1/4.
    check(abs(y[at] - 0.09948) < 5 * math.sqrt(0.09948 / n), "E2M1 at X = 1/2", y[at])
    saturated = plot.points("INT8 saturated")
    check(saturated[1][-1] == 1e-6 and saturated[1][0] > 0.9, "saturated", saturated[1])


def against_bits():
    plot, _, _ = draw("F4", "F04_qsnr_bits", ["--m", "32", "--seeds", "1:2:1"],
                      ["--formats", "mxfp8,nvfp4,e4m3", "--data", "normal", "--m", "2", "--k",
                       "128", "--backends", "cpu"])
    limit = five_errors(2 * 32 * 4096)
    for label, bits in (("MX E4M3 E2M3 E2M1", [4.25, 6.25, 8.25]), ("MX E5M2 E3M2", [6.25, 8.25]),
                        ("MX INT8 INT6 INT4", [4.25, 6.25, 8.25])):
        check(list(plot.points(label)[0]) == bits, label, plot.points(label)[0])
        check_near(label, plot.off_line(label)[1], limit)
    for label in ("NVFP4", "NVINT4"):  # the tensor's maximum is taken from one of the seeds
        check(plot.points(label)[0][0] == 4.5, label)
        check_near(label, plot.points(label)[1] - plot.points(label, "theory")[1], 2 * limit)
    better = plot.points("NVFP4 4/6")[1][0] - plot.points("NVFP4")[1][0]
    check(0.3 < better < 1.5, "4/6 gains", better)
    x, y, _, _ = plot.points("MX9 MX6 MX4")
    bound = plot.points("MX9 … MX4: bound", "bound")
    check(list(x) == [4, 6, 9] and list(bound[0]) == [4, 6, 9], "bits of MX9, MX6, MX4", x)
    check_near("bound", bound[1] - (6.02 * numpy.array([2, 4, 7]) - 10 * math.log10(5.5)), 1e-6)
    check((y > bound[1] + 10).all(), "the bound holds on normal data with room", y - bound[1])
    # About 16 dB (Rouhani et al.), of a scale of its own for each E4M3 tensor.
    check(14 < y[2] - plot.points("MX E4M3 E2M3 E2M1")[1][2] < 16, "MX9 - MXFP8")


def rules():
    plot, report, rows = draw("F5", "F05_scale_rules", ["--m", "8", "--seeds", "1:8:1"],
                              ["--formats", "mxfp8,mxint8", "--rules", "floor,amax", "--data",
                               "normal", "--m", "2", "--k", "128", "--backends", "cpu"])
    labels = ["floor", "even", "rceil", "best", "unrounded (amax)"]
    check(plot.labels() == labels and "MXFP8 32.4" in report, "F5", plot.labels(), report)
    y = {label: plot.points(label)[1] for label in labels}
    limit = five_errors(8 * 8 * 4096)
    for i, label in enumerate(labels):
        x, values, low, high = plot.points(label)
        check((low < values).all() and (values < high).all() and len(x) == 4, label, "bars")
        if label == "best":  # its scales follow from all elements
            check(("", label, "theory") not in plot.series, "a line of best")
            continue
        ends = plot.points(label, "theory")[:2]  # of a short line around each point
        check(numpy.allclose(ends[0].reshape(4, 2).mean(axis=1), x, atol=1e-6), label, ends[0])
        check_near(label, numpy.repeat(values, 2) - ends[1], limit)
    unrounded = seeds_of(rows, format="mxfp8", scale_rule="amax").mean()
    check(abs(y["floor"][0] - y[labels[-1]][0] -
              (seeds_of(rows, format="mxfp8", scale_rule="floor").mean() - unrounded)) < 1e-6,
          "differences")
    check(abs(y["floor"][0] + 1.756) < limit and abs(y["rceil"][0] + 0.880) < limit, "MXFP8", y)
    most = numpy.max([y[label] for label in labels[:3]], axis=0)
    check((y["best"] > most - 0.001).all() and (y["best"] < most + 0.1).all(), "best", y)


def block_sizes():
    plot, _, rows = draw("F6", "F06_block_size",
                         ["--m", "8", "--seeds", "1:2:1", "--layouts",
                          "group:8,group:32,group:1024,group:16384"])
    n = 2 * 8 * 16384
    for panel in ("E4M3", "E2M1", "INT8"):
        for label in ("FP32", "E4M3 × FP32", "E8M0 (rceil)"):
            x, off = plot.off_line(label, panel)
            check(list(x) == [8, 32, 1024, 16384], panel, label, x)
            # Two-level scales follow the tensor's maximum, which differs from seed to seed; large
            # blocks are few, and INT8's noise follows their maxima: 16 of them, 10 % each.
            check_near((panel, label), off, five_errors(n) + (0.1 if "×" in label else 0) +
                       (0.6 if panel == "INT8" else 0) * (x > 1000))
    values = seeds_of(rows, format="int8", layout="group:32", scale_rule="rceil")
    got = plot.points("E8M0 (rceil)", panel="INT8")[1][1]
    check(math.isclose(got, values.mean(), rel_tol=1e-8), "INT8 in blocks of 32", got, values)
    lost = plot.points("FP32", panel="INT8")[1] - plot.points("E4M3 × FP32", panel="INT8")[1]
    check(9 < lost[0] < 12 and abs(lost[-1]) < 0.3, "INT8 with E4M3 scales loses", lost)
    flat = plot.points("E8M0 (rceil)", panel="E4M3")[1]
    check(flat.max() - flat.min() < 0.2, "E4M3 with power-of-two scales", flat)


def crest_factors():
    plot, report, rows = draw(
        "F7", "F07_crest_factor", ["--m", "16", "--seeds", "1:2:1"],
        ["--formats", "mxfp8,mxint8", "--rules", "rceil,floor", "--data", "crest:2,crest:3:16",
         "--m", "2", "--k", "128", "--backends", "cpu"])
    panels = {"MXFP8, MXINT8: 7.55": 7.55, "MXFP6, MXINT6: 1.96": 1.96,
              "MXFP4, MXINT4: 2.04": 2.04, "NVFP4, NVINT4: 2.39": 2.39}
    check(sorted({p for p, _, _ in plot.series}) == sorted(panels), "panels", list(plot.series))
    # How far the closed forms are off: 0.35 dB for ample range, more where values underflow; the
    # largest integer of INT4 is 7, not 8 (1.16 dB); with E4M3 scales the scale's own rounding.
    limits = {"MXFP8": (-0.5, 0), "MXINT8": (-0.3, 0.3), "MXFP6": (-1.2, 0.2),
              "MXINT6": (-0.6, 0.3), "MXFP4": (-1.2, 0.3), "MXINT4": (-1.9, 0.2),
              "NVFP4": (-2.5, 1.5), "NVINT4": (-2.5, 0.5)}
    for panel, kappa in panels.items():
        check(abs(plot.points("closed forms cross", "bound", panel)[0] - kappa).max() < 0.006,
              panel, "crossover")
        for label in panel.split(":")[0].split(", "):
            x, y, low, high = plot.points(label, panel=panel)
            line_x, line_y, _, _ = plot.points(label, "theory", panel)
            off = (y - numpy.interp(numpy.log(x), numpy.log(line_x), line_y))[x <= line_x[-1]]
            least, most = limits[label]
            check((off > least).all() and (off < most).all(), label, "off its form", off)
            check((low < y).all() and (y < high).all() and len(x) == (7 if "NV" in label else 9),
                  label, "points", x)
    # The crest factor of crest:5 is 5; of crest:1.5 more, since others are clipped to it.
    x, y, _, _ = plot.points("MXINT8", panel="MXFP8, MXINT8: 7.55")
    check(abs(x[-1] - 5) < 0.01 and 1.5 < x[0] < 1.8, "crest factors", x)
    noise = [10 ** (-seeds_of(rows, format="mxint8", data="crest:5:32" + s).mean() / 10)
             for s in ("", ":sigma=1.189207", ":sigma=1.414214", ":sigma=1.681793")]
    check(math.isclose(y[-1], -10 * math.log10(numpy.mean(noise)), rel_tol=1e-6), "mean noise", y,
          noise)
    first = plot.points("MXINT8", "theory", "MXFP8, MXINT8: 7.55")
    check(first[0][0] == 1 and abs(first[1][0] - 49.4182) < 1e-3, "closed form at 1", first[1][0])
    check("four places" in report, "note of F7")


def narrow_data():
    plot, _, _ = draw("F8", "F08_narrow_data", ["--m", "32", "--seeds", "1:2:1"])
    y = {}
    for size in (8, 16, 32):
        label = f"blocks of {size}"
        x, off = plot.off_line(label)
        check(len(x) == 25, label, "misses places", x)
        # Where scales are lost, a tenth of the blocks makes the signal.
        check_near(label, off, 0.35)
        check_near(label, off[x > 0.05], five_errors(2 * 32 * 4096))
        y[size] = plot.points(label)[1]
        twin = plot.points(label + ", tensor scale")[1]
        check(len(twin) == 4 and twin.max() - twin.min() < 0.05, label, "twin is not flat", twin)
        check_near(label, y[size][-1] - twin[-1], 0.1)
        lines = plot.points(label + ", tensor scale", "theory")[1]
        check_near(label, twin - lines.mean(), 0.2)
        check(len(lines) == 2 and abs(lines[0] - lines[1]) < 1e-4, label, "line is not flat", lines)
    x = plot.points("blocks of 8")[0]
    narrow, wide = (x > 0.003) & (x < 0.016), x > 0.025
    check((y[8][narrow] < y[16][narrow]).all() and (y[16][narrow] < y[32][narrow]).all(), "narrow")
    check((y[8][wide] > y[16][wide]).all() and (y[16][wide] > y[32][wide]).all(), "wide")


def rows_that_are_missing():
    missing = {"F3": "no rows of E5M2", "F14": "no rows of E5M2", "F4": "no rows of mxfp6_e2m3",
               "F5": "every rule of every format", "F6": "no rows of E4M3 × FP32",
               "F7": "no rows of MXINT8", "F8": "no rows of blocks of 16"}
    with Folder(["--ops", "error", "--m", "4", "--k", "128", "--data",
                 "normal,crest:2,normal:sigma=0.01", "--formats", "mxfp8,e4m3,e2m1", "--layouts",
                 "default,per_tensor,group:8", "--rules", "fixed:1,amax,rceil,amax_ue4m3"]) as all_:
        one_thread(all_)
        for figure, words in missing.items():
            done = run_figures(all_, figure, all_.file)
            check(done.returncode == 4 and words in done.stdout, figure, done.returncode,
                  done.stdout, done.stderr)
            plan = "F3.plan" if figure == "F14" else figure + ".plan"
            check("run_sweep --plan " in done.stdout and plan in done.stdout, figure, done.stdout)
            check(not list((all_.path / "figures").glob("F*")), figure, "left files behind")


against_scale()
shares()
against_bits()
rules()
block_sizes()
crest_factors()
narrow_data()
rows_that_are_missing()
