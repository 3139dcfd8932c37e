// Constants of the formats, exact: Micikevicius et al. (arXiv 2209.05433), Table 1, and OCP
// Microscaling Formats v1.0, chapter 5. Written out here as the documents print them.
#include <published_work.h>

#include <qg_codec.h>

#include <math.h>
#include <stdio.h>

typedef struct constants {
    qg_format format;
    int bias;
    double largest, least_normal, largest_subnormal, least_subnormal;
    int nan_codes, inf_codes; // both signs
} constants;

// Table 1: S.1111.111 alone is NaN in E4M3, whose all-ones exponent is otherwise numbers.
static const constants OFP8[] = {
    {QG_FORMAT_E4M3, 7,  448,   0x1p-6,  0x1.cp-7,  0x1p-9,  2, 0},
    {QG_FORMAT_E5M2, 15, 57344, 0x1p-14, 0x1.8p-15, 0x1p-16, 6, 2}
};

static const constants MX[] = {
    {QG_FORMAT_E3M2,   3,   28,       0.25, 0.1875, 0.0625, 0, 0},
    {QG_FORMAT_E2M3,   1,   7.5,      1,    0.875,  0.125,  0, 0},
    {QG_FORMAT_E2M1,   1,   6,        1,    0.5,    0.5,    0, 0},
    {QG_FORMAT_MXINT8, 6,   1.984375, NAN,  NAN,    NAN,    0, 0}, // implicit scale 2^-6
    {QG_FORMAT_E8M0,   127, 0x1p127,  NAN,  NAN,    NAN,    1, 0}
};

static void check(bool equal, int *agree, int *all) {
    *agree += equal;
    ++*all;
}

static void count_specials(const qg_format_info *info, int *nan_codes, int *inf_codes) {
    *nan_codes = *inf_codes = 0;
    for (uint64_t code = 0; code < 1ull << info->bits; code++) {
        double value = qg_decode(info, code);
        *nan_codes += isnan(value) != 0;
        *inf_codes += isinf(value) != 0; // -1 of -Inf
    }
}

static void check_format(const constants *c, int *agree, int *all) {
    qg_format_info info = qg_format_describe(c->format);
    int nan_codes, inf_codes;
    check(info.bias == c->bias, agree, all);
    check(qg_format_max(&info) == c->largest, agree, all);
    if (isfinite(c->least_normal)) {
        check(qg_format_min_normal(&info) == c->least_normal, agree, all);
        check(qg_decode_magnitude(&info, (1ull << info.mbits) - 1) == c->largest_subnormal, agree,
              all);
        check(qg_format_min_positive(&info) == c->least_subnormal, agree, all);
    }
    count_specials(&info, &nan_codes, &inf_codes);
    check(nan_codes == c->nan_codes, agree, all);
    check(inf_codes == c->inf_codes, agree, all);
}

qg_status published_constants(published_work *work, int which, published_value *out) {
    const constants *rows = which == CONSTANTS_OFP8 ? OFP8 : MX;
    size_t count =
        which == CONSTANTS_OFP8 ? sizeof OFP8 / sizeof OFP8[0] : sizeof MX / sizeof MX[0];
    int agree = 0, all = 0;
    (void)work;
    for (size_t i = 0; i < count; i++)
        check_format(&rows[i], &agree, &all);
    out->known = true;
    out->value = all - agree;
    snprintf(out->ours, sizeof out->ours, "%d of %d equal", agree, all);
    return QG_OK;
}
