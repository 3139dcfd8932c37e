// Operation `gemm`: quantize a (m, k) and b (n, k), multiply them on a matrix unit, compare with
// the exact product of the inputs (`source`) and of the dequantized operands (`quantized`): what
// quantization and accumulation cost together, and accumulation alone.
//
// Plans vary the unit first: operands and reference products stay in the workspace, labelled with
// all that they depend on, and consecutive cases find them there.
// input_digest: XXH3-64 of the digests of a, b and, if there is one, bias; output_digest: of the
// output, (m, n) row-major in its type. Results do not depend on threads or on cases before.
#include <op_internal.h>

#include <case_label.h>
#include <op_compare.h>
#include <qg_backend_list.h>
#include <qg_codec.h>
#include <qg_cpu.h>
#include <qg_elementary.h>
#include <qg_exact_product.h>
#include <qg_init.h>
#include <qg_philox.h>
#include <qg_size.h>

#include <inttypes.h>
#include <stdio.h>

// What is known of a quantized operand beside its codes and scales. It opens its buffer.
typedef struct operand_head {
    float tensor_scale;
    qg_counts counts;
} operand_head;

enum { ALIGNMENT = 64, HEAD_SIZE = 2 * ALIGNMENT };
_Static_assert(sizeof(operand_head) <= HEAD_SIZE, "the head fits its place");

typedef struct operand {
    const qg_recipe *recipe;
    int64_t rows;
    char label[QG_LABEL_SIZE];
    qg_input input;
    qg_shape shape;
    operand_head *head;
    uint8_t *codes, *scales;
} operand;

// A reference product with |a| |b|^T.
typedef struct reference {
    const double *product, *size;
} reference;

typedef struct gemm {
    const qg_case *c;
    const qg_backend *backend;
    qg_workspace *workspace;
    int64_t outputs; // m * n
    operand operand[2];
    float *bias;         // (n), or NULL
    void *out;           // (m, n) of the output type
    const float *values; // the same as binary32
} gemm;

// The emulator has no product of its own, and says so.
static bool is_native(const gemm *g) {
    return g->c->matrix_unit->id == QG_UNIT_NATIVE && !qg_backend_is_emulator(g->c->backend);
}

// ----------------------------------------------------------------------------------------- times

// Of a reference product, per product of two elements.
static const double REFERENCE_NS = 0.15;

// As measured on a Zen 4: rough, as a unit without a vector variant takes a hundred times as long
// as one with it.
double qg_op_unit_ns(const qg_unit *unit) {
    static const double VECTOR = 0.05, EXACT = 0.15, MODEL = 16, WIDEST = 30, NATIVE = 0.05;
    switch (unit->id) {
    case QG_UNIT_NATIVE: return NATIVE;
    case QG_UNIT_EXACT: return EXACT;
    case QG_UNIT_CDNA1_MFMA: return WIDEST;
    case QG_UNIT_CDNA2_MFMA:
    case QG_UNIT_CDNA2_MFMA_1K:
    case QG_UNIT_CDNA3_MFMA: return MODEL;
    default: return VECTOR;
    }
}

// Threads worth using for that many nanoseconds per product of two elements: one each 50 us.
static int threads_for(const gemm *g, double ns) {
    static const double NS_PER_ELEMENT = 3; // what an element stands for in qg_workspace_threads
    double elements = (double)g->outputs * (double)g->c->k * ns / NS_PER_ELEMENT;
    return qg_workspace_threads(g->workspace, elements < 1e18 ? (int64_t)elements : INT64_MAX);
}

// ---------------------------------------------------------------------------------------- labels

// Of the exact product: of the inputs, or of the operands quantized by the recipes.
static void label_product(const qg_case *c, bool quantized, char out[QG_LABEL_SIZE]) {
    case_label label = {0};
    case_label_append(&label, "%" PRId64 " %" PRId64 " %d\n", c->m, c->n, c->bias);
    case_label_source(&label, c);
    for (int which = 0; quantized && which < 2; which++)
        case_label_recipe(&label, c, which);
    case_label_finish(&label, out);
}

static void label_operand(const qg_case *c, int which, char out[QG_LABEL_SIZE]) {
    case_label label = {0};
    case_label_append(&label, "%d %" PRId64 "\n", which, which ? c->n : c->m);
    case_label_source(&label, c);
    case_label_recipe(&label, c, which);
    case_label_finish(&label, out);
}

// -------------------------------------------------------------------------------------- operands

// Whether a code may be that of a number beyond the largest value.
static void find_large_codes(qg_format element, bool is_large[256]) {
    qg_format_info info = qg_format_describe(element);
    double largest = qg_decode(&info, info.max_code);
    for (uint32_t code = 0; code < 256; code++) {
        double value = qg_decode(&info, code);
        is_large[code] = !(value < largest && value > -largest);
    }
}

// Half of the elements cannot have saturated where less than half of the codes are large.
static bool may_be_saturated(const operand *o) {
    bool is_large[256];
    int64_t count = o->shape.codes_size, large = 0;
    // Below zero an unsigned format has its smallest code, however far.
    if (o->shape.code_bytes != 1 || o->recipe->structure != QG_STRUCTURE_PLAIN ||
        !qg_format_describe(o->recipe->element).sign)
        return true;
    find_large_codes(o->recipe->element, is_large);
    for (int64_t i = 0; i < count; i++)
        large += is_large[o->codes[i]];
    return 2 * large > count;
}

// The CPU runtime does not count. Where the counts may matter the emulator makes the same bytes
// once more and counts.
static qg_status quantize(const gemm *g, int which, operand *o) {
    const qg_case *c = g->c;
    qg_quantizing q;
    o->head->tensor_scale = 1;
    o->head->counts = (qg_counts){0};
    qg_status status = qg_workspace_quantize(g->workspace, c, which, o->codes, o->scales,
                                             &o->head->tensor_scale, NULL);
    if (status != QG_OK || !may_be_saturated(o))
        return status;
    status = qg_workspace_quantizing(g->workspace, c, which, &q);
    if (status != QG_OK)
        return status;
    return qg_emulator_quantize(o->recipe, &q.options, o->rows, c->k, o->input.x, o->codes,
                                o->scales, &o->head->tensor_scale, &o->head->counts);
}

static void place(operand *o, void *bytes) {
    o->head = bytes;
    o->codes = (uint8_t *)bytes + HEAD_SIZE;
    o->scales = o->codes + qg_round_up(o->shape.codes_size, ALIGNMENT);
}

static bool operand_size(const qg_shape *shape, int64_t *bytes) {
    return qg_size_add(shape->codes_size, HEAD_SIZE + ALIGNMENT, bytes) &&
           qg_size_add(*bytes, shape->scales_size, bytes);
}

// Codes and scales, made or found.
static qg_status take_operand(gemm *g, int which) {
    operand *o = &g->operand[which];
    qg_buffer buffer = which ? QG_BUFFER_OPERAND_B : QG_BUFFER_OPERAND_A;
    label_operand(g->c, which, o->label);
    void *bytes = qg_workspace_find(g->workspace, buffer, o->label);
    if (bytes) {
        place(o, bytes);
        return QG_OK;
    }
    int64_t size;
    if (!operand_size(&o->shape, &size))
        return qg_fail(QG_ERROR_OVERFLOW, "a quantized operand exceeds 2^63 - 1 bytes");
    qg_status status = qg_workspace_room(g->workspace, buffer, size, 1, &bytes);
    if (status != QG_OK)
        return status;
    place(o, bytes);
    status = quantize(g, which, o);
    if (status == QG_OK)
        qg_workspace_label(g->workspace, buffer, o->label);
    return status;
}

static qg_status dequantize(gemm *g, int which, const float **values) {
    const operand *o = &g->operand[which];
    qg_buffer buffer = which ? QG_BUFFER_VALUES_B : QG_BUFFER_VALUES_A;
    void *room = qg_workspace_find(g->workspace, buffer, o->label);
    *values = room;
    if (room)
        return QG_OK;
    int64_t count = o->rows * g->c->k; // it fits: the input has been made
    qg_status status = qg_workspace_room(g->workspace, buffer, count, sizeof(float), &room);
    if (status != QG_OK)
        return status;
    *values = room;
    status = qg_cpu_dequantize(o->recipe, NULL, o->rows, g->c->k, o->codes, o->scales,
                               o->head->tensor_scale, qg_workspace_threads(g->workspace, count),
                               room, NULL);
    if (status == QG_OK)
        qg_workspace_label(g->workspace, buffer, o->label);
    return status;
}

static qg_status open_operand(gemm *g, int which) {
    operand *o = &g->operand[which];
    o->recipe = which ? g->c->recipe_b : g->c->recipe;
    o->rows = which ? g->c->n : g->c->m;
    qg_status status = qg_shape_of(o->recipe, o->rows, g->c->k, &o->shape);
    return status == QG_OK ? qg_workspace_input(g->workspace, g->c, which, &o->input) : status;
}

// N(0, 1), as law `normal`, from a stream of its own; binary32 whatever the input type.
static qg_status make_bias(gemm *g) {
    void *room;
    qg_status status =
        qg_workspace_room(g->workspace, QG_BUFFER_BIAS, g->c->n, sizeof(float), &room);
    g->bias = room;
    for (int64_t j = 0; status == QG_OK && j < g->c->n; j++) {
        uint32_t word = qg_philox_word(g->c->seed, QG_STREAM_BIAS, (uint64_t)j);
        g->bias[j] = (float)qg_normal_quantile(((double)word + 0.5) * 0x1p-32);
    }
    return status;
}

static uint64_t input_digest(const gemm *g) {
    uint64_t digests[3] = {g->operand[0].input.digest, g->operand[1].input.digest};
    if (g->bias)
        digests[2] = qg_digest_bytes(g->bias, (size_t)g->c->n * sizeof *g->bias);
    return qg_digest_bytes(digests, (g->bias ? 3 : 2) * sizeof *digests);
}

// -------------------------------------------------------------------------------------- products

static qg_status multiply(gemm *g, qg_case_result *result) {
    qg_matmul_options options = {.out_type = g->c->out_type,
                                 .bias = g->bias,
                                 .threads = threads_for(g, qg_op_unit_ns(g->c->matrix_unit))};
    qg_format_info info = qg_format_describe(g->c->out_type);
    int64_t bytes = qg_format_code_bytes(&info);
    qg_matmul_operand in[2];
    for (int i = 0; i < 2; i++) {
        const operand *o = &g->operand[i];
        in[i] = (qg_matmul_operand){o->recipe, o->codes, o->scales, o->head->tensor_scale};
    }
    const char *impl = "";
    qg_status status =
        qg_workspace_room(g->workspace, QG_BUFFER_OUTPUT, g->outputs, bytes, &g->out);
    if (status == QG_OK)
        status =
            g->backend->scaled_matmul(is_native(g) ? NULL : g->c->matrix_unit, &options, g->c->m,
                                      g->c->n, g->c->k, &in[0], &in[1], g->out, &impl);
    if (status != QG_OK)
        return status;
    snprintf(result->impl_used, sizeof result->impl_used, "%s %s", g->backend->name, impl);
    result->output_digest = qg_digest_bytes(g->out, (size_t)(g->outputs * bytes));
    return QG_OK;
}

// The exact product of the inputs or of the dequantized operands, made or found.
static qg_status take_reference(gemm *g, bool quantized, reference *out) {
    char label[QG_LABEL_SIZE];
    qg_buffer buffer = quantized ? QG_BUFFER_QUANTIZED_PRODUCT : QG_BUFFER_SOURCE_PRODUCT;
    label_product(g->c, quantized, label);
    void *room = qg_workspace_find(g->workspace, buffer, label);
    bool found = room != NULL;
    qg_status status = QG_OK;
    if (!found)
        status = qg_workspace_room(g->workspace, buffer, g->outputs, 2 * sizeof(double), &room);
    double *product = room;
    const float *x[2] = {g->operand[0].input.x, g->operand[1].input.x};
    for (int i = 0; !found && quantized && status == QG_OK && i < 2; i++)
        status = dequantize(g, i, &x[i]);
    if (!found && status == QG_OK)
        status = qg_exact_product(g->c->m, g->c->n, g->c->k, x[0], x[1], g->bias,
                                  threads_for(g, REFERENCE_NS), product, product + g->outputs);
    if (status != QG_OK)
        return status;
    if (!found)
        qg_workspace_label(g->workspace, buffer, label);
    *out = (reference){product, product + g->outputs};
    return QG_OK;
}

// ------------------------------------------------------------------------------------ comparison

static void widen(qg_format type, int64_t count, const uint16_t *codes, float *out) {
    qg_format_info info = qg_format_describe(type);
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)qg_decode(&info, codes[i]); // exact
}

// room: for (m, n).
static void widen_output(gemm *g, float *room) {
    g->values = g->out;
    if (g->c->out_type == QG_FORMAT_FP32)
        return;
    widen(g->c->out_type, g->outputs, g->out, room);
    g->values = room;
}

static void round_to_float(int64_t count, const double *x, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)x[i];
}

// ranks: room for (m, n), the reference as ranks compare it.
static qg_status compare(const gemm *g, const reference *r, float *ranks, qg_comparison *out) {
    int threads = qg_workspace_threads(g->workspace, g->outputs);
    qg_status status = qg_sums_measure_product(g->outputs, r->product, g->values, g->c->out_type,
                                               threads, &out->sums);
    if (status != QG_OK)
        return status;
    out->has_sums = true;
    out->backward_error = qg_backward_error(g->outputs, r->product, g->values, r->size);
    round_to_float(g->outputs, r->product, ranks);
    return qg_spearman(g->outputs, ranks, g->values, &out->spearman);
}

// The order of summation of a native product is a library's own: what holds it is a bound, derived
// for what was computed from the quantized operands. Where none is known, as of tensor cores, the
// product is measured and not judged.
static void hold_bound(const gemm *g, const reference *quantized, qg_case_result *result) {
    const qg_case *c = g->c;
    const qg_backend *backend = g->backend;
    if (!backend->matmul_bound)
        return;
    op_product p = {.count = g->outputs,
                    .out = g->values,
                    .exact = quantized->product,
                    .size = quantized->size,
                    .bound = backend->matmul_bound(c->recipe, c->recipe_b, c->k, c->out_type),
                    .underflow = backend->matmul_underflow(c->k, c->out_type)};
    op_hold_bound(c, &p, result);
}

static qg_status compare_all(gemm *g, qg_case_result *result) {
    void *room;
    qg_status status =
        qg_workspace_room(g->workspace, QG_BUFFER_FLOATS, g->outputs, 2 * sizeof(float), &room);
    if (status == QG_OK)
        widen_output(g, room);
    for (int i = 0; status == QG_OK && i < 2; i++) {
        reference r;
        status = take_reference(g, i == 1, &r);
        if (status == QG_OK)
            status = compare(g, &r, (float *)room + g->outputs, &result->compared[i]);
        if (status == QG_OK && i == 1 && is_native(g))
            hold_bound(g, &r, result);
    }
    return status;
}

// A backend refuses what its own product does not take.
static qg_status check_unit(const gemm *g) {
    const qg_case *c = g->c;
    if (is_native(g))
        return QG_OK;
    return qg_unit_takes(c->matrix_unit, c->recipe, c->recipe_b, c->k, c->out_type);
}

static qg_status measure(gemm *g, qg_case_result *result) {
    const qg_case *c = g->c;
    qg_status status = check_unit(g);
    if (status == QG_OK && !qg_size_multiply(c->m, c->n, &g->outputs))
        status = qg_fail(QG_ERROR_OVERFLOW, "a product of %" PRId64 " x %" PRId64 " overflows",
                         c->m, c->n);
    for (int i = 0; status == QG_OK && i < 2; i++)
        status = open_operand(g, i);
    if (status == QG_OK && c->bias)
        status = make_bias(g);
    for (int i = 0; status == QG_OK && i < 2; i++)
        status = take_operand(g, i);
    if (status == QG_OK)
        status = multiply(g, result);
    if (status == QG_OK)
        status = compare_all(g, result);
    if (status == QG_OK)
        result->input_digest = input_digest(g);
    return status;
}

static void judge(const gemm *g, qg_case_result *result) {
    for (int i = 0; i < 2; i++)
        qg_op_judge_pairs(g->c, &result->compared[i].sums, "exact product", result);
    for (int i = 0; i < 2; i++)
        qg_op_judge_saturation(&g->operand[i].head->counts, result);
}

void qg_op_gemm_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result) {
    gemm g = {.c = c, .backend = qg_backend_find(c->backend), .workspace = workspace};
    if (!g.backend || !g.backend->scaled_matmul) {
        qg_case_result_set(result, QG_CASE_FAILED, "backend %s cannot run operation gemm",
                           c->backend);
        return;
    }
    qg_fp_state saved = qg_fp_enter();
    qg_status status = measure(&g, result);
    qg_fp_leave(saved);
    if (status == QG_OK) {
        judge(&g, result);
        return;
    }
    qg_case_result_clear(result, c); // half a measurement is none
    qg_case_result_set(result, status == QG_ERROR_UNSUPPORTED ? QG_CASE_SKIPPED : QG_CASE_FAILED,
                       "%s", qg_detail());
}

// ----------------------------------------------------------------------------------------- costs

// *sum += rows * columns * size.
static bool add_matrix(int64_t rows, int64_t columns, int64_t size, int64_t *sum) {
    int64_t count, bytes;
    return qg_size_multiply(rows, columns, &count) && qg_size_multiply(count, size, &bytes) &&
           qg_size_add(*sum, bytes, sum);
}

static int64_t bytes_per_element(const qg_case *c, const qg_recipe *recipe) {
    // Input, dequantized for the reference, and the same or packed codes inside the unit.
    int64_t bytes = 3 * (int64_t)sizeof(float);
    bytes += c->input_type == QG_FORMAT_FP32 ? 0 : (int64_t)sizeof(uint16_t); // input as given
    bytes += recipe->rule == QG_RULE_DELAYED ? (int64_t)sizeof(float) : 0;    // inputs before it
    return bytes;
}

int64_t qg_op_gemm_bytes(const qg_case *c) {
    enum {
        // output, two conversions, two references of two values, three sums inside the unit
        BYTES_PER_OUTPUT = 6 * sizeof(float) + 4 * sizeof(double)
    };
    int64_t total = 0;
    for (int i = 0; i < 2; i++) {
        const qg_recipe *recipe = i ? c->recipe_b : c->recipe;
        int64_t rows = i ? c->n : c->m, size;
        qg_shape shape;
        if (qg_shape_of(recipe, rows, c->k, &shape) != QG_OK || !operand_size(&shape, &size) ||
            !qg_size_add(total, size, &total) ||
            !add_matrix(rows, c->k, bytes_per_element(c, recipe), &total))
            return INT64_MAX;
    }
    return add_matrix(c->m, c->n, BYTES_PER_OUTPUT, &total) ? total : INT64_MAX;
}

// Operands and references are shared by some units: a part of what they take.
double qg_op_gemm_cost(const qg_case *c) {
    static const double UNIT_COST = 50, OPERAND = 2, OUTPUT = 50; // ns
    double m = (double)c->m, n = (double)c->n, k = (double)c->k;
    double ns = m * n * k * (qg_op_unit_ns(c->matrix_unit) + REFERENCE_NS / 3);
    return (ns + (m + n) * k * OPERAND + m * n * OUTPUT) / UNIT_COST;
}
