// The casts of cpu_kernels_internal.h by input type, over an instruction set's own loops. Included
// after these: cast_run (groups of `columns` elements, with an operand each) and cast_groups.
// Constant arguments make each combination a loop of its own.
#ifndef CPU_LANES_CAST_INTERNAL_H
#define CPU_LANES_CAST_INTERNAL_H

#include <cpu_lanes_internal.h>

INLINE void cast_any(const cpu_cast *c, int type, const void *x, int64_t count, int64_t columns,
                     const float *operand, int how, int64_t ahead, uint8_t *codes) {
    if (c->is_int && how == APPLY_DIVIDE)
        cast_run(c, type, APPLY_DIVIDE, true, x, count, columns, operand, ahead, codes);
    else if (c->is_int)
        cast_run(c, type, APPLY_MULTIPLY, true, x, count, columns, operand, ahead, codes);
    else if (how == APPLY_DIVIDE)
        cast_run(c, type, APPLY_DIVIDE, false, x, count, columns, operand, ahead, codes);
    else if (how == APPLY_MULTIPLY)
        cast_run(c, type, APPLY_MULTIPLY, false, x, count, columns, operand, ahead, codes);
    else
        cast_groups(c, type, APPLY_NOTHING, false, x, count, count, operand, ahead, codes);
}

static void cast_fp32(const cpu_cast *c, const void *x, int64_t count, int64_t columns,
                      const float *operand, int how, int64_t ahead, uint8_t *codes) {
    cast_any(c, INPUT_FP32, x, count, columns, operand, how, ahead, codes);
}

static void cast_bf16(const cpu_cast *c, const void *x, int64_t count, int64_t columns,
                      const float *operand, int how, int64_t ahead, uint8_t *codes) {
    cast_any(c, INPUT_BF16, x, count, columns, operand, how, ahead, codes);
}

static void cast_fp16(const cpu_cast *c, const void *x, int64_t count, int64_t columns,
                      const float *operand, int how, int64_t ahead, uint8_t *codes) {
    cast_any(c, INPUT_FP16, x, count, columns, operand, how, ahead, codes);
}

#endif
