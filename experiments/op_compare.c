// Comparisons with the emulator and with exact products. See op_compare.h.
#include <op_compare.h>

#include <qg_bits.h>
#include <qg_format.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// ------------------------------------------------------------------------------------------ bytes

// Elements of `size` bytes that differ, and the first of them.
static int64_t count_differences(int64_t count, int64_t size, const void *wanted, const void *got,
                                 int64_t *first) {
    const uint8_t *w = wanted, *g = got;
    int64_t differences = 0;
    *first = -1;
    if (memcmp(w, g, (size_t)(count * size)) == 0)
        return 0;
    for (int64_t i = 0; i < count; i++)
        if (memcmp(w + i * size, g + i * size, (size_t)size) != 0) {
            *first = differences++ ? *first : i;
        }
    return differences;
}

// Little endian, as hexadecimal digits.
static void print_element(const void *bytes, int64_t i, int64_t size, char text[17]) {
    const uint8_t *element = (const uint8_t *)bytes + i * size;
    for (int64_t b = 0; b < size; b++)
        snprintf(text + 2 * b, 3, "%02x", element[size - 1 - b]);
}

typedef struct difference {
    const char *what; // "code"
    int64_t count, of;
    int64_t row, column;
    char wanted[17], got[17];
} difference;

static void fail(const difference *d, qg_case_result *result) {
    qg_case_result_set(result, QG_CASE_FAILED,
                       "%" PRId64 " of %" PRId64 " %ss differ from the emulator's, first at row "
                       "%" PRId64 ", column %" PRId64 ": wanted %s, got %s",
                       d->count, d->of, d->what, d->row, d->column, d->wanted, d->got);
}

// Compares (count) elements in rows of `columns`; reports the first kind that differs.
static int64_t compare(const char *what, int64_t count, int64_t columns, int64_t size,
                       const void *wanted, const void *got, qg_case_result *result) {
    int64_t first;
    difference d = {.what = what, .of = count};
    d.count = count_differences(count, size, wanted, got, &first);
    if (d.count == 0 || result->status == QG_CASE_FAILED)
        return d.count;
    d.row = first / columns;
    d.column = first % columns;
    print_element(wanted, first, size, d.wanted);
    print_element(got, first, size, d.got);
    fail(&d, result);
    return d.count;
}

static bool same_bits(float a, float b) { return qg_bits_of_float(a) == qg_bits_of_float(b); }

void op_compare_quantized(const qg_case *c, const op_quantized *wanted, const op_quantized *got,
                          qg_case_result *result) {
    const qg_shape *s = &wanted->shape;
    result->status = QG_CASE_PASSED;
    result->code_mismatches = compare("code", s->codes_size / s->code_bytes, c->k, s->code_bytes,
                                      wanted->codes, got->codes, result);
    result->scale_mismatches =
        compare("scale", s->scales_size / s->scale_bytes, s->blocks.block_columns, s->scale_bytes,
                wanted->scales, got->scales, result);
    if (s->has_tensor_scale && !same_bits(wanted->tensor_scale, got->tensor_scale)) {
        result->scale_mismatches++;
        if (result->status == QG_CASE_PASSED)
            qg_case_result_set(result, QG_CASE_FAILED,
                               "the tensor scale differs from the emulator's: wanted %a, got %a",
                               (double)wanted->tensor_scale, (double)got->tensor_scale);
    }
    compare("dequantized value", c->m * c->k, c->k, sizeof(float), wanted->q, got->q, result);
}

// ------------------------------------------------------------------------------------------ bound

// What rounds to infinity begins here: half a step above the largest value.
static double overflow_from(qg_format type) {
    switch (type) {
    case QG_FORMAT_FP16: return 0x1.ffep15;
    case QG_FORMAT_BF16: return 0x1.ffp127;
    default: return 0x1.ffffffp127;
    }
}

// The reference is rounded, and so are its size and the limit: all far below a bound that begins at
// the unit roundoff of binary32.
static double limit_of(const op_product *p, int64_t i) {
    return (p->bound * (1 + 0x1p-30) + 0x1p-50) * p->size[i] + p->underflow;
}

// A sum of infinities and NaN has one result in any order.
static bool is_same_special(double out, double exact) {
    return isnan(exact) ? isnan(out) : out == exact;
}

// How far an output is beyond its limit: 0 within, its distance as a multiple of |a| |b|^T else.
static double excess(const qg_case *c, const op_product *p, int64_t i) {
    double out = (double)p->out[i], exact = p->exact[i], limit = limit_of(p, i);
    if (!isfinite(exact))
        return is_same_special(out, exact) ? 0 : INFINITY;
    if (!isfinite(p->size[i])) // partial sums may overflow
        return 0;
    if (isinf(out) && fabs(exact) + limit >= overflow_from(c->out_type) &&
        (fabs(exact) <= limit || signbit(out) == signbit(exact)))
        return 0;
    double distance = fabs(out - exact);
    if (isnan(out))
        return INFINITY;
    if (!(distance > limit)) // an infinite bound times 0 promises nothing, either
        return 0;
    return p->size[i] > 0 ? distance / p->size[i] : INFINITY;
}

void op_hold_bound(const qg_case *c, const op_product *p, qg_case_result *result) {
    double worst = 0;
    int64_t place = -1, count = 0;
    for (int64_t i = 0; i < p->count; i++) {
        double e = excess(c, p, i);
        count += e > 0;
        if (e > worst) {
            worst = e;
            place = i;
        }
    }
    result->status = QG_CASE_PASSED;
    if (count > 0)
        qg_case_result_set(result, QG_CASE_FAILED,
                           "%" PRId64 " of %" PRId64
                           " outputs exceed the bound %.3g |a| |b|, worst "
                           "at row %" PRId64 ", column %" PRId64 ": wanted %.9g, got %.9g, %.3g "
                           "|a| |b|",
                           count, p->count, p->bound, place / c->n, place % c->n, p->exact[place],
                           (double)p->out[place], worst);
}
