// Published results beside ours: the table and the verdicts. See published.h.
//
// A row judges one value: reproduced if it lies in [low, high]. Where a number was published, the
// interval is its tolerance and gains two standard errors of ours on either side; where only a
// claim was, the value must lie within by as much. To add a result: a row here, its computation in
// published_<paper>.c, a plan in experiments/plans if it needs rows, and its test.
#include <published.h>

#include <published_work.h>
#include <qg_data_dir.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 5000000 };

typedef struct published_row {
    const char *paper, *item, *theirs;
    int decimals; // of ours and the difference
    const char *unit;
    double published;   // NaN: a claim without a number
    double low, high;   // of the value
    const char *reason; // of the interval
    const char *plan;   // measures the rows it needs; NULL: computed in place
    published_compute compute;
    int which;
} published_row;

#define INT_FP   "INT v.s. FP (arXiv 2510.25602)"
#define SPAN     "half a printed digit and the span that holds the median with 93 %"
#define FINER    "Is Finer Better? (arXiv 2601.19026)"
#define KUZMIN   "Kuzmin et al. (arXiv 2208.09225)"
#define ROUHANI  "Rouhani et al. (arXiv 2302.08007)"
#define MXFP8    "Recipes for MXFP8 (arXiv 2506.08027)"
#define FOUR_SIX "Four Over Six (arXiv 2512.02010)"
#define MXFP4    "Training with MXFP4 (arXiv 2502.20586)"
#define DEEPSEEK "DeepSeek-V3 (arXiv 2412.19437)"
#define OFP8     "Micikevicius et al. (arXiv 2209.05433)"
#define OCP_MX   "OCP MX v1.0"

// clang-format off
static const published_row ROWS[] = {
    {INT_FP, "crossover crest factor, MXINT8 and MXFP8",
     "7.55", 3, "", 7.55, 7.545, 7.555,
     "half a printed digit; closed forms, rho 1.5",
     NULL, published_crossover, CROSSOVER_MX8},
    {INT_FP, "crossover crest factor, MXINT6 and MXFP6 (E2M3)",
     "1.96", 3, "", 1.96, 1.955, 1.965,
     "half a printed digit; closed forms, rho 1.5",
     NULL, published_crossover, CROSSOVER_MX6},
    {INT_FP, "crossover crest factor, MXINT4 and MXFP4",
     "2.04", 3, "", 2.04, 2.035, 2.045,
     "half a printed digit; closed forms, rho 1.5",
     NULL, published_crossover, CROSSOVER_MX4},
    {INT_FP, "crossover crest factor, NVINT4 and NVFP4, rho 1.05 of their script",
     "2.39", 3, "", 2.39, 2.385, 2.395,
     "half a printed digit; the text's forms lack this rho",
     NULL, published_crossover, CROSSOVER_NV4},
    {INT_FP, "crossover crest factor, NVINT4 and NVFP4, rho 1 of their text",
     "2.39", 3, "", 2.39, 2.385, 2.395,
     "half a printed digit; the printed 2.39 is that of the script's rho 1.05, not of the text's "
     "forms",
     NULL, published_crossover, CROSSOVER_NV4_TEXT},
    {INT_FP, "Table 11, BF16: share of codes that reach 128",
     "16.82 %", 3, " %", 16.82, 16.805, 16.835,
     "half a printed digit and 0.01, one standard error of 2^24 samples; ours is exact",
     NULL, published_reaches_128, REACHES_BF16},
    {INT_FP, "Table 11, FP16: share of codes that reach 128",
     "0.02 %", 3, " %", 0.02, 0.015, 0.025,
     "half a printed digit; beyond 128 counts (scales that become 0)",
     NULL, published_reaches_128, REACHES_FP16},
    {INT_FP, "Table 11, FP32: share of codes that reach 128",
     "0 %", 3, " %", 0, 0, 0,
     "exact: over every mantissa",
     NULL, published_reaches_128, REACHES_FP32},
    {INT_FP, "average QSNR of MXFP8; ours on Gaussian data",
     "31.50 dB", 2, " dB", 31.50, 31.44, 31.56,
     "0.06 dB: half a printed digit and the spread over an octave of the scale",
     NULL, published_gaussian_qsnr, AVERAGE_MXFP8},
    {INT_FP, "average QSNR of NVFP4; ours on Gaussian data",
     "20.60 dB", 2, " dB", 20.60, 20.37, 20.83,
     "0.23 dB: half a printed digit and what Gaussian and Laplace differ by",
     NULL, published_gaussian_qsnr, AVERAGE_NVFP4},
    {INT_FP, "average QSNR of MXINT8; ours on Gaussian data",
     "40.35 dB", 2, " dB", 40.35, 40.12, 40.58,
     "0.23 dB, as NVFP4; integers follow the crest factor: their tensors lie between Gaussian and "
     "Laplace",
     NULL, published_gaussian_qsnr, AVERAGE_MXINT8},
    {INT_FP, "average QSNR of NVINT4; ours on Gaussian data",
     "20.55 dB", 2, " dB", 20.55, 20.32, 20.78,
     "0.23 dB, as NVFP4; integers follow the crest factor: their tensors lie between Gaussian and "
     "Laplace",
     NULL, published_gaussian_qsnr, AVERAGE_NVINT4},
    {INT_FP, "average QSNR of MXFP8; ours over real tensors",
     "31.50 dB", 2, " dB", 31.50, 31.495, 31.505,
     SPAN,
     "paper_int_fp.plan", published_tensor_qsnr, AVERAGE_MXFP8},
    {INT_FP, "average QSNR of MXINT8; ours over real tensors",
     "40.35 dB", 2, " dB", 40.35, 40.345, 40.355,
     SPAN,
     "paper_int_fp.plan", published_tensor_qsnr, AVERAGE_MXINT8},
    {INT_FP, "average QSNR of NVFP4; ours over real tensors",
     "20.60 dB", 2, " dB", 20.60, 20.595, 20.605,
     SPAN,
     "paper_int_fp.plan", published_tensor_qsnr, AVERAGE_NVFP4},
    {INT_FP, "average QSNR of NVINT4; ours over real tensors",
     "20.55 dB", 2, " dB", 20.55, 20.545, 20.555,
     SPAN,
     "paper_int_fp.plan", published_tensor_qsnr, AVERAGE_NVINT4},

    {FINER, "sigma below which blocks of 8 are worse than of 16, by theory",
     "about 0.02", 4, "", 0.02, 0.015, 0.025,
     "half the printed digit",
     NULL, published_inversion_theory, 8},
    {FINER, "sigma below which blocks of 8 are worse than of 16, measured",
     "about 0.02", 4, "", 0.02, 0.015, 0.025,
     "half the printed digit",
     "paper_finer.plan", published_inversion_rows, 8},

    {KUZMIN, "uniform: INT8, then E2M5, E3M4, E4M3, E5M2",
     "INT8 first", 2, " dB", NAN, 0.5, INFINITY,
     "ahead by 0.5 dB; 5,000,000 samples of a heavy tail leave 0.1 dB open",
     NULL, published_kuzmin, KUZMIN_UNIFORM},
    {KUZMIN, "Gaussian: INT8, then E2M5, E3M4, E4M3, E5M2",
     "E2M5 first", 2, " dB", NAN, 0.5, INFINITY,
     "ahead by 0.5 dB; 5,000,000 samples of a heavy tail leave 0.1 dB open",
     NULL, published_kuzmin, KUZMIN_NORMAL},
    {KUZMIN, "Student's t(8): INT8, then E2M5, E3M4, E4M3, E5M2",
     "E2M5 first", 2, " dB", NAN, 0.5, INFINITY,
     "ahead by 0.5 dB; 5,000,000 samples of a heavy tail leave 0.1 dB open",
     NULL, published_kuzmin, KUZMIN_STUDENT},
    {KUZMIN, "Student's t(8): INT8 against E3M4",
     "INT8 below", 2, " dB", NAN, 0.5, INFINITY,
     "below by 0.5 dB; 5,000,000 samples of a heavy tail leave 0.1 dB open",
     NULL, published_kuzmin, KUZMIN_STUDENT_INT8},

    {ROUHANI, "QSNR of MX9 over FP8 E4M3",
     "about 16 dB", 2, " dB", 16, 15.5, 16.5,
     "half the printed digit; unclipped E4M3 has 31.54 dB on any law: theirs has 0.9 dB less, "
     "likely by delayed scales that clip",
     NULL, published_rouhani, ROUHANI_E4M3},
    {ROUHANI, "QSNR of MX9 over MSFP16",
     "about 3.6 dB", 2, " dB", 3.6, 3.55, 3.65,
     "half the printed digit",
     NULL, published_rouhani, ROUHANI_MSFP16},
    {ROUHANI, "MX6 between FP8 E4M3 and E5M2",
     "between", 2, " dB", NAN, 0, INFINITY,
     "by more than 0",
     NULL, published_rouhani, ROUHANI_MX6},
    {ROUHANI, "lower bound on the QSNR of MX9, MX6, MX4 over nine laws",
     "holds", 2, " dB", NAN, 0, INFINITY,
     "a bound",
     NULL, published_rouhani, ROUHANI_BOUND},

    {MXFP8, "blocks that the floor rule saturates, Gaussian data",
     "saturates", 1, " %", NAN, 1, 100,
     "more than 1 % of blocks",
     NULL, published_saturation, SATURATION_FLOOR},
    {MXFP8, "blocks that rounding the scale up saturates",
     "none", 1, " %", 0, 0, 0,
     "exact",
     NULL, published_saturation, SATURATION_RCEIL},

    {FOUR_SIX, "QSNR that 4/6 gains on NVFP4, Gaussian data",
     "lowers the noise", 3, " dB", NAN, 0, INFINITY,
     "more than 0",
     NULL, published_four_over_six, 0},

    {MXFP4, "bias of stochastic rounding without clipping",
     "0", 2, "", NAN, -3, 3,
     "3 standard errors, derived from every element's neighbours",
     NULL, published_stochastic, STOCHASTIC_BIAS},
    {MXFP4, "mean square of single elements' biases in standard errors",
     "1", 3, "", 1, 0.99, 1.01,
     "0.01, for 16 random bits; 64 roundings of each",
     NULL, published_stochastic, STOCHASTIC_ELEMENTS},
    {MXFP4, "its noise over that of rounding to nearest",
     "about 2", 3, "", 2, 1.8, 2.2,
     "10 %: 2 exactly for a density that is flat in every cell",
     NULL, published_stochastic, STOCHASTIC_NOISE},

    {DEEPSEEK, "K = 4096, 14-bit sums, promotion every 128: largest relative error, positive data",
     "near 2 %, removed", 3, "", NAN, 8, INFINITY,
     "8 times less: a quarter of K/128, for the bias of truncation grows with K",
     "paper_deepseek.plan", published_accumulation, ACCUMULATION_POSITIVE},
    {DEEPSEEK,
     "K = 4096, 14-bit sums, promotion every 128: relative Frobenius error, Gaussian data",
     "near 2 %, removed", 3, "", NAN, 8, INFINITY,
     "8 times less, as above",
     "paper_deepseek.plan", published_accumulation, ACCUMULATION_NORMAL},

    {OFP8, "Table 1: constants of E4M3 and E5M2",
     "exact", 0, "", NAN, 0, 0,
     "exact",
     NULL, published_constants, CONSTANTS_OFP8},

    {OCP_MX, "constants of E3M2, E2M3, E2M1, INT8 and E8M0",
     "exact", 0, "", NAN, 0, 0,
     "exact",
     NULL, published_constants, CONSTANTS_MX},
};
// clang-format on
enum { ROW_COUNT = sizeof ROWS / sizeof ROWS[0] };

static published_row judged_by(const published_row *row, const published_value *v) {
    double width = 2 * v->error * (isnan(row->published) ? -1 : 1);
    published_row widened = *row;
    widened.low -= width;
    widened.high += width;
    return widened;
}

static void put_command(const published_row *row, qg_published_result *out) {
    char name[96], plan[4096];
    snprintf(name, sizeof name, "experiments/plans/%s", row->plan);
    if (qg_data_file(name, plan, sizeof plan) != QG_OK || strlen(plan) > 110)
        snprintf(plan, sizeof plan, "%s", name);
    snprintf(out->note, sizeof out->note, "run_sweep --plan %.110s --out %.*s.h5", plan,
             (int)strcspn(row->plan, "."), row->plan);
}

static void put_ours(const published_row *row, const published_value *v, qg_published_result *out) {
    if (v->ours[0])
        snprintf(out->ours, sizeof out->ours, "%s", v->ours);
    else if (v->error > 0)
        snprintf(out->ours, sizeof out->ours, "%.*f +- %.2g%s", row->decimals, v->value, v->error,
                 row->unit);
    else
        snprintf(out->ours, sizeof out->ours, "%.*f%s", row->decimals, v->value, row->unit);
}

static void judge(const published_row *row, const published_value *v, qg_published_result *out) {
    published_row accepted = judged_by(row, v);
    bool holds = v->value >= accepted.low && v->value <= accepted.high;
    out->verdict = holds ? QG_PUBLISHED_REPRODUCED : QG_PUBLISHED_DIFFERS;
    put_ours(row, v, out);
    if (!isnan(row->published))
        snprintf(out->difference, sizeof out->difference, "%+.*f%s", row->decimals,
                 v->value - row->published, row->unit);
    else if (!holds)
        snprintf(out->difference, sizeof out->difference, "does not hold");
    snprintf(out->note, sizeof out->note, "%s%s%s", row->reason, v->remark[0] ? "; " : "",
             v->remark);
}

static qg_status fill(const published_row *row, published_work *work, qg_published_result *out) {
    published_value value = {0};
    qg_status status = row->compute(work, row->which, &value);
    if (status != QG_OK)
        return status;
    snprintf(out->paper, sizeof out->paper, "%s", row->paper);
    snprintf(out->item, sizeof out->item, "%s", row->item);
    snprintf(out->theirs, sizeof out->theirs, "%s", row->theirs);
    if (value.known)
        judge(row, &value, out);
    else {
        out->verdict = QG_PUBLISHED_NO_DATA;
        put_command(row, out);
    }
    return QG_OK;
}

qg_status qg_published_results(const qg_figure_input *input, bool computes,
                               qg_published_result **out, int *count) {
    published_work work = {.input = input, .samples = SAMPLES};
    qg_published_result *results = calloc(ROW_COUNT, sizeof *results);
    *out = NULL;
    *count = 0;
    if (!results)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the published results");
    int filled = 0;
    for (int i = 0; i < ROW_COUNT; i++) {
        if (!ROWS[i].plan && !computes)
            continue;
        qg_status status = fill(&ROWS[i], &work, &results[filled++]);
        if (status != QG_OK) {
            free(results);
            return status;
        }
    }
    *out = results;
    *count = filled;
    return QG_OK;
}

const char *qg_published_plan(int i) {
    for (int row = 0; row < ROW_COUNT; row++) {
        bool repeats = row > 0 && ROWS[row - 1].plan && ROWS[row].plan &&
                       strcmp(ROWS[row - 1].plan, ROWS[row].plan) == 0;
        if (ROWS[row].plan && !repeats && i-- == 0)
            return ROWS[row].plan;
    }
    return NULL;
}

const char *qg_published_verdict_name(qg_published_verdict verdict) {
    static const char *const NAMES[] = {"reproduced", "differs", "no data"};
    return NAMES[verdict];
}
