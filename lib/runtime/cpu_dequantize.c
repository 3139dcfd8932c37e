// Dequantize on the CPU. See qg_cpu.h. A task reads the scales of its blocks, then all codes.
#include <cpu_plan_internal.h>
#include <cpu_run_internal.h>
#include <qg_cpu.h>
#include <qg_memory.h>
#include <storage_internal.h>

enum { SCALE_CODES = 256, STREAM_AHEAD = 4096 };

typedef struct dequantizer {
    const cpu_kernels *kernels;
    const cpu_decode *decode;
    cpu_tiling tiling;
    qg_storage_shape stored;
    qg_scale_order order;
    const uint8_t *codes, *scales;
    float *q;
    const qg_recipe *recipe;
    qg_element element;
    float tensor_scale;
    float x_of_code[SCALE_CODES]; // of scale formats of 8 bits, if has_table
    float uniform_x;
    bool is_uniform, has_table;
} dequantizer;

typedef struct scratch {
    float *x, *q;
    uint8_t *codes;
} scratch;

static int64_t scratch_bytes(const dequantizer *d) {
    int64_t blocks = d->tiling.span_blocks;
    return cpu_room(4 * blocks) + cpu_room(4 * d->tiling.span) + cpu_room(d->tiling.span);
}

static scratch scratch_at(const dequantizer *d, char *room) {
    scratch s;
    s.x = cpu_take(&room, 4 * d->tiling.span_blocks);
    s.q = cpu_take(&room, 4 * d->tiling.span);
    s.codes = cpu_take(&room, d->tiling.span);
    return s;
}

static float x_at(const dequantizer *d, int64_t place) {
    if (d->stored.shape.scale_bytes == 1)
        return qg_scale_value(d->recipe, &d->element, d->tensor_scale, d->scales[place]);
    const uint8_t *in = d->scales + 4 * place;
    return qg_float_of_bits((uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 |
                            (uint32_t)in[3] << 24);
}

static void read_scales(const dequantizer *d, const cpu_task *task, float *x) {
    if (d->order.kind == QG_ORDER_ROW_MAJOR) {
        int64_t first = task->block_row * d->tiling.block_columns + task->block_column;
        for (int64_t block = 0; d->has_table && block < task->blocks; block++)
            x[block] = d->x_of_code[d->scales[first + block]];
        for (int64_t block = 0; !d->has_table && block < task->blocks; block++)
            x[block] = x_at(d, first + block);
        return;
    }
    cpu_scale_run run = cpu_scale_run_of(d->order, &d->stored.shape.blocks, task->block_row);
    for (int64_t block = 0; block < task->blocks; block++) {
        int64_t place = cpu_scale_place(&run, task->block_column + block);
        x[block] = d->has_table ? d->x_of_code[d->scales[place]] : x_at(d, place);
    }
}

static void decode_row(const dequantizer *d, const cpu_task *task, scratch *s, int64_t row) {
    const cpu_tiling *t = &d->tiling;
    const cpu_kernels *k = d->kernels;
    const uint8_t *codes = d->codes + cpu_code_place(t, row, task->column);
    float *out = d->q + row * t->k + task->column;
    if (t->bits) {
        (t->bits == 4 ? k->unpack4 : k->unpack6)(codes, task->width, s->codes);
        codes = s->codes;
    }
    k->decode(d->decode, codes, task->width, t->columns, s->x,
              t->streams && !t->bits ? STREAM_AHEAD : 0, t->streams ? s->q : out);
    if (t->streams)
        k->stream(out, s->q, 4 * task->width);
}

static void run_share(const dequantizer *d, void *room, int member, int team) {
    qg_fp_state saved = qg_fp_enter();
    scratch s = scratch_at(d, (char *)room + member * scratch_bytes(d));
    s.x[0] = d->uniform_x;
    int64_t end = cpu_first_task(&d->tiling, member + 1, team);
    for (int64_t i = cpu_first_task(&d->tiling, member, team); i < end; i++) {
        cpu_task task = cpu_task_at(&d->tiling, i);
        if (!d->is_uniform)
            read_scales(d, &task, s.x);
        for (int64_t row = task.row_begin; row < task.row_end; row++)
            decode_row(d, &task, &s, row);
    }
    d->kernels->stream_end();
    qg_fp_leave(saved);
}

static qg_status run_tasks(const dequantizer *d) {
    void *room;
    qg_status status =
        qg_allocate(&room, d->tiling.threads, scratch_bytes(d), "scratch of the threads");
    if (status != QG_OK)
        return status;
    if (d->tiling.threads == 1) {
        run_share(d, room, 0, 1);
    } else {
#pragma omp parallel num_threads(d->tiling.threads)
        run_share(d, room, thread_index(), thread_team());
    }
    qg_release(room);
    return QG_OK;
}

// Scales by a table where that takes fewer evaluations than one per block.
static void set_scale_values(dequantizer *d) {
    const qg_blocks *blocks = &d->stored.shape.blocks;
    d->element = qg_element_of(d->recipe->element);
    d->has_table = d->stored.shape.scale_bytes == 1 &&
                   blocks->block_rows * blocks->block_columns > SCALE_CODES;
    for (uint32_t code = 0; d->has_table && code < SCALE_CODES; code++)
        d->x_of_code[code] = qg_scale_value(d->recipe, &d->element, d->tensor_scale, code);
}

static qg_status dequantize_directly(dequantizer *d, const qg_storage *storage, int threads) {
    const qg_blocks *blocks = &d->stored.shape.blocks;
    set_scale_values(d);
    d->tiling = cpu_tiling_of(&d->stored, storage, d->element.info.bits, CPU_CHUNK, 4, threads);
    if (blocks->block_rows * blocks->block_columns == 1) {
        d->uniform_x = x_at(d, 0);
        d->is_uniform = true;
        d->tiling = cpu_tiling_uniform(&d->tiling);
    }
    return run_tasks(d);
}

// NULL: none. Kept, since 256 values take as long as some thousand elements.
static const cpu_decode *recent_decode(qg_format element) {
    static _Thread_local struct {
        qg_format element;
        bool is_set;
        cpu_decode decode;
    } last;
    if (!last.is_set || last.element != element) {
        last.is_set = cpu_decode_of(element, &last.decode);
        last.element = element;
    }
    return last.is_set ? &last.decode : NULL;
}

qg_status qg_cpu_dequantize(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                            int64_t k, const uint8_t *codes, const uint8_t *scales,
                            float tensor_scale, int threads, float *q, const char **impl) {
    static const qg_storage logical = {0};
    storage = storage ? storage : &logical;
    dequantizer d = {.codes = codes, .scales = scales, .q = q, .order = storage->order};
    qg_status status = qg_storage_shape_of(recipe, storage, m, k, &d.stored);
    if (status != QG_OK)
        return status;
    qg_fp_state saved = qg_fp_enter();
    d.kernels = cpu_kernels_chosen();
    d.recipe = recipe;
    d.tensor_scale = tensor_scale;
    d.decode = recipe->structure == QG_STRUCTURE_PLAIN ? recent_decode(recipe->element) : NULL;
    bool is_direct = d.decode != NULL;
    if (impl)
        *impl = is_direct ? d.kernels->name : "emulator";
    if (is_direct)
        status = dequantize_directly(&d, storage, threads);
    else
        status =
            emulated_dequantize(recipe, storage, m, k, codes, scales, tensor_scale, threads, q);
    qg_fp_leave(saved);
    return status;
}
