// Blocks that hold more than one scale and one plane of codes: pair shifts (MX9, MX6, MX4, MSFP16,
// MSFP12) and two planes of which the second codes what the first leaves (rlx_mxfp4x2).
// Owns what such a block holds; the emulator and the kernels say how blocks are visited, loaded and
// stored. A block is one row of at most QG_STRUCTURE_LONGEST elements (qg_recipe_check).
// C and CUDA. Exact: every operation below is one IEEE operation, in the order written.
#ifndef QG_BLOCK_STRUCTURE_H
#define QG_BLOCK_STRUCTURE_H

#include <qg_block_scale.h>
#include <stddef.h>

enum { QG_STRUCTURE_LONGEST = 32 };

// The amax of neighbouring elements of a row.
QG_HD float qg_row_amax(int policy, const float *x, int64_t count) {
    float amax = 0.0f;
    for (int64_t i = 0; i < count; i++)
        amax = qg_amax_step(policy, amax, x[i]);
    return amax;
}

// ------------------------------------------------------------------------------------ pair shifts

// An exponent byte, and one shift bit per pair. An odd last element is a pair alone.
typedef struct qg_pair_block {
    float amax;
    uint32_t exponent; // E + 127; 255: NaN
    uint32_t shifts;   // pair i in bit i
} qg_pair_block;

QG_HD qg_pair_block qg_pair_block_of(const qg_scaler *q, const float *x, int64_t count) {
    qg_pair_block b;
    int policy = q->recipe.amax;
    b.amax = qg_row_amax(policy, x, count);
    b.exponent = qg_pair_exponent_byte(q, b.amax);
    b.shifts = 0;
    if (q->recipe.structure != QG_STRUCTURE_PAIR_SHIFT)
        return b;
    for (int64_t i = 0; i < count; i += 2) {
        float pair = qg_row_amax(policy, x + i, count - i < 2 ? 1 : 2);
        b.shifts |= qg_pair_shift(b.exponent, pair) << (i / 2);
    }
    return b;
}

// The two bytes of the scale field.
QG_HD uint32_t qg_pair_block_field(const qg_pair_block *b) { return b->exponent | b->shifts << 8; }

// The block whose scale field is given; its amax is not known.
QG_HD qg_pair_block qg_pair_block_of_field(uint32_t field) {
    qg_pair_block b;
    b.amax = 0.0f;
    b.exponent = field & 0xffu;
    b.shifts = field >> 8 & 0xffu;
    return b;
}

// The scale of element i of the block.
QG_HD qg_block_scale qg_pair_block_scale(const qg_pair_block *b, int64_t i) {
    return qg_pair_scale(b->exponent, b->shifts >> (i / 2) & 1);
}

// -------------------------------------------------------------------------------------- residuals

// The second plane codes fl(x - fl(X0 * q0)) under its own amax scale.
typedef struct qg_residual_block {
    float amax;
    qg_block_scale scale[2];
    uint32_t codes[2][QG_STRUCTURE_LONGEST];
} qg_residual_block;

// The codes of the first plane under scale[0], and what they leave. b: one row; rest: its columns.
QG_HD void qg_residual_first_plane(const qg_scaler *q, const qg_block_elements *b,
                                   qg_residual_block *out, float *rest) {
    const qg_block_scale *s = &out->scale[0];
    for (int64_t i = 0; i < b->columns; i++) {
        uint64_t code =
            qg_element_code(q, s, qg_scaled_value(s, b->x[i]), qg_element_word(q, b, 0, i));
        out->codes[0][i] = (uint32_t)code;
        rest[i] = b->x[i] - qg_dequantized(qg_decode(&q->element.info, code), s->x);
    }
}

// The codes of the second plane under scale[1]: both codes of an element are rounded with the same
// random word.
QG_HD void qg_residual_second_plane(const qg_scaler *q, const qg_block_elements *b,
                                    const float *rest, qg_residual_block *out) {
    const qg_block_scale *s = &out->scale[1];
    for (int64_t i = 0; i < b->columns; i++)
        out->codes[1][i] = (uint32_t)qg_element_code(q, s, qg_scaled_value(s, rest[i]),
                                                     qg_element_word(q, b, 0, i));
}

// b: one row.
QG_HD void qg_residual_block_of(const qg_scaler *q, const qg_block_elements *b,
                                qg_residual_block *out) {
    float rest[QG_STRUCTURE_LONGEST];
    out->amax = qg_row_amax(q->recipe.amax, b->x, b->columns);
    out->scale[0] = qg_block_scale_of(q, out->amax, NULL);
    qg_residual_first_plane(q, b, out, rest);
    out->scale[1] = qg_block_scale_of(q, qg_row_amax(q->recipe.amax, rest, b->columns), NULL);
    qg_residual_second_plane(q, b, rest, out);
}

// The codes of both planes under given scales, by their stored bits.
QG_HD void qg_residual_block_of_bits(const qg_scaler *q, const qg_block_elements *b, uint32_t bits0,
                                     uint32_t bits1, qg_residual_block *out) {
    float rest[QG_STRUCTURE_LONGEST];
    out->amax = 0.0f;
    out->scale[0] = qg_scale_of_bits(q, bits0);
    out->scale[1] = qg_scale_of_bits(q, bits1);
    qg_residual_first_plane(q, b, out, rest);
    qg_residual_second_plane(q, b, rest, out);
}

// The value of an element: the sum of both planes, one rounding each and one of the sum.
QG_HD float qg_residual_value(double value0, float x0, double value1, float x1) {
    return qg_dequantized(qg_dequantized(value0, x0) + qg_dequantized(value1, x1), 1.0f);
}

#endif
