// The product of two quantized operands on a matrix unit: which combinations a unit takes, split-K,
// promotion, epilogue. See qg_unit.h.
// The chains over K come from unit_panel.c, an installed variant, or unit_software.c; all else is
// one IEEE operation per step, in the order written. Allocates; results do not depend on threads.
#include <little_endian_internal.h>
#include <parallel_internal.h>
#include <product_store_internal.h>
#include <qg_block_scale.h>
#include <qg_emulator.h>
#include <qg_init.h>
#include <qg_memory.h>
#include <qg_recipe_name.h>
#include <qg_size.h>
#include <qg_unit.h>
#include <unit_software_internal.h>

#include <string.h>

// ------------------------------------------------------------------------------- what a unit takes

// Where the scales enter.
enum { SCALES_FOLDED, SCALES_IN_UNIT, SCALES_IN_PROMOTION, SCALES_IN_EPILOGUE };

typedef struct product_plan {
    const qg_unit_row *row; // NULL for software units
    int scales;
    int64_t unit_k;
    int64_t part; // elements of K in one part of +split:N
} product_plan;

static bool is_grouped(const qg_recipe *recipe) {
    return recipe->layout.kind == QG_LAYOUT_GROUP || recipe->layout.kind == QG_LAYOUT_BLOCK;
}

// Whether every aligned block of `length` elements of K has one scale.
static bool is_constant_over(const qg_recipe *recipe, int64_t length) {
    return !is_grouped(recipe) || recipe->layout.columns % length == 0;
}

static const char *unit_base(const qg_unit *unit) { return qg_unit_listed(unit->id); }

static qg_status refuse_formats(const qg_unit *unit, const qg_recipe *a, const qg_recipe *b) {
    char name_a[QG_NAME_SIZE], name_b[QG_NAME_SIZE];
    qg_format_name(a->element, name_a);
    qg_format_name(b->element, name_b);
    return qg_fail(QG_ERROR_UNSUPPORTED, "%s does not multiply %s by %s with fp32 accumulation",
                   unit_base(unit), name_a, name_b);
}

static const qg_unit_row *scaled_row(const qg_unit *unit, const qg_recipe *a, const qg_recipe *b) {
    qg_format scale = qg_rule_scale_format(a->rule);
    if (scale != qg_rule_scale_format(b->rule))
        return NULL;
    return qg_unit_row_find(unit->id, a->element, b->element, QG_FORMAT_FP32, (int32_t)scale);
}

static bool is_block_scaled(const qg_unit *unit) {
    return unit->id == QG_UNIT_BLACKWELL_MX || unit->id == QG_UNIT_BLACKWELL_MXF4;
}

static bool takes_formats(const qg_unit *unit, const qg_recipe *a, const qg_recipe *b) {
    static const int32_t scales[] = {QG_UNIT_NO_SCALE, QG_FORMAT_E8M0, QG_FORMAT_UE4M3};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        if (qg_unit_row_find(unit->id, a->element, b->element, QG_FORMAT_FP32, scales[i]))
            return true;
    return false;
}

static qg_status plan_block_scaled(const qg_unit *unit, const qg_recipe *a, const qg_recipe *b,
                                   product_plan *plan) {
    plan->row = scaled_row(unit, a, b);
    plan->scales = SCALES_IN_UNIT;
    if (!plan->row)
        return qg_fail(QG_ERROR_UNSUPPORTED, "%s needs %s block scales on both operands",
                       unit_base(unit),
                       unit->id == QG_UNIT_BLACKWELL_MX ? "e8m0" : "e8m0, or ue4m3,");
    int block = plan->row->scale_block;
    if (!is_constant_over(a, block) || !is_constant_over(b, block))
        return qg_fail(QG_ERROR_UNSUPPORTED, "%s needs one scale for each %d elements of k",
                       unit_base(unit), block);
    return QG_OK;
}

// An interval of whole instructions within a scale exists only where a scale is of whole ones.
static qg_status check_promoted_scale(const qg_unit *unit, int unit_k, const qg_recipe *recipe) {
    if (!is_grouped(recipe))
        return QG_OK;
    int columns = recipe->layout.columns;
    if (qg_rule_scale_format(recipe->rule) != QG_FORMAT_FP32)
        return qg_fail(QG_ERROR_UNSUPPORTED,
                       "%s has no block scales: it takes groups with fp32 scales alone",
                       unit_base(unit));
    if (columns % unit_k != 0)
        return qg_fail(QG_ERROR_UNSUPPORTED,
                       "scales of %d elements of k do not suit %s: its instruction takes %d",
                       columns, unit_base(unit), unit_k);
    if (unit->promote == 0)
        return qg_fail(QG_ERROR_UNSUPPORTED, "%s needs +promote:%d for scales of %d elements of k",
                       unit_base(unit), columns, columns);
    if (columns % unit->promote != 0)
        return qg_fail(QG_ERROR_UNSUPPORTED,
                       "+promote:%lld does not divide the %d elements of k that share a scale",
                       (long long)unit->promote, columns);
    return QG_OK;
}

static qg_status plan_hardware(const qg_unit *unit, const qg_recipe *a, const qg_recipe *b,
                               product_plan *plan) {
    if (!takes_formats(unit, a, b))
        return refuse_formats(unit, a, b);
    if (a->structure != QG_STRUCTURE_PLAIN || b->structure != QG_STRUCTURE_PLAIN)
        return qg_fail(QG_ERROR_UNSUPPORTED,
                       "%s takes one code and one scale per element: no pair shifts, no planes",
                       unit_base(unit));
    if (is_block_scaled(unit))
        return plan_block_scaled(unit, a, b, plan);
    plan->row =
        qg_unit_row_find(unit->id, a->element, b->element, QG_FORMAT_FP32, QG_UNIT_NO_SCALE);
    plan->scales = is_grouped(a) || is_grouped(b) ? SCALES_IN_PROMOTION : SCALES_IN_EPILOGUE;
    qg_status status = check_promoted_scale(unit, plan->row->k, a);
    return status == QG_OK ? check_promoted_scale(unit, plan->row->k, b) : status;
}

// Instructions are whole in every interval and part, and intervals lie within a scale.
static qg_status plan_intervals(const qg_unit *unit, int64_t k, product_plan *plan) {
    if (unit->promote % plan->unit_k != 0)
        return qg_fail(QG_ERROR_UNSUPPORTED,
                       "+promote:%lld is no multiple of the %lld elements of k of %s's instruction",
                       (long long)unit->promote, (long long)plan->unit_k, unit_base(unit));
    int64_t parts = unit->split > 1 ? unit->split : 1;
    plan->part = qg_round_up(qg_ceil_divide(k, parts), plan->unit_k);
    if (parts > 1 && k > plan->part && plan->scales == SCALES_IN_PROMOTION &&
        plan->part % unit->promote != 0)
        return qg_fail(QG_ERROR_UNSUPPORTED,
                       "parts of %lld elements of k (+split:%lld) cut the scales of +promote:%lld",
                       (long long)plan->part, (long long)unit->split, (long long)unit->promote);
    return QG_OK;
}

static qg_status plan_product(const qg_unit *unit, const qg_recipe *a, const qg_recipe *b,
                              int64_t k, qg_format out_type, product_plan *plan) {
    *plan = (product_plan){.scales = SCALES_FOLDED, .unit_k = 1};
    if (out_type != QG_FORMAT_FP32 && out_type != QG_FORMAT_BF16 && out_type != QG_FORMAT_FP16)
        return qg_fail(QG_ERROR_ARGUMENT, "the output of a product is fp32, bf16 or fp16");
    if (unit->id >= QG_UNIT_NATIVE)
        return qg_fail(QG_ERROR_UNSUPPORTED,
                       "the emulator has no unit native: it is the product of backends cpu, cuda");
    if (!qg_unit_is_software(unit->id)) {
        qg_status status = plan_hardware(unit, a, b, plan);
        if (status != QG_OK)
            return status;
        plan->unit_k = plan->row->k;
    }
    return plan_intervals(unit, k, plan);
}

qg_status qg_unit_takes(const qg_unit *unit, const qg_recipe *a, const qg_recipe *b, int64_t k,
                        qg_format out_type) {
    product_plan plan;
    return plan_product(unit, a, b, k < 1 ? 1 : k, out_type, &plan);
}

static int64_t common_divisor(int64_t a, int64_t b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

void qg_unit_fit(qg_unit *unit, const qg_recipe *a, const qg_recipe *b) {
    if (unit->promote != 0 || qg_unit_is_software(unit->id) || unit->id >= QG_UNIT_NATIVE ||
        is_block_scaled(unit))
        return;
    if (is_grouped(a))
        unit->promote = a->layout.columns;
    if (is_grouped(b))
        unit->promote = common_divisor(b->layout.columns, unit->promote);
}

static bool is_wide(const qg_unit *unit) {
    return unit->id == QG_UNIT_EXACT || unit->id == QG_UNIT_FP64;
}

// ---------------------------------------------------------------------------------------- variants

static struct {
    const char *name;
    qg_unit_panel panel;
} variants[QG_MODEL_COUNT];

void qg_unit_variant_set(int model, const char *name, qg_unit_panel panel) {
    variants[model].name = name;
    variants[model].panel = panel;
}

// ------------------------------------------------------------------------------------- the product

// An operand as the chains read it.
typedef struct operand_view {
    const qg_matmul_operand *in;
    qg_element element;
    qg_shape shape;
    qg_unit_matrix matrix; // raw codes
    float *values;         // dequantized, of software units
    uint8_t *block_scales; // of block-scaled units, one byte per scale_block elements
    float *factors;        // (rows) scales that enter in the epilogue
    float *promotion;      // (rows, intervals) scales that enter with promotions
} operand_view;

typedef struct product_job {
    const qg_unit *unit;
    const qg_matmul_options *options;
    product_plan plan;
    int64_t m, n, k;
    operand_view a, b;
    const float *a_values, *b_values; // what software units multiply
    int threads;
    const char *impl;
    float *acc, *part; // (m, n)
    float *promoted;   // (m, n) an interval's sums, of software units
} product_job;

// What a task on one row of the output reads and writes.
typedef struct row_work {
    const product_job *job;
    int64_t from, length; // of K
    float *sum;
    const float *terms; // (m, n)
    void *out;
} row_work;

typedef void (*row_task)(const row_work *w, int64_t row);

static void for_each_row(const row_work *w, row_task task) {
    int64_t m = w->job->m;
#pragma omp parallel num_threads(w->job->threads)
    {
        qg_fp_state saved = qg_fp_enter();
#pragma omp for schedule(static)
        for (int64_t row = 0; row < m; row++)
            task(w, row);
        qg_fp_leave(saved);
    }
}

// The scales of the rows for element `at` of K, `stride` apart.
static void read_factors(const operand_view *v, int64_t at, float *factors, int64_t stride) {
    for (int64_t row = 0; row < v->shape.blocks.m; row++) {
        const uint8_t *in =
            v->in->scales + qg_scale_index(&v->shape.blocks, row, at) * v->shape.scale_bytes;
        uint32_t bits = (uint32_t)little_endian_read(in, v->shape.scale_bytes);
        factors[row * stride] =
            qg_scale_value(v->in->recipe, &v->element, v->in->tensor_scale, bits);
    }
}

// What a tensor's codes are multiplied by beside the block scales: the decoding scale of block 1.
static void tensor_factors(const operand_view *v) {
    const qg_recipe *recipe = v->in->recipe;
    uint64_t one = qg_encode_ue4m3(1.0f);
    float factor =
        qg_rule_has_tensor_scale(recipe->rule)
            ? qg_two_level_decode_scale(recipe->rule, &v->element, v->in->tensor_scale, one)
            : 1.0f;
    for (int64_t row = 0; row < v->shape.blocks.m; row++)
        v->factors[row] = factor;
}

// The scales of all intervals of `length` elements of K.
static void read_promotion(const operand_view *v, int64_t from, int64_t length, int64_t interval) {
    int64_t intervals = qg_ceil_divide(length, interval);
    for (int64_t i = 0; i < intervals; i++)
        read_factors(v, from + i * interval, v->promotion + i, intervals);
}

// Promotion included.
static qg_status chain_hardware(product_job *job, int64_t from, int64_t length, float *acc) {
    const qg_unit_row *row = job->plan.row;
    qg_unit_product p = {.row = row, .m = job->m, .n = job->n, .k = length, .acc = acc};
    p.a = job->a.matrix;
    p.b = job->b.matrix;
    p.threads = job->threads;
    p.promote = job->unit->promote;
    if (job->plan.scales == SCALES_IN_PROMOTION) {
        read_promotion(&job->a, from, length, p.promote);
        read_promotion(&job->b, from, length, p.promote);
        p.row_factors = job->a.promotion;
        p.column_factors = job->b.promotion;
    }
    p.a.codes += from * job->a.shape.code_bytes;
    p.b.codes += from * job->b.shape.code_bytes;
    if (row->scale != QG_UNIT_NO_SCALE) {
        p.a.scales += from / row->scale_block;
        p.b.scales += from / row->scale_block;
    }
    if (variants[row->model].panel && !job->options->scalar) {
        qg_status status = variants[row->model].panel(&p);
        if (status == QG_OK)
            job->impl = variants[row->model].name;
        if (status != QG_ERROR_UNSUPPORTED)
            return status;
    }
    return qg_unit_panel_scalar(&p);
}

static void chain_row(const row_work *w, int64_t i) {
    const product_job *job = w->job;
    unit_chain chain = qg_unit_chain_of(job->unit);
    const float *a = job->a_values + i * job->k + w->from;
    for (int64_t j = 0; j < job->n; j++)
        w->sum[i * job->n + j] =
            chain(job->unit, w->length, a, job->b_values + j * job->k + w->from);
}

static software_product software_operands(const product_job *job, int64_t from, int64_t length) {
    software_product p = {.unit = job->unit, .m = job->m, .n = job->n, .k = length};
    p.stride = job->k;
    p.a = job->a_values + from;
    p.b = job->b_values + from;
    p.threads = job->threads;
    return p;
}

static qg_status chain(product_job *job, int64_t from, int64_t length, float *acc) {
    if (job->plan.row)
        return chain_hardware(job, from, length, acc);
    if (qg_software_has_vectors() && !job->options->scalar) {
        software_product p = software_operands(job, from, length);
        job->impl = qg_unit_isa();
        return qg_software_chains(&p, acc);
    }
    row_work work = {.job = job, .from = from, .length = length, .sum = acc};
    for_each_row(&work, chain_row);
    return QG_OK;
}

static void add_row(const row_work *w, int64_t i) {
    int64_t n = w->job->n;
    for (int64_t j = 0; j < n; j++)
        w->sum[i * n + j] = w->sum[i * n + j] + w->terms[i * n + j];
}

static void add_terms(const product_job *job, float *sum, const float *terms) {
    row_work work = {.job = job, .sum = sum, .terms = terms};
    for_each_row(&work, add_row);
}

// One part of K, promotion included.
static qg_status sum_part(product_job *job, int64_t from, int64_t length, float *sum) {
    int64_t interval = job->unit->promote;
    if (interval == 0 || job->plan.row)
        return chain(job, from, length, sum);
    memset(sum, 0, (size_t)(job->m * job->n) * sizeof *sum);
    for (int64_t at = from; at < from + length; at += interval) {
        int64_t rest = from + length - at;
        qg_status status = chain(job, at, rest < interval ? rest : interval, job->promoted);
        if (status != QG_OK)
            return status;
        add_terms(job, sum, job->promoted);
    }
    return QG_OK;
}

static qg_status sum_all(product_job *job) {
    for (int64_t from = 0; from < job->k; from += job->plan.part) {
        int64_t rest = job->k - from;
        int64_t length = rest < job->plan.part ? rest : job->plan.part;
        qg_status status = sum_part(job, from, length, from == 0 ? job->acc : job->part);
        if (status != QG_OK)
            return status;
        if (from > 0)
            add_terms(job, job->acc, job->part);
    }
    return QG_OK;
}

// -------------------------------------------------------------------------------------- the output

// out[at] = RNE(value); a NaN is all ones but the sign. product_store_internal.h gives the same.
static void store(const product_job *job, void *out, int64_t at, double value) {
    qg_format type = job->options->out_type;
    qg_format_info info = qg_format_describe(type);
    static const qg_conversion nearest = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
    uint64_t code = qg_encode(&info, value, &nearest, 0);
    if (type == QG_FORMAT_FP32)
        ((float *)out)[at] = qg_float_of_bits((uint32_t)code);
    else
        ((uint16_t *)out)[at] = (uint16_t)code;
}

static void finish_values(const product_job *job, int64_t count, const float *values, void *out,
                          int64_t at) {
    if (!job->options->scalar)
        store_floats(job->options->out_type, count, values, out, at);
    else
        for (int64_t l = 0; l < count; l++)
            store(job, out, at + l, values[l]);
}

static void finish_row(const row_work *w, int64_t i) {
    enum { COUNT = 256 };
    const product_job *job = w->job;
    const float *bias = job->options->bias, *acc = job->acc + i * job->n;
    bool scaled = job->plan.scales == SCALES_IN_EPILOGUE || job->plan.scales == SCALES_IN_UNIT;
    for (int64_t j = 0; j < job->n; j += COUNT) {
        float values[COUNT];
        int64_t count = job->n - j < COUNT ? job->n - j : COUNT;
        memcpy(values, acc + j, (size_t)count * sizeof *values);
        for (int64_t l = 0; l < count && scaled; l++)
            values[l] = values[l] * (job->a.factors[i] * job->b.factors[j + l]);
        for (int64_t l = 0; l < count && bias; l++)
            values[l] = values[l] + bias[j + l];
        finish_values(job, count, values, w->out, i * job->n + j);
    }
}

static void finish_wide_row(const row_work *w, int64_t i) {
    const product_job *job = w->job;
    const float *bias = job->options->bias;
    for (int64_t j = 0; j < job->n; j++)
        store(job, w->out, i * job->n + j,
              qg_unit_wide_sum(job->unit, job->k, job->a_values + i * job->k,
                               job->b_values + j * job->k, bias ? &bias[j] : NULL));
}

static qg_status finish(product_job *job, void *out) {
    row_work work = {.job = job, .out = out};
    bool wide = is_wide(job->unit);
    if (wide && qg_software_has_vectors() && !job->options->scalar) {
        software_product p = software_operands(job, 0, job->k);
        job->impl = qg_unit_isa();
        return qg_software_wide_sums(&p, job->options->bias, job->options->out_type, out);
    }
    for_each_row(&work, wide ? finish_wide_row : finish_row);
    return QG_OK;
}

// ----------------------------------------------------------------------------------------- buffers

static qg_status allocate_floats(float **out, int64_t count, const char *what) {
    void *room;
    qg_status status = qg_allocate(&room, count, sizeof(float), what);
    *out = room;
    return status;
}

static qg_status view_operand(const qg_matmul_operand *in, int64_t rows, int64_t k,
                              operand_view *v) {
    qg_status status = qg_shape_of(in->recipe, rows, k, &v->shape);
    if (status != QG_OK)
        return status;
    v->in = in;
    v->element = qg_element_of(in->recipe->element);
    v->matrix.format = in->recipe->element;
    v->matrix.codes = in->codes;
    v->matrix.stride = k * v->shape.code_bytes;
    return allocate_floats(&v->factors, rows, "the scales of a product");
}

static qg_status dequantize_view(operand_view *v, int threads) {
    int64_t rows = v->shape.blocks.m, k = v->shape.blocks.k;
    qg_status status = allocate_floats(&v->values, rows * k, "a dequantized operand");
    if (status != QG_OK)
        return status;
    return qg_emulator_dequantize(v->in->recipe, rows, k, v->in->codes, v->in->scales,
                                  v->in->tensor_scale, threads, v->values);
}

// One byte per scale_block elements, whatever the layout; 0 past the last element.
static qg_status expand_scales(const qg_unit_row *row, operand_view *v) {
    int64_t rows = v->shape.blocks.m, k = v->shape.blocks.k;
    int64_t groups = qg_round_up(k, row->k) / row->scale_block, bytes;
    void *room = NULL;
    if (!qg_size_multiply(rows, groups, &bytes))
        return qg_fail(QG_ERROR_OVERFLOW, "the scales of a product exceed 2^63 - 1 bytes");
    qg_status status = qg_allocate(&room, bytes, 1, "the scales of a product");
    v->block_scales = room;
    if (status != QG_OK)
        return status;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t g = 0; g * row->scale_block < k; g++)
            v->block_scales[i * groups + g] =
                v->in->scales[qg_scale_index(&v->shape.blocks, i, g * row->scale_block)];
    v->matrix.scales = v->block_scales;
    v->matrix.scale_stride = groups;
    return QG_OK;
}

static qg_status allocate_sums(product_job *job) {
    int64_t count, bytes;
    if (!qg_size_multiply(job->m, job->n, &count) ||
        !qg_size_multiply(count, (int64_t)sizeof(float), &bytes))
        return qg_fail(QG_ERROR_OVERFLOW, "a product of %lld x %lld exceeds 2^63 - 1 bytes",
                       (long long)job->m, (long long)job->n);
    qg_status status = QG_OK;
    if (!is_wide(job->unit))
        status = allocate_floats(&job->acc, count, "the sums of a product");
    if (status == QG_OK && job->unit->promote > 0 && !job->plan.row)
        status = allocate_floats(&job->promoted, count, "the sums of a promotion interval");
    if (status == QG_OK && job->plan.part < job->k)
        status = allocate_floats(&job->part, count, "the sums of a part of k");
    return status;
}

static qg_status allocate_promotion(const product_job *job, operand_view *v) {
    int64_t longest = job->plan.part < job->k ? job->plan.part : job->k, count;
    if (!qg_size_multiply(v->shape.blocks.m, qg_ceil_divide(longest, job->unit->promote), &count))
        return qg_fail(QG_ERROR_OVERFLOW, "the scales of a product exceed 2^63 - 1 bytes");
    return allocate_floats(&v->promotion, count, "the scales of a product");
}

static void release_view(operand_view *v) {
    qg_release(v->values);
    qg_release(v->block_scales);
    qg_release(v->factors);
    qg_release(v->promotion);
}

static void release_job(product_job *job) {
    release_view(&job->a);
    release_view(&job->b);
    qg_release(job->acc);
    qg_release(job->promoted);
    qg_release(job->part);
}

// Threads that a product of this size is worth.
static int product_threads(int wanted, int64_t m, int64_t n, int64_t k) {
    int64_t outputs, products;
    if (!qg_size_multiply(m, n, &outputs) || !qg_size_multiply(outputs, k, &products))
        products = INT64_MAX;
    return thread_count(wanted, products / 4);
}

static qg_status prepare(product_job *job) {
    if (job->plan.scales == SCALES_FOLDED) {
        qg_status status = dequantize_view(&job->a, job->threads);
        if (status == QG_OK)
            status = dequantize_view(&job->b, job->threads);
        job->a_values = job->a.values;
        job->b_values = job->b.values;
        return status;
    }
    if (job->plan.scales == SCALES_IN_UNIT) {
        tensor_factors(&job->a);
        tensor_factors(&job->b);
        qg_status status = expand_scales(job->plan.row, &job->a);
        return status == QG_OK ? expand_scales(job->plan.row, &job->b) : status;
    }
    if (job->plan.scales == SCALES_IN_PROMOTION) {
        qg_status status = allocate_promotion(job, &job->a);
        return status == QG_OK ? allocate_promotion(job, &job->b) : status;
    }
    read_factors(&job->a, 0, job->a.factors, 1);
    read_factors(&job->b, 0, job->b.factors, 1);
    return QG_OK;
}

static qg_status run(product_job *job, void *out) {
    qg_status status = allocate_sums(job);
    if (status != QG_OK)
        return status;
    qg_fp_state saved = qg_fp_enter();
    if (!is_wide(job->unit))
        status = sum_all(job);
    if (status == QG_OK)
        status = finish(job, out);
    qg_fp_leave(saved);
    return status;
}

qg_status qg_emulator_scaled_matmul(const qg_unit *unit, const qg_matmul_options *options,
                                    int64_t m, int64_t n, int64_t k, const qg_matmul_operand *a,
                                    const qg_matmul_operand *b, void *out, const char **impl) {
    product_job job = {.unit = unit, .options = options, .m = m, .n = n, .k = k, .impl = "scalar"};
    qg_status status = view_operand(a, m, k, &job.a);
    if (status == QG_OK)
        status = view_operand(b, n, k, &job.b);
    if (status == QG_OK)
        status = plan_product(unit, a->recipe, b->recipe, k, options->out_type, &job.plan);
    job.threads = product_threads(options->threads, m, n, k);
    if (status == QG_OK)
        status = prepare(&job);
    if (status == QG_OK)
        status = run(&job, out);
    release_job(&job);
    if (status == QG_OK && impl)
        *impl = job.impl;
    return status;
}

qg_status qg_emulator_matmul(const qg_unit *unit, const qg_matmul_options *options, int64_t m,
                             int64_t n, int64_t k, const float *a, const float *b, void *out) {
    if (m < 1 || n < 1 || k < 1)
        return qg_fail(QG_ERROR_ARGUMENT, "m, n and k of a product must be at least 1");
    if (!qg_unit_is_software(unit->id))
        return qg_fail(QG_ERROR_UNSUPPORTED, "%s multiplies quantized operands alone",
                       unit_base(unit));
    product_job job = {.unit = unit, .options = options, .m = m, .n = n, .k = k, .impl = "scalar"};
    job.a_values = a;
    job.b_values = b;
    job.threads = product_threads(options->threads, m, n, k);
    qg_status status = plan_product(unit, NULL, NULL, k, options->out_type, &job.plan);
    if (status == QG_OK)
        status = run(&job, out);
    release_job(&job);
    return status;
}
