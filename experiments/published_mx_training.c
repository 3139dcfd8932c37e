// Three results on training with MX formats: what the floor rule saturates ("Recipes for
// Pre-training LLMs with MXFP8", arXiv 2506.08027), what a second candidate scale gains ("Four Over
// Six", arXiv 2512.02010), and stochastic rounding ("Training LLMs with MXFP4", arXiv 2502.20586).
#include <published_work.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// -------------------------------------------------------------------------------------- saturation

enum { BLOCK = 32 };

typedef struct saturated {
    int64_t blocks, elements;
    double noise, all_noise;
} saturated;

// Elements beyond the largest value of their block, found from data and scale bytes alone.
static saturated count_saturated(const published_sample *s, double largest) {
    saturated sum = {0};
    for (int64_t b = 0; b < s->m * s->k / BLOCK; b++) {
        double reach = largest * ldexp(1, s->scales[b] - 127);
        int64_t here = 0;
        for (int64_t i = b * BLOCK; i < (b + 1) * BLOCK; i++) {
            double e = (double)s->q[i] - s->x[i];
            sum.all_noise += e * e;
            if (fabs(s->x[i]) <= reach)
                continue;
            sum.noise += e * e;
            here++;
        }
        sum.elements += here;
        sum.blocks += here > 0;
    }
    return sum;
}

// The share of blocks that saturate, in per cent.
qg_status published_saturation(published_work *work, int which, published_value *out) {
    published_sample s;
    qg_recipe recipe;
    (void)work;
    qg_status status = published_recipe(
        "mxfp8", NULL, which == SATURATION_FLOOR ? "floor" : "rceil", NULL, &recipe);
    if (status == QG_OK)
        status = published_sample_create(256, 1024, &s);
    if (status != QG_OK)
        return status;
    status = published_sample_draw(&s, "normal", 1);
    if (status == QG_OK)
        status = published_sample_quantize(&s, &recipe, 0);
    if (status == QG_OK) {
        saturated found = count_saturated(&s, 448);
        double blocks = (double)(s.m * s.k / BLOCK), p = (double)found.blocks / blocks;
        out->known = true;
        out->value = 100 * p;
        out->error = 100 * sqrt(p * (1 - p) / blocks);
        snprintf(out->ours, sizeof out->ours, "%.1f %% (%.2f %% of elements, %.0f %% of noise)",
                 100 * p, 100 * (double)found.elements / (double)(s.m * s.k),
                 100 * found.noise / found.all_noise);
    }
    published_sample_free(&s);
    return status;
}

// ----------------------------------------------------------------------------------- Four Over Six

// How many dB 4/6 gains, on the same samples.
qg_status published_four_over_six(published_work *work, int which, published_value *out) {
    enum { SEEDS = 8 };
    published_sample s;
    qg_recipe six, four;
    double gain[SEEDS];
    (void)work, (void)which;
    qg_status status = published_recipe("nvfp4", NULL, NULL, NULL, &six);
    if (status == QG_OK)
        status = published_recipe("nvfp4_4over6", NULL, NULL, NULL, &four);
    if (status == QG_OK)
        status = published_sample_create(64, 1024, &s);
    if (status != QG_OK)
        return status;
    for (int i = 0; i < SEEDS && status == QG_OK; i++) {
        status = published_sample_draw(&s, "normal", (uint64_t)i + 1);
        if (status == QG_OK)
            status = published_sample_quantize(&s, &six, 0);
        gain[i] = -published_sample_qsnr(&s);
        if (status == QG_OK)
            status = published_sample_quantize(&s, &four, 0);
        gain[i] += published_sample_qsnr(&s);
    }
    published_sample_free(&s);
    if (status != QG_OK)
        return status;
    out->known = true;
    published_mean(SEEDS, gain, &out->value, &out->error);
    return QG_OK;
}

// ----------------------------------------------------------------------------- stochastic rounding

enum { REPEATS = 64, ROWS = 16, COLUMNS = 1024, ELEMENTS = ROWS * COLUMNS };

// q - x of an element, summed over the repeats, and the variance of one: (up - x)(x - down) between
// its neighbours.
typedef struct repeated {
    double error[ELEMENTS], variance[ELEMENTS];
    double noise; // of all repeats
} repeated;

// The neighbours of a magnitude among (count) ascending values; equal where it is one of them.
static double variance_of(const qg_grid *grid, double x, double scale) {
    int64_t i = 0;
    while (i + 1 < grid->count && grid->value[i + 1] * scale <= x)
        i++;
    if (i + 1 == grid->count)
        return 0;
    return (grid->value[i + 1] * scale - x) * (x - grid->value[i] * scale);
}

static qg_status repeat(published_sample *s, const qg_recipe *recipe, repeated *r) {
    double room[256];
    qg_grid grid;
    qg_status status = published_grid("e2m1", room, &grid);
    *r = (repeated){.noise = 0};
    for (uint64_t seed = 1; seed <= REPEATS && status == QG_OK; seed++) {
        status = published_sample_quantize(s, recipe, seed);
        if (status != QG_OK)
            break;
        r->noise += s->sums.ee.high + s->sums.ee.low;
        for (int i = 0; i < ELEMENTS; i++)
            r->error[i] += (double)s->q[i] - s->x[i];
    }
    for (int i = 0; i < ELEMENTS && status == QG_OK; i++)
        r->variance[i] = variance_of(&grid, fabs(s->x[i]), ldexp(1, s->scales[i / BLOCK] - 127));
    return status;
}

// The mean error towards larger magnitudes, in its standard errors.
static void judge_bias(const published_sample *s, const repeated *r, published_value *out) {
    double sum = 0, variance = 0, size = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        sum += s->x[i] < 0 ? -r->error[i] : r->error[i];
        variance += REPEATS * r->variance[i];
        size += REPEATS * fabs(s->x[i]);
    }
    out->value = sum / sqrt(variance);
    snprintf(out->ours, sizeof out->ours, "%+.1e of |x|: %+.2f standard errors", sum / size,
             out->value);
}

// The mean square of the elements' own errors in their standard errors: 1 if all are unbiased.
static void judge_elements(const repeated *r, published_value *out) {
    double sum = 0, squares = 0;
    int count = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        if (r->variance[i] <= 0)
            continue;
        double z = r->error[i] * r->error[i] / (REPEATS * r->variance[i]);
        sum += z;
        squares += z * z;
        count++;
    }
    out->value = sum / count;
    out->error = sqrt((squares / count - out->value * out->value) / count);
    snprintf(out->ours, sizeof out->ours, "%.3f +- %.3f over %d elements", out->value, out->error,
             count);
}

static qg_status judge_noise(published_sample *s, const repeated *r, published_value *out) {
    qg_recipe nearest;
    qg_status status = published_recipe("mxfp4", NULL, "rceil", "rne", &nearest);
    if (status == QG_OK)
        status = published_sample_quantize(s, &nearest, 0);
    if (status == QG_OK)
        out->value = r->noise / REPEATS / (s->sums.ee.high + s->sums.ee.low);
    return status;
}

static qg_status judge_all(published_sample *s, published_work *work) {
    qg_recipe recipe;
    repeated *r = malloc(sizeof *r);
    if (!r)
        return qg_fail(QG_ERROR_MEMORY, "no memory for repeated roundings");
    qg_status status = published_recipe("mxfp4", NULL, "rceil", "stochastic", &recipe);
    if (status == QG_OK)
        status = published_sample_draw(s, "normal", 1);
    if (status == QG_OK)
        status = repeat(s, &recipe, r);
    if (status == QG_OK) {
        judge_bias(s, r, &work->stochastic[STOCHASTIC_BIAS]);
        judge_elements(r, &work->stochastic[STOCHASTIC_ELEMENTS]);
        status = judge_noise(s, r, &work->stochastic[STOCHASTIC_NOISE]);
    }
    free(r);
    return status;
}

qg_status published_stochastic(published_work *work, int which, published_value *out) {
    published_sample s;
    qg_status status = QG_OK;
    if (!work->has_stochastic) {
        status = published_sample_create(ROWS, COLUMNS, &s);
        if (status != QG_OK)
            return status;
        status = judge_all(&s, work);
        published_sample_free(&s);
        work->has_stochastic = status == QG_OK;
    }
    *out = work->stochastic[which];
    out->known = status == QG_OK;
    return status;
}
