// With Shared Microexponents, A Little Shifting Goes a Long Way (Rouhani et al., arXiv 2302.08007).
//
// Data after the paper's: Gaussian vectors, each of its own width, sigma = |N(0, 1)|. FP8 has one
// scale, of the largest value: nothing clips. QSNR is the ratio of sums over all vectors.
#include <published_work.h>

#include <qg_closed_forms.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEEDS = 4, VECTORS = 512, LENGTH = 128 };
enum { MX9, MSFP16, MX6, E4M3, E5M2, FORMATS };

static qg_status draw_vectors(published_sample *s, uint64_t seed) {
    published_sample sigma;
    qg_status status = published_sample_create(1, s->m, &sigma);
    if (status != QG_OK)
        return status;
    status = published_sample_draw(&sigma, "normal:abs", seed + 1000);
    if (status == QG_OK)
        status = published_sample_draw(s, "normal", seed);
    for (int64_t i = 0; i < s->m * s->k && status == QG_OK; i++)
        s->x[i] *= sigma.x[i / s->k];
    published_sample_free(&sigma);
    return status;
}

// QSNR of the formats on the same vectors, SEEDS samples of each.
static qg_status measure(double (*qsnr)[SEEDS]) {
    static const char *const NAMES[FORMATS] = {"mx9", "msfp16", "mx6", "e4m3", "e5m2"};
    published_sample s;
    qg_status status = published_sample_create(VECTORS, LENGTH, &s);
    if (status != QG_OK)
        return status;
    for (int seed = 0; seed < SEEDS && status == QG_OK; seed++) {
        status = draw_vectors(&s, (uint64_t)seed + 1);
        for (int f = 0; f < FORMATS && status == QG_OK; f++) {
            qg_recipe recipe;
            status = published_recipe(NAMES[f], NULL, NULL, NULL, &recipe);
            if (status == QG_OK)
                status = published_sample_quantize(&s, &recipe, 0);
            if (status == QG_OK)
                qsnr[f][seed] = published_sample_qsnr(&s);
        }
    }
    published_sample_free(&s);
    return status;
}

static void put_difference(const double *a, const double *b, published_value *out) {
    double difference[SEEDS];
    for (int i = 0; i < SEEDS; i++)
        difference[i] = a[i] - b[i];
    published_mean(SEEDS, difference, &out->value, &out->error);
    out->known = true;
}

// MX6's smaller distance to its neighbours.
static void place_mx6(double (*qsnr)[SEEDS], published_value *out) {
    double e4m3, mx6, e5m2, error;
    published_mean(SEEDS, qsnr[E4M3], &e4m3, &error);
    published_mean(SEEDS, qsnr[MX6], &mx6, &error);
    published_mean(SEEDS, qsnr[E5M2], &e5m2, &error);
    if (e4m3 - mx6 < mx6 - e5m2)
        put_difference(qsnr[E4M3], qsnr[MX6], out);
    else
        put_difference(qsnr[MX6], qsnr[E5M2], out);
    snprintf(out->ours, sizeof out->ours, "%.2f > %.2f > %.2f dB", e4m3, mx6, e5m2);
}

static qg_status compare_all(published_work *work) {
    double qsnr[FORMATS][SEEDS];
    qg_status status = measure(qsnr);
    if (status != QG_OK)
        return status;
    put_difference(qsnr[MX9], qsnr[E4M3], &work->rouhani[ROUHANI_E4M3]);
    put_difference(qsnr[MX9], qsnr[MSFP16], &work->rouhani[ROUHANI_MSFP16]);
    place_mx6(qsnr, &work->rouhani[ROUHANI_MX6]);
    work->has_rouhani = true;
    return QG_OK;
}

// ------------------------------------------------------------------------------------------- bound

// The least margin above the bound, over formats and laws.
static qg_status hold_bound(published_value *out) {
    static const char *const LAWS[] = {"normal",      "laplace",      "uniform",
                                       "student_t:3", "lognormal:2",  "outliers:100",
                                       "normal:abs",  "crest:3.9:16", "uniform:1:abs"};
    static const struct {
        const char *name;
        int m;
    } BOUNDED[] = {
        {"mx9", 7},
        {"mx6", 4},
        {"mx4", 2}
    };
    published_sample s;
    qg_status status = published_sample_create(16, 1024, &s);
    if (status != QG_OK)
        return status;
    out->value = INFINITY;
    for (size_t l = 0; l < sizeof LAWS / sizeof LAWS[0] && status == QG_OK; l++) {
        status = published_sample_draw(&s, LAWS[l], 1);
        for (size_t f = 0; f < sizeof BOUNDED / sizeof BOUNDED[0] && status == QG_OK; f++) {
            qg_recipe recipe;
            status = published_recipe(BOUNDED[f].name, NULL, NULL, NULL, &recipe);
            if (status == QG_OK)
                status = published_sample_quantize(&s, &recipe, 0);
            double margin = published_sample_qsnr(&s) -
                            qg_closed_shared_exponent_bound_db(BOUNDED[f].m, 1, 1024, 16, 2);
            if (status == QG_OK && margin < out->value) {
                out->value = margin;
                snprintf(out->ours, sizeof out->ours, "%+.2f dB at least (%s, %s)", margin,
                         BOUNDED[f].name, LAWS[l]);
            }
        }
    }
    published_sample_free(&s);
    out->known = status == QG_OK;
    return status;
}

qg_status published_rouhani(published_work *work, int which, published_value *out) {
    if (which == ROUHANI_BOUND)
        return hold_bound(out);
    qg_status status = work->has_rouhani ? QG_OK : compare_all(work);
    if (status == QG_OK)
        *out = work->rouhani[which];
    return status;
}
