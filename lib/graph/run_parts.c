// Threads, walks over axes, conversions. See run_parts_internal.h.
#include "run_parts_internal.h"

#include <parallel_internal.h>
#include <qg_init.h>
#include <qg_input.h>
#include <qg_memory.h>
#include <qg_size.h>

#include <string.h>

// ----------------------------------------------------------------------------------------- threads

int run_parallel_threads(int threads, int64_t count, int64_t work) {
    int64_t elements;
    if (!qg_size_multiply(count, work, &elements))
        elements = INT64_MAX;
    int useful = thread_count(threads, elements);
    return useful < count ? useful : (int)count;
}

static int64_t part_begin(int64_t count, int member, int team) {
    return count / team * member + count % team * member / team;
}

qg_status run_parallel(int threads, int64_t count, int64_t work, int64_t scratch_bytes,
                       run_part part, void *context) {
    int team = run_parallel_threads(threads, count, work);
    int64_t room = scratch_bytes > INT64_MAX - 63 ? scratch_bytes : (scratch_bytes + 63) / 64 * 64;
    void *scratch = NULL;
    qg_status status = room ? qg_allocate(&scratch, team, room, "scratch room of a node") : QG_OK;
    if (status)
        return status;
#pragma omp parallel num_threads(team)
    {
        qg_fp_state saved = qg_fp_enter();
        int member = thread_index(), members = thread_team();
        part(context, scratch ? (char *)scratch + member * room : NULL,
             part_begin(count, member, members), part_begin(count, member + 1, members));
        qg_fp_leave(saved);
    }
    qg_release(scratch);
    return QG_OK;
}

// -------------------------------------------------------------------------------------------- axes

void run_strides(const qg_tensor_type *type, int64_t stride[QG_RANK_MOST]) {
    int64_t step = 1;
    for (int32_t i = type->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= type->shape[i];
    }
}

static bool is_one_axis(const run_axes *axes, int32_t i) {
    for (int which = 0; which < 2; which++)
        if (axes->stride[which][i] != axes->stride[which][i + 1] * axes->extent[i + 1])
            return false;
    return true;
}

static void move_axis(run_axes *axes, int32_t from, int32_t to) {
    axes->extent[to] = axes->extent[from];
    axes->stride[0][to] = axes->stride[0][from];
    axes->stride[1][to] = axes->stride[1][from];
}

void run_axes_join(run_axes *axes) {
    int32_t rank = 0;
    for (int32_t i = 0; i < axes->rank; i++)
        if (axes->extent[i] > 1)
            move_axis(axes, i, rank++);
    axes->rank = rank;
    for (int32_t i = axes->rank - 2; i >= 0; i--) {
        if (!is_one_axis(axes, i))
            continue;
        int64_t extent = axes->extent[i] * axes->extent[i + 1];
        for (int32_t j = i + 1; j < axes->rank; j++)
            move_axis(axes, j, j - 1);
        axes->extent[i] = extent;
        axes->rank--;
    }
}

int64_t run_axes_offset(const run_axes *axes, int which, int32_t rank, int64_t index) {
    int64_t offset = 0;
    for (int32_t i = rank - 1; i >= 0; i--) {
        offset += index % axes->extent[i] * axes->stride[which][i];
        index /= axes->extent[i];
    }
    return offset;
}

// --------------------------------------------------------------------------------------- transpose

#define TRANSPOSE_TILE(TYPE)                                                                       \
    for (int64_t i = 0; i < rows; i++)                                                             \
        for (int64_t j = 0; j < columns; j++)                                                      \
    ((TYPE *)out)[j * out_stride + i] = ((const TYPE *)in)[i * in_stride + j]

static void transpose_small(int64_t rows, int64_t columns, int size, const void *in,
                            int64_t in_stride, void *out, int64_t out_stride) {
    switch (size) {
    case 1: TRANSPOSE_TILE(uint8_t); break;
    case 2: TRANSPOSE_TILE(uint16_t); break;
    case 4: TRANSPOSE_TILE(uint32_t); break;
    default: TRANSPOSE_TILE(uint64_t); break;
    }
}

void run_transpose_tile(int64_t rows, int64_t columns, int size, const void *in, int64_t in_stride,
                        void *out, int64_t out_stride) {
    enum { TILE = 32 };
    for (int64_t i = 0; i < rows; i += TILE)
        for (int64_t j = 0; j < columns; j += TILE)
            transpose_small(rows - i < TILE ? rows - i : TILE,
                            columns - j < TILE ? columns - j : TILE, size,
                            (const char *)in + (i * in_stride + j) * size, in_stride,
                            (char *)out + (j * out_stride + i) * size, out_stride);
}

// ------------------------------------------------------------------------------------- conversions

typedef struct conversion {
    qg_dtype dtype;
    const void *from;
    void *to;
} conversion;

static void widen_part(void *context, void *scratch, int64_t begin, int64_t end) {
    const conversion *c = context;
    const uint16_t *from = c->from;
    float *to = c->to;
    (void)scratch;
    if (c->dtype == QG_DTYPE_BF16)
        for (int64_t i = begin; i < end; i++)
            to[i] = qg_float_of_bf16(from[i]);
    else
        for (int64_t i = begin; i < end; i++)
            to[i] = qg_float_of_fp16(from[i]);
}

static void round_part(void *context, void *scratch, int64_t begin, int64_t end) {
    const conversion *c = context;
    const float *from = c->from;
    (void)scratch;
    if (c->dtype == QG_DTYPE_FP32)
        for (int64_t i = begin; i < end; i++)
            ((float *)c->to)[i] = qg_canonical_sum(from[i]);
    else if (c->dtype == QG_DTYPE_BF16)
        for (int64_t i = begin; i < end; i++)
            ((uint16_t *)c->to)[i] = qg_bf16_of_sum(from[i]);
    else
        for (int64_t i = begin; i < end; i++)
            ((uint16_t *)c->to)[i] = qg_fp16_of_sum(from[i]);
}

qg_status run_widen(const qg_tensor_type *type, const void *from, int threads, float *to) {
    conversion c = {(qg_dtype)type->dtype, from, to};
    return run_parallel(threads, qg_tensor_elements(type), 1, 0, widen_part, &c);
}

qg_status run_round(const qg_tensor_type *type, const float *from, int threads, void *to) {
    conversion c = {(qg_dtype)type->dtype, from, to};
    return run_parallel(threads, qg_tensor_elements(type), 1, 0, round_part, &c);
}
