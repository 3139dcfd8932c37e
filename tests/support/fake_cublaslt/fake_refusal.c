// What the documentation of cuBLASLt demands of FP8 and FP4 products.
#include "fake_internal.h"

static bool is_fp8(int type) { return type == TYPE_E4M3 || type == TYPE_E5M2; }

static const char *refused_type(const fake_problem *p) {
    const int a = p->a->type, b = p->b->type, c = p->c->type, d = p->d->type;
    if (p->desc->compute != 68 || p->desc->scale_type != TYPE_FP32)
        return "compute or scale type";
    if (a == TYPE_E2M1 || b == TYPE_E2M1) {
        if (a != b)
            return "FP4 with something else";
    } else if (!is_fp8(a) || !is_fp8(b) || (a == TYPE_E5M2 && b == TYPE_E5M2)) {
        return "operand types";
    }
    if (!is_fp8(d))
        return (d == TYPE_FP32 || d == TYPE_BF16 || d == TYPE_FP16) && c == d ? NULL
                                                                              : "type of C or D";
    if (!is_fp8(a) || (d == TYPE_E5M2 && a != TYPE_E5M2 && b != TYPE_E5M2))
        return "FP8 output of such operands";
    return c == TYPE_BF16 || c == TYPE_FP16 ? NULL : "type of C beside an FP8 output";
}

static const char *refused_shape(const fake_problem *p) {
    if (p->desc->trans_a != 1 || p->desc->trans_b != 0)
        return "not TN";
    const uint64_t m = p->d->rows, n = p->d->columns, k = p->a->rows;
    if (p->a->columns != m || p->b->columns != n || p->b->rows != k)
        return "sizes of A, B and D";
    if (p->c->rows != m || p->c->columns != n)
        return "sizes of C and D";
    const fake_layout *all[] = {p->a, p->b, p->c, p->d};
    for (int i = 0; i < 4; i++)
        if (all[i]->leading < (int64_t)all[i]->rows)
            return "leading dimension below rows";
    const int64_t step = p->a->type == TYPE_E2M1 ? 32 : 16;
    if (p->a->leading % step || p->b->leading % step || m % 16)
        return "16-byte alignment of dimensions";
    return k > 0 && n > 0 ? NULL : "empty";
}

static bool modes_agree(int a, int b) {
    const bool blocks = a == BLK128 || b == BLK128 || a == VEC128 || b == VEC128;
    if (blocks)
        return (a == BLK128 || a == VEC128) && (b == BLK128 || b == VEC128) &&
               !(a == BLK128 && b == BLK128);
    return a == b;
}

static const char *refused_scale(const fake_problem *p) {
    const int a = p->desc->a_mode, b = p->desc->b_mode;
    const bool fp4 = p->a->type == TYPE_E2M1;
    if (a < 0 || a >= SCALE_MODES || b < 0 || b >= SCALE_MODES || !modes_agree(a, b))
        return "scale modes";
    if (fp4 != (a == VEC16))
        return "scale mode of such elements";
    if (!p->desc->a_scale || !p->desc->b_scale)
        return "scales missing";
    if (is_fp8(p->d->type) && a != SCALAR)
        return "FP8 output under such scales";
    if (p->desc->d_scale && !is_fp8(p->d->type))
        return "D scale of a wide output";
    if ((a == VEC128 || b == VEC128) && (p->d->rows % 4 || p->d->columns % 4))
        return "M or N no multiple of 4";
    if ((uintptr_t)p->desc->a_scale % 4 || (uintptr_t)p->desc->b_scale % 4)
        return "alignment of scales";
    if ((a == VEC16 || a == VEC32) &&
        ((uintptr_t)p->desc->a_scale % 16 || (uintptr_t)p->desc->b_scale % 16))
        return "alignment of tiled scales";
    if (fp4 && p->desc->fast_accum)
        return "fast accumulation of FP4";
    return 0;
}

const char *fake_refusal(const fake_problem *problem) {
    const char *why = refused_type(problem);
    if (!why)
        why = refused_shape(problem);
    return why ? why : refused_scale(problem);
}
