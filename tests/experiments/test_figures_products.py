"""The figures of products, F9, F10, F11 and F16, drawn from small sweeps of their own plans: which
series they hold, that the measured points lie on the lines of theory and have the slopes that the
accumulators' rounding says, and what is said where rows are missing. Limits stand with reasons.

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


def run_figures(folder, figure, *files):
    return subprocess.run([MAKE_FIGURES, "--figure", figure, "--term", "svg", "--out",
                           folder.path / "figures", *files], capture_output=True, text=True,
                          env=environment())


class Plot:
    """The series of a figure's TSV: {(panel, label, mark): points}, points by column."""

    def __init__(self, path):
        self.series, self.order = {}, []
        for line in path.read_text().splitlines():
            fields = line.split("\t")
            if line.startswith("#") or len(fields) < 8:
                continue
            key = tuple(fields[:3])
            if key not in self.series:
                self.order.append(key)
            self.series.setdefault(key, []).append([float(v) for v in fields[3:7]])

    def points(self, label, mark="measured", panel=""):
        check((panel, label, mark) in self.series, "no series", panel, label, mark, self.order)
        x, y, low, high = numpy.array(self.series[panel, label, mark]).T
        check((numpy.diff(x) > 0).all(), label, "x does not ascend:", x)
        return x, y, low, high

    def slope(self, label, mark="measured", panel="", at_least=0):
        x, y, _, _ = self.points(label, mark, panel)
        kept = x >= at_least
        return numpy.polyfit(numpy.log(x[kept]), numpy.log(y[kept]), 1)[0]

    def off_line(self, label, panel="", at_least=0):
        """measured / theory - 1 at the points that the line covers."""
        x, y, _, _ = self.points(label, panel=panel)
        line_x, line_y, _, _ = self.points(label, "theory", panel)
        kept = (x >= max(at_least, line_x[0])) & (x <= line_x[-1] * 1.0001)
        check(kept.sum() >= 2, label, "has no points on its line")
        law = numpy.exp(numpy.interp(numpy.log(x[kept]), numpy.log(line_x), numpy.log(line_y)))
        return y[kept] / law - 1


def data_lines(path):
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def draw(plan, stem, narrowed, others):
    """Of `plan`, narrowed to few cases. `others` are options of a sweep whose rows no point may
    count: smaller matrices, fewer seeds, another layout, rule or second operand."""
    figure = plan.split(".")[0]
    with Folder(["--plan", str(PLANS / plan), *narrowed]) as folder, \
            Folder(["--ops", "gemm", "--backends", "emulator", *others]) as other:
        for sweep in (folder, other):
            done = sweep.run("-q")
            check(done.returncode == 0, plan, done.returncode, done.stderr)
        drawn = run_figures(folder, figure, folder.file)
        check(drawn.returncode == 0, figure, drawn.stdout, drawn.stderr)
        tsv = folder.path / "figures" / (stem + ".tsv")
        plot, alone = Plot(tsv), data_lines(tsv)
        report = (folder.path / "figures" / "report.md").read_text()
        copy = folder.path / "copy.h5"
        copy.write_bytes(folder.file.read_bytes())
        check(run_figures(folder, figure, other.file, folder.file).returncode == 0, figure)
        check(data_lines(tsv) == alone, figure, "counts rows of another plan")
        check(run_figures(folder, figure, folder.file, copy).returncode == 0, figure)
        check(data_lines(tsv) == alone, figure, "counts a case twice that two files hold")
        rows = {}
        with h5py.File(folder.file) as file:
            for name in ("cases/unit", "cases/data", "cases/k", "cases/seed", "cases/reference",
                         "sums/e", "sums/abs_x"):
                rows[name.split("/")[1]] = file[name][:]
        return plot, report, rows


def error_against_k():
    plot, report, _ = draw(
        "F9.plan", "F09_error_k", ["--k", "64:4096:*4", "--seeds", "1:2:1"],
        ["--formats", "e4m3", "--layouts", "per_row", "--units", "hopper_wgmma+promote:128", "--m",
         "128", "--n", "64", "--k", "256"])
    check("64 x 64 outputs, 2 seeds" in report and "Normal data" in report, "note of F9:", report)
    for label in ("MXFP4", "MXFP8"):
        # 2 x 4096 outputs: 2 %; rows that are shared double it.
        check((abs(plot.off_line(label)) < 0.06).all(), label, plot.off_line(label))
        check(abs(plot.slope(label)) < 0.02, label, "is not flat:", plot.slope(label))
    for label, limit in (("FP32", 0.06), ("BF16", 0.08)):
        check((abs(plot.off_line(label)) < limit).all(), label, plot.off_line(label))
        check(0.45 < plot.slope(label) < 0.55, label, "slope", plot.slope(label))
    # Truncated to 13 fraction bits: between the slopes of chance and of bias.
    check(0.5 < plot.slope("Hopper FP8", "joined") < 1, "Hopper")
    flat = plot.slope("Hopper, promoted", "joined", at_least=256)
    check(abs(flat) < 0.05, "promotion leaves a growth:", flat)
    blackwell, fp32 = plot.points("Blackwell FP8", "joined")[1], plot.points("FP32")[1]
    check((blackwell < fp32).all(), "25 bits are no better than FP32 at small K")
    for label, slope in (("1/2", 0.5), ("1", 1)):
        check(abs(plot.slope(label, "slope") - slope) < 1e-6, "reference slope", label)


def bias_against_k():
    plot, report, rows = draw(
        "F10.plan", "F10_bias_k", ["--k", "256:4096:*4", "--seeds", "1:3:1"],
        ["--formats", "e4m3", "--layouts", "per_tensor", "--units", "hopper_wgmma",
         "--data", "normal", "--m", "64", "--n", "64", "--k", "512"])
    check("3 seeds" in report, "note of F10")
    # y is |mean e| / mean |x| over all seeds: from the rows, by hand.
    for panel, data in (("mean zero", b"normal"), ("positive", b"uniform:1:abs")):
        x, y, low, high = plot.points("FP32, to nearest", panel=panel)
        for k, got in zip(x, y):
            chosen = ((rows["unit"] == b"fp32_sequential") & (rows["data"] == data) &
                      (rows["k"] == k) & (rows["reference"] == b"quantized"))
            check(chosen.sum() == 3, "rows", data, k)
            want = abs(rows["e"][chosen].sum()) / rows["abs_x"][chosen].sum()
            check(math.isclose(got, want, rel_tol=1e-8), data, k, got, want)
            # Student's t at 2 degrees of freedom, two-sided 95 %.
            half = 4.303 * rows["e"][chosen].std(ddof=1) / 3 ** 0.5 / rows["abs_x"][chosen].mean()
            bar = high[x == k][0] - got
            check(math.isclose(bar, half, rel_tol=1e-6), data, k, "bar", bar, half)
        check(((low > 0) & (low <= y) & (high > y)).all(), "bars", low, y, high)
        # Chance: 0.4247 u sqrt(k / 2) sqrt(pi / 2) of 3 x 4096 sums, 5 standard errors.
        chance = 0.4247 * 2 ** -24 * numpy.sqrt(x / 2 * math.pi / 2) / math.sqrt(3 * 4096)
        check((y < 5 * chance).all(), "rounding to nearest is biased:", y / chance)
    # First terms of binary32 have no more bits than the sum: 7 % at K = 256.
    off = plot.off_line("FP32, down", "mean zero")
    check((abs(off) < 0.09).all() and abs(off[-1]) < 0.03, "down", off)
    off = plot.off_line("FP32, toward zero", "positive")
    check((abs(off) < 0.05).all(), "toward zero", off)
    for label, panel in (("FP32, down", "mean zero"), ("FP32, toward zero", "positive")):
        check(0.97 < plot.slope(label, panel=panel) < 1.04, label, plot.slope(label, panel=panel))
    down = plot.points("FP32, down", panel="mean zero")[1]
    zero = plot.points("FP32, toward zero", panel="mean zero")[1]
    check((10 * zero < down).all(), "toward zero is biased on data of mean zero")
    check(("positive", "FP32, down", "measured") not in plot.series, "down is shown twice")
    check(plot.slope("Hopper FP8", panel="positive") > 1, "Hopper does not grow")
    check(abs(plot.slope("Hopper, promoted", panel="positive")) < 0.05, "promotion grows")


def promotion_interval():
    plot, report, _ = draw(
        "F11.plan", "F11_promotion", ["--seeds", "1:2:1"],
        ["--formats", "e4m3", "--layouts", "per_tensor", "--units",
         "hopper_wgmma,hopper_wgmma+promote:256", "--data", "normal", "--m", "64", "--n", "16",
         "--k", "2048,4096"])
    check("K = 4096" in report and "2 seeds" in report, "note of F11")
    for label, law in (("mean zero", 0.0373), ("positive", 7.6e-4)):
        x, y, _, _ = plot.points("accumulator, " + label, "joined")
        check(list(x) == [2 ** i for i in range(5, 13)], "intervals", x)
        check((numpy.diff(y) > 0).all(), label, "does not grow", y)
        own = plot.points("operands, " + label, "theory")[1]
        # E4M3 at 31.52 to 31.56 dB: sqrt(2 r) = 0.0373; positive: over sqrt(4095 (3/4)^2).
        check((abs(own / law - 1) < 0.04).all(), label, "operands", own)
    check(plot.slope("accumulator, positive", "joined", at_least=128) > 1, "positive: slope 1")
    check(0.5 < plot.slope("accumulator, mean zero", "joined") < 1, "mean zero")


def stochastic_rounding():
    plot, report, _ = draw(
        "F16.plan", "F16_stochastic", ["--k", "32:8192:*4", "--seeds", "1:3:1"],
        ["--formats", "mxfp4", "--rules", "floor,rceil", "--formats-b", "mxfp8,mxfp4", "--units",
         "exact", "--data", "normal:abs", "--m", "128", "--n", "64", "--k", "512",
         "--exclude", "scale_rule=rceil&format_b=mxfp4"])
    check("normal:abs" in report and "3 seeds" in report, "note of F16")
    for name, plateau in (("MXFP4", 0.0224), ("MXFP8", 0.0014)):
        for rounding in ("to nearest", "stochastic"):
            # 64 rows of 32 values leave 8 % at K = 32, less later.
            off = plot.off_line(f"{name}, {rounding}")
            check((abs(off) < 0.12).all() and abs(off[-1]) < 0.06, name, rounding, off)
        slope = plot.slope(f"{name}, stochastic")
        check(-0.53 < slope < -0.47, name, "stochastic: slope", slope)
        nearest, chance = (plot.points(f"{name}, {r}")[1] for r in ("to nearest", "stochastic"))
        check(nearest[0] < chance[0], name, "twice the noise does not show at K = 32")
        check(nearest[-1] > 1.5 * chance[-1], name, "the bias does not show")
        line = plot.points(f"{name}, to nearest", "theory")[1]
        check(line[-1] > plateau * 0.98 and nearest[-1] < 1.15 * plateau, name, "plateau", line[-1])


def rows_that_are_missing():
    with Folder(["--formats", "mxfp8", "--ops", "gemm", "--units", "exact", "--rules", "rceil",
                 "--data", "normal", "--m", "16", "--n", "16", "--k", "64", "--backends",
                 "emulator"]) as folder:
        check(folder.run("-q").returncode == 0, "sweep")
        for figure, words in (("F9", ("at two K", "F9.plan")),
                              ("F10", ("at two K", "F10.plan")),
                              ("F11", ("none of its rows", "F11.plan")),
                              ("F16", ("none of its rows", "F16.plan"))):
            done = run_figures(folder, figure, folder.file)
            check(done.returncode == 4, figure, done.returncode, done.stdout)
            for word in words:
                check(word in done.stdout, figure, word, done.stdout)
            check(not list((folder.path / "figures").glob("F*")), figure, "left files behind")


error_against_k()
bias_against_k()
promotion_interval()
stochastic_rounding()
rows_that_are_missing()
