// Quantize on the CPU. See qg_cpu.h.
// A task finds the amaxes of its blocks, then all scales, then all codes: done one block at a time,
// each step would wait for the one before. A tensor under one scale is cut without regard to
// blocks. Blocks whose scale has no operand for the kernels are encoded again, element by element.
#include <cpu_plan_internal.h>
#include <cpu_run_internal.h>
#include <qg_cpu.h>
#include <qg_memory.h>
#include <storage_internal.h>

#include <string.h>

enum { PIECE = 1024, STREAM_AHEAD = 8192 };

// What every task reads.
typedef struct quantizer {
    const cpu_kernels *kernels;
    cpu_plan plan;
    cpu_tiling tiling;
    qg_storage_shape stored;
    qg_scale_order order;
    const qg_quantize_options *options;
    const void *x;
    uint8_t *codes, *scales;
    int64_t element_bytes, ahead;
    // The scale of an amax of 0, which whole tensors may be full of; of every block if is_constant.
    // Unused where the rule needs the elements.
    qg_block_scale usual;
    float usual_operand;
    bool usual_is_again;
    bool is_uniform; // one scale, stored already
} quantizer;

// What a task writes beside the output.
typedef struct scratch {
    uint32_t *amax, *words;
    float *operand, *v;
    uint8_t *stored, *is_again, *codes, *packed;
    bool has_again;
    // All elements count and are finite, and no scale is further from its amax than usual.
    bool is_bounded;
} scratch;

static int64_t scratch_bytes(const quantizer *q) {
    int64_t blocks = q->tiling.span_blocks;
    return 3 * cpu_room(4 * blocks) + cpu_room(blocks) + 2 * cpu_room(4 * PIECE) +
           2 * cpu_room(q->tiling.span);
}

static scratch scratch_at(const quantizer *q, char *room) {
    int64_t blocks = q->tiling.span_blocks;
    scratch s = {0};
    s.amax = cpu_take(&room, 4 * blocks);
    s.operand = cpu_take(&room, 4 * blocks);
    s.stored = cpu_take(&room, 4 * blocks);
    s.is_again = cpu_take(&room, blocks);
    s.v = cpu_take(&room, 4 * PIECE);
    s.words = cpu_take(&room, 4 * PIECE);
    s.codes = cpu_take(&room, q->tiling.span);
    s.packed = cpu_take(&room, q->tiling.span);
    return s;
}

static const void *element_at(const quantizer *q, int64_t row, int64_t column) {
    return (const char *)q->x + (row * q->tiling.k + column) * q->element_bytes;
}

// ------------------------------------------------------------------------------------------ amax

static uint32_t counted_magnitude(int policy) {
    return policy == QG_AMAX_PROPAGATES_NAN ? 0x7fffffffu
           : policy == QG_AMAX_IGNORES_NAN  ? 0x7f800000u
                                            : 0x7f7fffffu;
}

// The amax of a block in which something does not count.
static float amax_by_element(const quantizer *q, const cpu_task *task, int64_t block) {
    int64_t first = task->column + block * q->tiling.columns, end = first + q->tiling.columns;
    float amax = 0.0f;
    if (end > task->column + task->width)
        end = task->column + task->width;
    for (int64_t row = task->row_begin; row < task->row_end; row++)
        for (int64_t column = first; column < end; column++)
            amax = qg_amax_step(q->plan.scaler.recipe.amax, amax,
                                cpu_element(q->plan.type, element_at(q, row, column), 0));
    return amax;
}

static void find_amaxes(const quantizer *q, const cpu_task *task, scratch *s) {
    uint32_t counted = counted_magnitude(q->plan.scaler.recipe.amax);
    memset(s->amax, 0, (size_t)task->blocks * sizeof *s->amax);
    for (int64_t row = task->row_begin; row < task->row_end; row++)
        q->kernels->amax[q->plan.type](element_at(q, row, task->column), task->width,
                                       q->tiling.columns, s->amax);
    s->is_bounded = q->plan.is_bounded;
    if (counted == 0x7fffffffu)
        return;
    for (int64_t block = 0; block < task->blocks; block++)
        if (s->amax[block] > counted) {
            s->amax[block] = qg_bits_of_float(amax_by_element(q, task, block));
            s->is_bounded = false;
        }
}

// Of one share of the tensor's elements.
static float amax_of_share(const quantizer *q, int member, int team) {
    enum { PART = 1 << 16 };
    int policy = q->plan.scaler.recipe.amax;
    int64_t elements = q->tiling.m * q->tiling.k, parts = qg_ceil_divide(elements, PART);
    float amax = 0.0f;
    qg_fp_state saved = qg_fp_enter(); // fp16 subnormals become numbers here
    for (int64_t part = member; part < parts; part += team) {
        const char *x = (const char *)q->x + part * PART * q->element_bytes;
        int64_t count = elements - part * PART < PART ? elements - part * PART : PART;
        uint32_t bits = 0;
        q->kernels->amax[q->plan.type](x, count, count, &bits);
        if (bits <= counted_magnitude(policy)) {
            amax = qg_amax_step(policy, amax, qg_float_of_bits(bits));
            continue;
        }
        for (int64_t i = 0; i < count; i++)
            amax = qg_amax_step(policy, amax, cpu_element(q->plan.type, x, i));
    }
    qg_fp_leave(saved);
    return amax;
}

// Of the whole tensor, by an exact reduction.
static float amax_of_tensor(const quantizer *q) {
    float amax = 0.0f;
    if (q->tiling.threads == 1)
        return amax_of_share(q, 0, 1);
#pragma omp parallel num_threads(q->tiling.threads)
    {
        float share = amax_of_share(q, thread_index(), thread_team());
#pragma omp critical(qg_cpu_amax)
        amax = qg_amax_step(q->plan.scaler.recipe.amax, amax, share);
    }
    return amax;
}

// ----------------------------------------------------------------------------------------- scales

static bool block_is_finite(const quantizer *q, uint32_t amax) {
    return q->plan.scaler.recipe.amax != QG_AMAX_OVER_FINITE && amax < 0x7f800000u;
}

static qg_block_elements elements_of(const quantizer *q, const cpu_task *task, int64_t block) {
    int64_t column = task->column + block * q->tiling.columns;
    int64_t columns = task->column + task->width - column;
    return (qg_block_elements){
        .x = element_at(q, task->row_begin, column),
        .rows = task->row_end - task->row_begin,
        .columns = columns < q->tiling.columns ? columns : q->tiling.columns,
        .stride = q->tiling.k,
        .index = (uint64_t)(task->row_begin * q->tiling.k + column),
        .seed = q->options->seed,
        .stream = q->options->stream,
    };
}

static qg_block_scale scale_by_function(const quantizer *q, const cpu_task *task, int64_t block,
                                        uint32_t amax) {
    if (!q->plan.needs_elements)
        return qg_block_scale_of(&q->plan.scaler, qg_float_of_bits(amax), NULL);
    qg_block_elements elements = elements_of(q, task, block);
    return qg_block_scale_of(&q->plan.scaler, qg_float_of_bits(amax), &elements);
}

static void put_bits(uint8_t *out, int64_t bytes, uint32_t bits) {
    for (int64_t b = 0; b < bytes; b++)
        out[b] = (uint8_t)(bits >> (8 * b));
}

static void set_scale(const quantizer *q, scratch *s, int64_t block, uint32_t bits, float operand,
                      bool is_again) {
    int64_t bytes = q->stored.shape.scale_bytes;
    put_bits(s->stored + block * bytes, bytes, bits);
    s->operand[block] = operand;
    s->is_again[block] = is_again;
    s->has_again |= is_again;
}

// Whether any other operand would give blocks of zeros the same codes.
static bool zeros_are_coded_alike(const quantizer *q) {
    return !q->usual_is_again && q->usual_operand > 0.0f && qg_float_is_finite(q->usual_operand);
}

// Blocks that the kernel left: every block, or those whose amax is 0, NaN, infinite or extreme.
static void find_scales_by_function(const quantizer *q, const cpu_task *task, scratch *s,
                                    bool all) {
    for (int64_t block = 0; block < task->blocks; block++) {
        uint32_t amax = s->amax[block];
        s->is_again[block] = false;
        if (!all && qg_is_ordinary(&q->plan.scales, amax))
            continue;
        if (amax == 0 && !q->plan.needs_elements) {
            set_scale(q, s, block, q->usual.bits, q->usual_operand, q->usual_is_again);
            if (zeros_are_coded_alike(q))
                s->operand[block] = 1.0f; // which bounded kernels may invert
            else
                s->is_bounded = false;
            continue;
        }
        s->is_bounded = false;
        qg_block_scale scale = scale_by_function(q, task, block, amax);
        float operand;
        bool fits = cpu_operand_of(&q->plan, &scale, block_is_finite(q, amax), &operand);
        set_scale(q, s, block, scale.bits, operand, !fits);
    }
}

static void find_scales(const quantizer *q, const cpu_task *task, scratch *s) {
    bool all = q->plan.scales.kind == QG_ORDINARY_NONE, is_done = false;
    s->has_again = false;
    if (!all)
        is_done = q->kernels->scales(&q->plan.scales, s->amax, task->blocks, s->stored, s->operand);
    if (!is_done)
        find_scales_by_function(q, task, s, all);
}

static void store_scales(const quantizer *q, const cpu_task *task, const scratch *s) {
    int64_t bytes = q->stored.shape.scale_bytes;
    if (q->order.kind == QG_ORDER_ROW_MAJOR) {
        int64_t first = task->block_row * q->tiling.block_columns + task->block_column;
        memcpy(q->scales + first * bytes, s->stored, (size_t)(task->blocks * bytes));
        return;
    }
    cpu_scale_run run = cpu_scale_run_of(q->order, &q->stored.shape.blocks, task->block_row);
    for (int64_t block = 0; block < task->blocks; block++)
        memcpy(q->scales + cpu_scale_place(&run, task->block_column + block) * bytes,
               s->stored + block * bytes, (size_t)bytes);
}

// ------------------------------------------------------------------------------------------ codes

// The kernel begins with a whole quad.
static void fill_words(const quantizer *q, uint64_t first, int64_t count, uint32_t *words) {
    const qg_quantize_options *o = q->options;
    int64_t head = (int64_t)((4 - first % 4) % 4);
    head = head < count ? head : count;
    for (int64_t i = 0; i < head; i++)
        words[i] = qg_philox_word(o->seed, o->stream, first + (uint64_t)i);
    q->kernels->random(o->seed, o->stream, first + (uint64_t)head, count - head, words + head);
}

// Columns under one operand or whole groups, at most PIECE.
static void encode_piece(const quantizer *q, scratch *s, int64_t row, int64_t column, int64_t count,
                         int64_t columns, const float *operand, uint8_t *codes) {
    const cpu_cast *cast = &q->plan.cast;
    q->kernels->apply[q->plan.type](element_at(q, row, column), count, columns, operand,
                                    q->plan.how, cast->is_directed, s->v);
    if (qg_rounding_is_stochastic(q->plan.scaler.recipe.conversion.rounding))
        fill_words(q, (uint64_t)(row * q->tiling.k + column), count, s->words);
    q->kernels->encode(cast, s->v, s->words, count, codes);
}

static void encode_pieces(const quantizer *q, const cpu_task *task, scratch *s, int64_t row,
                          uint8_t *codes) {
    int64_t columns = q->tiling.columns, done = 0;
    int64_t whole = columns <= PIECE ? PIECE / columns * columns : 0;
    while (done < task->width) {
        int64_t block = done / columns, rest = task->width - done;
        int64_t group_rest = (block + 1) * columns - done;
        int64_t count = whole ? whole : group_rest < PIECE ? group_rest : PIECE;
        count = count < rest ? count : rest;
        encode_piece(q, s, row, task->column + done, count, whole ? columns : count,
                     s->operand + block, codes + done);
        done += count;
    }
}

static void encode_by_function(const quantizer *q, const qg_block_scale *scale, int64_t row,
                               int64_t column, int64_t count, uint8_t *codes) {
    const qg_scaler *scaler = &q->plan.scaler;
    bool is_stochastic = qg_rounding_is_stochastic(scaler->recipe.conversion.rounding);
    for (int64_t i = 0; i < count; i++) {
        uint64_t index = (uint64_t)(row * q->tiling.k + column + i);
        uint32_t word =
            is_stochastic ? qg_philox_word(q->options->seed, q->options->stream, index) : 0;
        float x = cpu_element(q->plan.type, element_at(q, row, column), i);
        codes[i] = (uint8_t)qg_element_code(scaler, scale, qg_scaled_value(scale, x), word);
    }
}

static void encode_again(const quantizer *q, const cpu_task *task, const scratch *s, int64_t row,
                         uint8_t *codes) {
    for (int64_t block = 0; block < task->blocks; block++) {
        if (!s->is_again[block])
            continue;
        int64_t first = block * q->tiling.columns, count = task->width - first;
        count = count < q->tiling.columns ? count : q->tiling.columns;
        qg_block_scale scale =
            q->is_uniform || q->plan.is_constant || (s->amax[block] == 0 && !q->plan.needs_elements)
                ? q->usual
                : scale_by_function(q, task, block, s->amax[block]);
        encode_by_function(q, &scale, row, task->column + first, count, codes + first);
    }
}

static void encode_row(const quantizer *q, const cpu_task *task, scratch *s, int64_t row) {
    const cpu_tiling *t = &q->tiling;
    const cpu_kernels *k = q->kernels;
    uint8_t *out = q->codes + cpu_code_place(t, row, task->column);
    uint8_t *codes = t->bits || t->streams ? s->codes : out, *packed = t->streams ? s->packed : out;
    if (s->is_bounded && k->cast_bounded[q->plan.type])
        k->cast_bounded[q->plan.type](
            &q->plan.cast, element_at(q, row, task->column), task->width, t->columns, s->operand,
            q->plan.is_power ? APPLY_POWER : q->plan.how, q->ahead, codes);
    else if (q->plan.cast.is_fused && k->cast[q->plan.type])
        k->cast[q->plan.type](&q->plan.cast, element_at(q, row, task->column), task->width,
                              t->columns, s->operand, q->plan.how, q->ahead, codes);
    else
        encode_pieces(q, task, s, row, codes);
    if (s->has_again)
        encode_again(q, task, s, row, codes);
    if (t->bits)
        (t->bits == 4 ? k->pack4 : k->pack6)(codes, task->width, packed);
    if (t->streams) {
        int64_t bytes = t->bits == 4   ? (task->width + 1) / 2
                        : t->bits == 6 ? (task->width + 3) / 4 * 3
                                       : task->width;
        k->stream(out, t->bits ? packed : codes, bytes);
    }
}

// ------------------------------------------------------------------------------------------ tasks

static void run_task(const quantizer *q, const cpu_task *task, scratch *s) {
    if (!q->is_uniform) {
        if (!q->plan.is_constant) {
            find_amaxes(q, task, s);
            find_scales(q, task, s);
        }
        store_scales(q, task, s);
    }
    for (int64_t row = task->row_begin; row < task->row_end; row++)
        encode_row(q, task, s, row);
}

// The blocks of a task where all have the same scale.
static void set_usual(const quantizer *q, scratch *s) {
    int64_t blocks = q->tiling.span_blocks;
    for (int64_t block = 0; block < blocks; block++)
        set_scale(q, s, block, q->usual.bits, q->usual_operand, q->usual_is_again);
}

static void run_share(const quantizer *q, void *room, int member, int team) {
    qg_fp_state saved = qg_fp_enter();
    scratch s = scratch_at(q, (char *)room + member * scratch_bytes(q));
    if (q->is_uniform || q->plan.is_constant)
        set_usual(q, &s);
    int64_t end = cpu_first_task(&q->tiling, member + 1, team);
    for (int64_t i = cpu_first_task(&q->tiling, member, team); i < end; i++) {
        cpu_task task = cpu_task_at(&q->tiling, i);
        run_task(q, &task, &s);
    }
    q->kernels->stream_end();
    qg_fp_leave(saved);
}

// A team may be smaller than asked for. One thread needs none: to enter a parallel region and leave
// it takes as long as some thousand elements.
static qg_status run_tasks(const quantizer *q) {
    void *room;
    qg_status status =
        qg_allocate(&room, q->tiling.threads, scratch_bytes(q), "scratch of the threads");
    if (status != QG_OK)
        return status;
    if (q->tiling.threads == 1) {
        run_share(q, room, 0, 1);
    } else {
#pragma omp parallel num_threads(q->tiling.threads)
        run_share(q, room, thread_index(), thread_team());
    }
    qg_release(room);
    return QG_OK;
}

// ----------------------------------------------------------------------------------------- border

static void set_usual_scale(quantizer *q, float amax) {
    qg_block_scale scale = qg_block_scale_of(&q->plan.scaler, amax, NULL);
    // Constants do not look at the elements, so infinities may be among them.
    bool all_finite = !q->plan.is_constant && block_is_finite(q, qg_bits_of_float(amax));
    q->usual = scale;
    q->usual_is_again = !cpu_operand_of(&q->plan, &scale, all_finite, &q->usual_operand);
}

// One block: its scale first, then its elements without regard to rows.
static void quantize_scale_of_tensor(quantizer *q) {
    float amax = q->plan.is_constant ? 0.0f : amax_of_tensor(q);
    if (q->plan.needs_elements) {
        cpu_task all = {.row_end = q->tiling.m, .width = q->tiling.k, .blocks = 1};
        qg_block_elements elements = elements_of(q, &all, 0);
        elements.columns = q->tiling.k;
        q->usual = qg_block_scale_of(&q->plan.scaler, amax, &elements);
        q->usual_is_again = !cpu_operand_of(
            &q->plan, &q->usual, block_is_finite(q, qg_bits_of_float(amax)), &q->usual_operand);
    } else {
        set_usual_scale(q, amax);
    }
    put_bits(q->scales + qg_scale_order_offset(q->order, 1, 1, 0, 0) * q->stored.shape.scale_bytes,
             q->stored.shape.scale_bytes, q->usual.bits);
    q->is_uniform = true;
    q->tiling = cpu_tiling_uniform(&q->tiling);
}

static qg_status quantize_directly(quantizer *q, const qg_recipe *recipe, const qg_storage *storage,
                                   float *tensor_scale) {
    const qg_blocks *blocks = &q->stored.shape.blocks;
    int64_t chunk = q->plan.type == INPUT_FP32 ? CPU_CHUNK : CPU_NARROW_CHUNK;
    q->tiling = cpu_tiling_of(&q->stored, storage, q->plan.scaler.element.info.bits, chunk,
                              q->element_bytes, q->options->threads);
    if (q->stored.shape.has_tensor_scale) {
        int type = q->plan.type;
        q->plan = cpu_plan_of(recipe, q->options->input_type, amax_of_tensor(q));
        q->plan.type = type;
    }
    if (q->order.kind != QG_ORDER_ROW_MAJOR)
        memset(q->scales, 0, (size_t)q->stored.scales_size);
    if (blocks->block_rows * blocks->block_columns == 1)
        quantize_scale_of_tensor(q);
    else if (!q->plan.needs_elements)
        set_usual_scale(q, 0.0f);
    if (q->tiling.streams)
        q->ahead = q->is_uniform ? STREAM_AHEAD : chunk * q->element_bytes;
    qg_status status = run_tasks(q);
    if (status == QG_OK && tensor_scale)
        *tensor_scale = q->plan.scaler.tensor;
    return status;
}

// Rules that look at every element read binary32.
static qg_status quantize_widened(quantizer *q, const qg_recipe *recipe, const qg_storage *storage,
                                  int64_t elements, float *tensor_scale) {
    void *wide;
    qg_status status = qg_allocate(&wide, elements, (int64_t)sizeof(float), "widened elements");
    if (status != QG_OK)
        return status;
    storage_widen(q->options->input_type, q->x, elements, wide);
    q->x = wide;
    q->plan.type = INPUT_FP32;
    q->element_bytes = 4;
    status = quantize_directly(q, recipe, storage, tensor_scale);
    qg_release(wide);
    return status;
}

// A plan takes as long as some thousand elements, and calls tend to repeat their recipe.
static cpu_plan recent_plan(const qg_recipe *recipe, qg_format input_type, float history) {
    static _Thread_local struct {
        qg_recipe recipe;
        qg_format input_type;
        float history;
        bool is_set;
        cpu_plan plan;
    } last;
    uint32_t bits = qg_bits_of_float(history);
    if (!last.is_set || memcmp(&last.recipe, recipe, sizeof *recipe) != 0 ||
        last.input_type != input_type || qg_bits_of_float(last.history) != bits) {
        last.plan = cpu_plan_of(recipe, input_type, history);
        memcpy(&last.recipe, recipe, sizeof *recipe); // padding too
        last.input_type = input_type;
        last.history = history;
        last.is_set = true;
    }
    return last.plan;
}

qg_status qg_cpu_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                          const qg_storage *storage, int64_t m, int64_t k, const void *x,
                          uint8_t *codes, uint8_t *scales, float *tensor_scale, const char **impl) {
    static const qg_storage logical = {0};
    storage = storage ? storage : &logical;
    quantizer q = {.options = options, .x = x, .codes = codes, .scales = scales};
    qg_status status = qg_storage_shape_of(recipe, storage, m, k, &q.stored);
    if (status == QG_OK)
        status = storage_check_options(recipe, options, &q.stored.shape, tensor_scale);
    if (status != QG_OK)
        return status;
    qg_fp_state saved = qg_fp_enter();
    q.kernels = cpu_kernels_chosen();
    q.order = storage->order;
    q.element_bytes = options->input_type == QG_FORMAT_FP32 ? 4 : 2;
    float history = recipe->rule == QG_RULE_DELAYED ? storage_history_amax(options) : 0.0f;
    q.plan = recent_plan(recipe, options->input_type, history);
    if (impl)
        *impl = q.plan.is_direct ? q.kernels->name : "emulator";
    if (!q.plan.is_direct)
        status = emulated_quantize(recipe, options, storage, m, k, x, codes, scales, tensor_scale);
    else if (q.plan.needs_elements && q.plan.type != INPUT_FP32)
        status = quantize_widened(&q, recipe, storage, m * k, tensor_scale);
    else
        status = quantize_directly(&q, recipe, storage, tensor_scale);
    qg_fp_leave(saved);
    return status;
}
