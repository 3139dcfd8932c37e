// FP8 Quantization: The Power of the Exponent (Kuzmin et al., arXiv 2208.09225): the best range of
// five 8-bit formats on three distributions.
//
// Set-up of the authors' compute_quant_error.py: every code of the floats is finite, their bias is
// any real number (maxval is the largest value); INT8 has steps of maxval/127 from -128 to 127;
// maxval is the best of 1000 equal steps up to 10 (max |x| + 1/2), by the mean squared error of
// 5,000,000 samples. Samples are sorted once, with running sums of x and x^2: the error of a cell
// of the grid then takes one binary search.
#include <published_work.h>

#include <qg_bits.h>
#include <qg_codec.h>
#include <qg_data.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CANDIDATES = 1000, VALUES = 256, COLUMNS = 1000 };

typedef struct sorted {
    int64_t count;
    float *x;              // ascending
    double *sum, *squares; // (count + 1) of the first i values
} sorted;

static const struct law {
    const char *name;
    double clip;
} LAWS[KUZMIN_LAWS] = {
    {"uniform:1",   1  },
    {"normal",      10 },
    {"student_t:8", 100}
};

// ----------------------------------------------------------------------------------------- sorting

// Keys in the order of the values, and back.
static uint32_t key_of(float x) {
    uint32_t bits = qg_bits_of_float(x);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static float value_of(uint32_t key) {
    return qg_float_of_bits(key >> 31 ? key & 0x7fffffffu : ~key);
}

// One pass of a radix sort: by 11 bits from `shift`.
static void sort_pass(int64_t count, const uint32_t *from, uint32_t *to, int shift) {
    int64_t start[2048] = {0}, next = 0;
    for (int64_t i = 0; i < count; i++)
        start[from[i] >> shift & 2047]++;
    for (int i = 0; i < 2048; i++) {
        int64_t here = start[i];
        start[i] = next;
        next += here;
    }
    for (int64_t i = 0; i < count; i++)
        to[start[from[i] >> shift & 2047]++] = from[i];
}

// x is replaced by its sorted values. QG_ERROR_MEMORY.
static qg_status sort_values(int64_t count, float *x) {
    uint32_t *keys = calloc((size_t)count, sizeof *keys);
    uint32_t *other = calloc((size_t)count, sizeof *other);
    if (!keys || !other) {
        free(keys);
        free(other);
        return qg_fail(QG_ERROR_MEMORY, "no memory to sort %lld samples", (long long)count);
    }
    for (int64_t i = 0; i < count; i++)
        keys[i] = key_of(x[i]);
    sort_pass(count, keys, other, 0);
    sort_pass(count, other, keys, 11);
    sort_pass(count, keys, other, 22);
    for (int64_t i = 0; i < count; i++)
        x[i] = value_of(other[i]);
    free(keys);
    free(other);
    return QG_OK;
}

static void free_sorted(sorted *s) {
    free(s->x);
    free(s->sum);
    free(s->squares);
}

static qg_status draw_sorted(const struct law *law, int64_t rows, sorted *s) {
    qg_law *parsed;
    size_t count = (size_t)rows * COLUMNS;
    *s = (sorted){.count = rows * COLUMNS};
    qg_status status = qg_law_parse(law->name, &parsed);
    if (status != QG_OK)
        return status;
    s->x = malloc(count * sizeof *s->x);
    s->sum = malloc((count + 1) * sizeof *s->sum);
    s->squares = malloc((count + 1) * sizeof *s->squares);
    if (!s->x || !s->sum || !s->squares)
        status = qg_fail(QG_ERROR_MEMORY, "no memory for %zu samples", count);
    if (status == QG_OK) {
        qg_law_generate(parsed, 1, 0, COLUMNS, 0, rows, s->x);
        status = sort_values(s->count, s->x);
    }
    qg_law_free(parsed);
    if (status != QG_OK)
        return status;
    s->sum[0] = s->squares[0] = 0;
    for (int64_t i = 0; i < s->count; i++) {
        double x = fmin(fmax(s->x[i], -law->clip), law->clip);
        s->x[i] = (float)x;
        s->sum[i + 1] = s->sum[i] + x;
        s->squares[i + 1] = s->squares[i] + x * x;
    }
    return QG_OK;
}

// ------------------------------------------------------------------------------------------- error

// How many of x[from ...] are below `edge`, counted from 0.
static int64_t below(const sorted *s, int64_t from, double edge) {
    int64_t low = from, high = s->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->x[middle] < edge)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Mean squared error of rounding to the nearest of (count) ascending values times `scale`.
static double mean_error(const sorted *s, const double *grid, int count, double scale) {
    double total = 0;
    int64_t from = 0;
    for (int i = 0; i < count && from < s->count; i++) {
        int64_t to =
            i + 1 < count ? below(s, from, 0.5 * (grid[i] + grid[i + 1]) * scale) : s->count;
        double v = grid[i] * scale, sum = s->sum[to] - s->sum[from];
        total += s->squares[to] - s->squares[from] - 2 * v * sum + v * v * (double)(to - from);
        from = to;
    }
    return total / (double)s->count;
}

// The values of a format whose largest is 1; exponent bits 0: INT8.
static int grid_of(int exponent_bits, double grid[VALUES]) {
    int count = 0;
    if (exponent_bits == 0) {
        for (int i = -128; i <= 127; i++)
            grid[count++] = i / 127.0;
        return count;
    }
    qg_format_info info =
        qg_format_describe(qg_format_minifloat(exponent_bits, 7 - exponent_bits, 1));
    double largest = qg_format_max(&info);
    for (int code = (int)info.max_code; code > 0; code--)
        grid[count++] = -qg_decode_magnitude(&info, (uint64_t)code) / largest;
    for (int code = 0; code <= (int)info.max_code; code++)
        grid[count++] = qg_decode_magnitude(&info, (uint64_t)code) / largest;
    return count;
}

static published_optimum best_range(const sorted *s, int exponent_bits) {
    double grid[VALUES];
    int count = grid_of(exponent_bits, grid);
    double extent = fmax(fabs(s->x[0]), fabs(s->x[s->count - 1])) + 0.5, least = INFINITY;
    published_optimum best = {0, 0};
    for (int i = 1; i <= CANDIDATES; i++) {
        double maxval = 10 * extent * i / CANDIDATES;
        double error = mean_error(s, grid, count, maxval);
        if (error < least) {
            least = error;
            best = (published_optimum){-10 * log10(error), maxval};
        }
    }
    return best;
}

qg_status published_kuzmin_search(int law, int64_t samples, published_optimum out[KUZMIN_FORMATS]) {
    static const int EXPONENT_BITS[KUZMIN_FORMATS] = {0, 2, 3, 4, 5};
    sorted s;
    qg_status status = draw_sorted(&LAWS[law], samples / COLUMNS, &s);
    for (int i = 0; i < KUZMIN_FORMATS && status == QG_OK; i++)
        out[i] = best_range(&s, EXPONENT_BITS[i]);
    free_sorted(&s);
    return status;
}

// ---------------------------------------------------------------------------------------- rankings

// By how much format `first` is ahead of the best of the others.
static double lead(const published_optimum *optima, int first) {
    double best = -INFINITY;
    for (int i = 0; i < KUZMIN_FORMATS; i++)
        if (i != first)
            best = fmax(best, optima[i].sqnr_db);
    return optima[first].sqnr_db - best;
}

qg_status published_kuzmin(published_work *work, int which, published_value *out) {
    int law = which == KUZMIN_STUDENT_INT8 ? KUZMIN_STUDENT : which;
    const published_optimum *o = work->optima[law];
    if (!work->has_optima[law]) {
        qg_status status = published_kuzmin_search(law, work->samples, work->optima[law]);
        if (status != QG_OK)
            return status;
        work->has_optima[law] = true;
    }
    out->known = true;
    if (which == KUZMIN_STUDENT_INT8) {
        out->value = o[2].sqnr_db - o[0].sqnr_db;
        snprintf(out->ours, sizeof out->ours, "INT8 %.2f, E3M4 %.2f dB", o[0].sqnr_db,
                 o[2].sqnr_db);
        return QG_OK;
    }
    out->value = lead(o, which == KUZMIN_UNIFORM ? 0 : 1);
    snprintf(out->ours, sizeof out->ours, "%.2f %.2f %.2f %.2f %.2f dB", o[0].sqnr_db, o[1].sqnr_db,
             o[2].sqnr_db, o[3].sqnr_db, o[4].sqnr_db);
    snprintf(out->remark, sizeof out->remark, "maxval %.3g %.3g %.3g %.3g %.3g", o[0].maxval,
             o[1].maxval, o[2].maxval, o[3].maxval, o[4].maxval);
    return QG_OK;
}
