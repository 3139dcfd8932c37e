// A row of the unit table made ready for two operand formats, and one dot product: decodes the
// codes, cuts K into instructions, pads the last one with zeros. The arithmetic: unit_fused.c
// (NVIDIA), unit_amd.c. See qg_unit.h.
#include <unit_internal.h>

#include <qg_layout.h>

#include <math.h>

enum { MOST_K = 64, MOST_SCALES = 4 };

// --------------------------------------------------------------------------------------- the model

// The format as which a unit sees an operand: the FP8 instruction of Hopper and B200 converts to
// FP16 first, where E4M3's subnormals are normal.
static qg_format seen_format(const qg_unit_row *row, qg_format format) {
    return row->model == QG_MODEL_PAIRS ? QG_FORMAT_FP16 : format;
}

static unit_decoder decoder_of(qg_format format, qg_format seen) {
    unit_decoder d = {.info = qg_format_describe(format), .is_tf32 = format == QG_FORMAT_TF32};
    qg_format_info seen_info = qg_format_describe(seen);
    d.grid = unit_grid_of(&seen_info);
    if (d.info.bits <= 8)
        for (uint64_t code = 0; code < UNIT_TABLE_SIZE; code++) {
            // The sign bit of UE4M3 is ignored.
            uint64_t read = format == QG_FORMAT_UE4M3 ? code & 0x7f : code;
            read &= (1ull << d.info.bits) - 1;
            d.table[code] = unit_number_of(qg_decode(&d.info, read), d.grid);
        }
    return d;
}

// 1 + 8 + 13 bits at the top of a 32-bit word.
static qg_format_info describe_e8m13(void) {
    qg_format_info info = qg_format_describe(QG_FORMAT_FP32);
    info.mbits = 13;
    info.shift = 10;
    info.max_code = info.min_code = 0x7f7fffff >> 10;
    info.inf_code = 0x7f800000 >> 10;
    return info;
}

void qg_unit_model_prepare(const qg_unit_row *row, qg_format a, qg_format b, unit_model *out) {
    out->row = row;
    out->a = decoder_of(a, seen_format(row, a));
    out->b = decoder_of(b, seen_format(row, b));
    if (row->scale != QG_UNIT_NO_SCALE)
        out->scale = decoder_of((qg_format)row->scale, (qg_format)row->scale);
    out->accumulator = qg_format_describe(row->accumulator);
    out->c = unit_grid_of(&out->accumulator);
    out->result = row->rho == QG_RHO_RZ_E8M13 ? describe_e8m13() : out->accumulator;
    out->beyond = qg_double_pow2(qg_format_emax(&out->result) + 1);
    bool truncates = row->rho == QG_RHO_RZ_FP32 || row->rho == QG_RHO_RZ_E8M13;
    out->conversion = (qg_conversion){
        {truncates ? QG_ROUND_RTZ : QG_ROUND_RNE, 0},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
}

unit_step qg_unit_step_of(int model) {
    switch (model) {
    case QG_MODEL_ST: return qg_unit_step_scaled;
    case QG_MODEL_GST: return qg_unit_step_grouped;
    case QG_MODEL_PAIRS: return qg_unit_step_pairs;
    case QG_MODEL_E: return qg_unit_step_exact;
    case QG_MODEL_FTZ: return qg_unit_step_pairwise;
    case QG_MODEL_TR: return qg_unit_step_tr;
    case QG_MODEL_GTR: return qg_unit_step_gtr;
    default: return qg_unit_step_fused;
    }
}

// --------------------------------------------------------------------------------- one dot product

static qg_status check_dot(const qg_unit_row *row, const qg_unit_dot_input *in) {
    if (in->k < 1)
        return qg_fail(QG_ERROR_ARGUMENT, "a dot product needs at least one element");
    if (!qg_unit_row_takes(row, in->a_format) || !qg_unit_row_takes(row, in->b_format))
        return qg_fail(QG_ERROR_ARGUMENT, "the unit does not take these operand formats");
    if (row->scale == QG_UNIT_NO_SCALE)
        return QG_OK;
    if (!in->sa || !in->sb)
        return qg_fail(QG_ERROR_ARGUMENT, "a block-scaled unit needs scales for both operands");
    if (in->scale_block < 1 || in->scale_block % row->scale_block != 0)
        return qg_fail(QG_ERROR_ARGUMENT, "scale_block must be a multiple of %d",
                       (int)row->scale_block);
    return QG_OK;
}

// RNE; every NaN is canonical.
static uint64_t dot_fma(const qg_unit_dot_input *in) {
    double d = qg_double_of_bits(in->c);
    for (int64_t i = 0; i < in->k; i++)
        d = fma(qg_double_of_bits(in->a[i]), qg_double_of_bits(in->b[i]), d);
    return qg_bits_of_double(d == d ? d : qg_decode_nan());
}

// Elements `at` .. `at + n` of an operand, zeros behind its end.
static void load_numbers(const unit_decoder *d, const uint64_t *codes, int64_t k, int64_t at, int n,
                         unit_number *out) {
    for (int i = 0; i < n; i++)
        out[i] = unit_decode(d, at + i < k ? codes[at + i] : 0);
}

static void load_scales(const unit_model *x, const qg_unit_dot_input *in, const uint64_t *scales,
                        int64_t at, int n, unit_number *out) {
    for (int i = 0; i * x->row->scale_block < n; i++) {
        int64_t element = at + i * x->row->scale_block;
        out[i] = unit_decode(&x->scale, element < in->k ? scales[element / in->scale_block] : 0);
    }
}

static uint64_t dot_chain(const unit_model *x, const qg_unit_dot_input *in) {
    unit_number a[MOST_K], b[MOST_K], sa[MOST_SCALES], sb[MOST_SCALES];
    unit_step step = qg_unit_step_of(x->row->model);
    bool scaled = x->row->scale != QG_UNIT_NO_SCALE;
    uint64_t c = in->c;
    for (int64_t at = 0; at < in->k; at += x->row->k) {
        int64_t rest = qg_round_up(in->k - at, x->row->k_least);
        int n = rest < x->row->k ? (int)rest : x->row->k;
        load_numbers(&x->a, in->a, in->k, at, n, a);
        load_numbers(&x->b, in->b, in->k, at, n, b);
        if (scaled) {
            load_scales(x, in, in->sa, at, n, sa);
            load_scales(x, in, in->sb, at, n, sb);
        }
        c = step(x, n, a, b, sa, sb, c);
    }
    return c;
}

qg_status qg_unit_dot(const qg_unit_row *row, const qg_unit_dot_input *in, uint64_t *d) {
    qg_status status = check_dot(row, in);
    if (status != QG_OK)
        return status;
    if (row->model == QG_MODEL_FMA) {
        *d = dot_fma(in);
        return QG_OK;
    }
    unit_model x;
    qg_unit_model_prepare(row, in->a_format, in->b_format, &x);
    *d = dot_chain(&x, in);
    return QG_OK;
}
