// One product through cuBLASLt: descriptors, the choice of an algorithm, the call.
//
// The library is column-major: our row-major out (m, n) is its D (n, m), so b is its A and a is its
// B, both with K contiguous (op T and N), and its dimensions are n, m, k. Every descriptor is freed
// on every path.
#include <product.h>

#include <product_capability.h>
#include <product_epilogue.h>
#include <qg_scale_rule.h>
#include <qg_size.h>

#include <stdio.h>
#include <string.h>

static lt_library lt;
static int32_t architecture;

enum { RESULTS_MOST = 8, WORKSPACE_ALIGNMENT = 256, POINTER_ALIGNMENT = 16 };

// A product under way.
typedef struct product_call {
    qg_cuda_product *p;
    const product_kind *kind;
    qg_cuda_error *error;
    qg_status status;
    void *desc, *a, *b, *c, *d, *preference; // of the library: a is of our b
    const void *addend;                      // what the library adds; NULL: nothing
    void *result;                            // what the library writes: out, or the workspace
    qg_format result_type, addend_type;
    uint8_t *workspace; // what the library may use
    int64_t workspace_bytes;
    lt_result chosen;
} product_call;

// ------------------------------------------------------------------------------------ the library

void product_open(qg_cuda_device *device) {
    lt_close(&lt);
    lt_open(&lt);
    architecture = device->architecture;
    device->cublaslt = lt.loaded;
    memcpy(device->cublaslt_missing, lt.missing, sizeof device->cublaslt_missing);
}

qg_scale_order product_order(const qg_recipe *recipe) {
    qg_scale_order order = {QG_ORDER_ROW_MAJOR, 0};
    switch (product_scale_mode(recipe)) {
    case LT_SCALE_VEC128:
        order.kind = QG_ORDER_K_MAJOR;
        order.padding = 1;
        break;
    case LT_SCALE_BLK128: order.kind = QG_ORDER_BLOCK128_PADDED; break;
    case LT_SCALE_VEC32:
    case LT_SCALE_VEC16: order.kind = QG_ORDER_TILE128X4; break;
    default: break;
    }
    return order;
}

static const product_kind *kind_of(const qg_cuda_product *p, qg_cuda_error *error) {
    const product_site site = {architecture, lt.loaded};
    if (!lt.loaded) {
        product_fail(error, QG_ERROR_UNSUPPORTED, "cuBLASLt was not loaded: %.200s",
                     lt.missing[0] ? lt.missing : "nothing has opened it");
        return NULL;
    }
    return product_kind_of(p, &site, error);
}

qg_status product_takes(const qg_cuda_product *p, qg_cuda_error *error) {
    return kind_of(p, error) ? QG_OK : QG_ERROR_UNSUPPORTED;
}

// -------------------------------------------------------------------------------- before the call

static qg_status check_pointer(const void *pointer, const char *name, uintptr_t alignment,
                               qg_cuda_error *error) {
    if (!pointer)
        return product_fail(error, QG_ERROR_ARGUMENT, "%s is NULL", name);
    if ((uintptr_t)pointer % alignment != 0)
        return product_fail(error, QG_ERROR_UNSUPPORTED, "%s lies at no multiple of %d bytes", name,
                            (int)alignment);
    return QG_OK;
}

static qg_status check_pointers(const qg_cuda_product *p, qg_cuda_error *error) {
    const struct {
        const void *pointer;
        const char *name;
        uintptr_t alignment;
        bool may_miss;
    } pointers[] = {
        {p->a.codes,   "a.codes",   POINTER_ALIGNMENT,   false                  },
        {p->b.codes,   "b.codes",   POINTER_ALIGNMENT,   false                  },
        {p->a.scales,  "a.scales",  POINTER_ALIGNMENT,   false                  },
        {p->b.scales,  "b.scales",  POINTER_ALIGNMENT,   false                  },
        {p->out,       "out",       POINTER_ALIGNMENT,   false                  },
        {p->c,         "c",         POINTER_ALIGNMENT,   true                   },
        {p->bias,      "bias",      sizeof(float),       true                   },
        {p->out_scale, "out_scale", sizeof(float),       true                   },
        {p->workspace, "workspace", WORKSPACE_ALIGNMENT, p->workspace_bytes == 0},
    };
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        if (!pointers[i].pointer && pointers[i].may_miss)
            continue;
        qg_status status =
            check_pointer(pointers[i].pointer, pointers[i].name, pointers[i].alignment, error);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

// What the library writes, what it adds and where it works. With a bias it gives the product in
// binary32, into out itself or at the front of the workspace, and our kernel does the rest, c
// included where its type is not the product's: the library's own bias is of 16 bits for most
// outputs, and rounding is promised once.
static qg_status divide_memory(product_call *call) {
    const qg_cuda_product *p = call->p;
    const bool is_fp8 = p->out_type == QG_FORMAT_E4M3 || p->out_type == QG_FORMAT_E5M2;
    call->result = p->out;
    call->result_type = p->out_type;
    call->addend = p->c;
    call->addend_type = is_fp8 ? QG_FORMAT_BF16 : p->out_type;
    call->workspace = (uint8_t *)p->workspace;
    call->workspace_bytes = p->workspace_bytes;
    if (!p->bias || p->out_type == QG_FORMAT_FP32)
        return QG_OK;
    int64_t count, bytes;
    if (!qg_size_multiply(p->m, p->n, &count) ||
        !qg_size_multiply(count, (int64_t)sizeof(float), &bytes) ||
        bytes > INT64_MAX - WORKSPACE_ALIGNMENT)
        return product_fail(call->error, QG_ERROR_OVERFLOW, "m * n overflows");
    bytes = qg_round_up(bytes, WORKSPACE_ALIGNMENT);
    if (bytes > p->workspace_bytes)
        return product_fail(call->error, QG_ERROR_ARGUMENT,
                            "a bias needs %lld bytes of workspace, here are %lld", (long long)bytes,
                            (long long)p->workspace_bytes);
    call->result = p->workspace;
    call->result_type = call->addend_type = QG_FORMAT_FP32;
    call->addend = NULL;
    call->workspace += bytes;
    call->workspace_bytes -= bytes;
    return QG_OK;
}

// ------------------------------------------------------------------------------------ descriptors
// These return false with call->status.

static bool succeeds(product_call *call, int code, const char *name) {
    call->status = lt_check(&lt, code, name, call->error);
    return call->status == QG_OK;
}

static bool set_desc(product_call *call, int attribute, const void *value, size_t bytes) {
    return succeeds(call, lt.desc_set(call->desc, attribute, value, bytes),
                    "cublasLtMatmulDescSetAttribute");
}

static bool set_number(product_call *call, int attribute, int32_t number) {
    return set_desc(call, attribute, &number, sizeof number);
}

static bool set_pointer(product_call *call, int attribute, const void *pointer) {
    return set_desc(call, attribute, &pointer, sizeof pointer);
}

// Off asks the library to promote partial sums.
static bool set_accumulation(product_call *call) {
    const int8_t flag = call->p->accumulates_fast != 0;
    return !call->kind->accumulates_fast || set_desc(call, LT_DESC_FAST_ACCUM, &flag, sizeof flag);
}

static bool set_out_scale(product_call *call) {
    return !call->p->out_scale || call->p->bias ||
           set_pointer(call, LT_DESC_D_SCALE_POINTER, call->p->out_scale);
}

static bool describe_product(product_call *call) {
    const qg_cuda_product *p = call->p;
    return succeeds(call, lt.desc_create(&call->desc, LT_COMPUTE_32F, LT_TYPE_FP32),
                    "cublasLtMatmulDescCreate") &&
           set_number(call, LT_DESC_TRANSA, LT_OP_T) && set_number(call, LT_DESC_TRANSB, LT_OP_N) &&
           set_number(call, LT_DESC_A_SCALE_MODE, call->kind->b_mode) &&
           set_number(call, LT_DESC_B_SCALE_MODE, call->kind->a_mode) &&
           set_pointer(call, LT_DESC_A_SCALE_POINTER, p->b.scales) &&
           set_pointer(call, LT_DESC_B_SCALE_POINTER, p->a.scales) && set_accumulation(call) &&
           set_out_scale(call);
}

// Columns contiguous, without gaps.
static bool create_layout(product_call *call, void **layout, qg_format format, int64_t rows,
                          int64_t columns) {
    int code =
        lt.layout_create(layout, product_type(format), (uint64_t)rows, (uint64_t)columns, rows);
    return succeeds(call, code, "cublasLtMatrixLayoutCreate");
}

static bool describe_matrices(product_call *call) {
    const qg_cuda_product *p = call->p;
    return create_layout(call, &call->a, p->b.recipe.element, p->k, p->n) &&
           create_layout(call, &call->b, p->a.recipe.element, p->k, p->m) &&
           create_layout(call, &call->c, call->addend_type, p->n, p->m) &&
           create_layout(call, &call->d, call->result_type, p->n, p->m);
}

static bool set_preference(product_call *call, int attribute, const void *value, size_t bytes) {
    return succeeds(call, lt.preference_set(call->preference, attribute, value, bytes),
                    "cublasLtMatmulPreferenceSetAttribute");
}

// The largest power of two, up to 256, that divides the address.
static bool set_alignment(product_call *call, int attribute, const void *pointer) {
    uint32_t alignment = WORKSPACE_ALIGNMENT;
    while ((uintptr_t)pointer % alignment != 0)
        alignment /= 2;
    return set_preference(call, attribute, &alignment, sizeof alignment);
}

static bool describe_preference(product_call *call) {
    const qg_cuda_product *p = call->p;
    const uint64_t workspace = (uint64_t)call->workspace_bytes;
    const uint32_t reductions = p->splitk_allowed ? LT_REDUCTION_ALL : LT_REDUCTION_NONE;
    return succeeds(call, lt.preference_create(&call->preference),
                    "cublasLtMatmulPreferenceCreate") &&
           set_preference(call, LT_PREF_WORKSPACE, &workspace, sizeof workspace) &&
           set_preference(call, LT_PREF_REDUCTION_MASK, &reductions, sizeof reductions) &&
           set_alignment(call, LT_PREF_ALIGNMENT_A, p->b.codes) &&
           set_alignment(call, LT_PREF_ALIGNMENT_B, p->a.codes) &&
           set_alignment(call, LT_PREF_ALIGNMENT_C, call->addend ? call->addend : call->result) &&
           set_alignment(call, LT_PREF_ALIGNMENT_D, call->result);
}

static void release(product_call *call) {
    if (call->preference)
        (void)lt.preference_destroy(call->preference);
    void *const layouts[] = {call->a, call->b, call->c, call->d};
    for (int i = 0; i < 4; i++)
        if (layouts[i])
            (void)lt.layout_destroy(layouts[i]);
    if (call->desc)
        (void)lt.desc_destroy(call->desc);
}

// -------------------------------------------------------------------------------------- algorithm

// Attributes are of 2 and 4 bytes; -1: the library does not tell.
static int32_t config_of(const lt_algorithm *algorithm, int attribute) {
    const bool is_short =
        attribute == LT_CONFIG_INNER_SHAPE || attribute == LT_CONFIG_CLUSTER_SHAPE;
    uint16_t narrow = 0;
    int32_t wide = 0;
    size_t written = 0, bytes = is_short ? sizeof narrow : sizeof wide;
    void *value = is_short ? (void *)&narrow : (void *)&wide;
    if (lt.config_get(algorithm, attribute, value, bytes, &written) != LT_STATUS_SUCCESS)
        return -1;
    return is_short ? narrow : wide;
}

static qg_cuda_algorithm read_back(const lt_result *result) {
    const lt_algorithm *from = &result->algorithm;
    qg_cuda_algorithm to;
    size_t written;
    to.id = config_of(from, LT_CONFIG_ID);
    to.tile = config_of(from, LT_CONFIG_TILE);
    to.stages = config_of(from, LT_CONFIG_STAGES);
    to.splitk = config_of(from, LT_CONFIG_SPLITK);
    to.reduction = config_of(from, LT_CONFIG_REDUCTION);
    to.inner_shape = config_of(from, LT_CONFIG_INNER_SHAPE);
    to.cluster_shape = config_of(from, LT_CONFIG_CLUSTER_SHAPE);
    to.custom = config_of(from, LT_CONFIG_CUSTOM);
    if (lt.cap_get(from, LT_CAP_NUMERICAL, &to.numerical, sizeof to.numerical, &written) !=
        LT_STATUS_SUCCESS)
        to.numerical = 0;
    to.workspace_bytes = (int64_t)result->workspace_bytes;
    to.waves = result->waves;
    return to;
}

// Why the library's proposals were passed over.
typedef struct passed_over {
    int state, workspace, splitk;
} passed_over;

static bool may_run(const product_call *call, const lt_result *result, passed_over *passed) {
    if (result->state != LT_STATUS_SUCCESS)
        passed->state++;
    else if (result->workspace_bytes > (uint64_t)call->workspace_bytes)
        passed->workspace++;
    // An algorithm that does not tell is none without split-K.
    else if (!call->p->splitk_allowed &&
             (uint32_t)config_of(&result->algorithm, LT_CONFIG_SPLITK) > 1)
        passed->splitk++;
    else
        return true;
    return false;
}

static bool no_algorithm(product_call *call, const passed_over *passed) {
    const qg_cuda_product *p = call->p;
    char why[96] = "";
    if (passed->splitk + passed->workspace + passed->state > 0)
        snprintf(why, sizeof why, " (passed over: split-K %d, workspace %d, failed %d)",
                 passed->splitk, passed->workspace, passed->state);
    call->status =
        product_fail(call->error, QG_ERROR_UNSUPPORTED,
                     "the library has no algorithm for %s, m %lld, n %lld, k %lld%s",
                     call->kind->name, (long long)p->m, (long long)p->n, (long long)p->k, why);
    return false;
}

// The first of the library's proposals that may run.
static bool choose_algorithm(product_call *call) {
    lt_result results[RESULTS_MOST];
    passed_over passed = {0, 0, 0};
    int count = 0; // the library leaves it alone where it fails
    memset(results, 0, sizeof results);
    int code = lt.heuristic(lt.handle, call->desc, call->a, call->b, call->c, call->d,
                            call->preference, RESULTS_MOST, results, &count);
    if (code == LT_STATUS_NOT_SUPPORTED)
        return no_algorithm(call, &passed);
    if (!succeeds(call, code, "cublasLtMatmulAlgoGetHeuristic"))
        return false;
    for (int i = 0; i < count && i < RESULTS_MOST; i++)
        if (may_run(call, &results[i], &passed)) {
            call->chosen = results[i];
            return true;
        }
    return no_algorithm(call, &passed);
}

// ------------------------------------------------------------------------------------------ call

// What a tensor's codes are multiplied by beside the block scales that the library knows: the
// decoding scale of block 1, as in the emulator.
static float tensor_factor(const qg_cuda_operand *operand) {
    const int rule = operand->recipe.rule;
    if (!qg_rule_has_tensor_scale(rule))
        return 1.0f;
    const qg_element element = qg_element_of(operand->recipe.element);
    return qg_two_level_decode_scale(rule, &element, operand->tensor_scale, qg_encode_ue4m3(1.0f));
}

static bool multiply(product_call *call, void *stream) {
    const qg_cuda_product *p = call->p;
    const float alpha = tensor_factor(&p->a) * tensor_factor(&p->b);
    const float beta = call->addend ? 1.0f : 0.0f;
    // Where nothing is added C is D, if their types agree.
    const void *c = call->addend                             ? call->addend
                    : call->addend_type == call->result_type ? call->result
                                                             : NULL;
    int code = lt.matmul(lt.handle, call->desc, &alpha, p->b.codes, call->a, p->a.codes, call->b,
                         &beta, c, call->c, call->result, call->d, &call->chosen.algorithm,
                         call->workspace, (size_t)call->workspace_bytes, stream);
    return succeeds(call, code, "cublasLtMatmul");
}

static bool finish(product_call *call, void *stream) {
    const qg_cuda_product *p = call->p;
    if (!p->bias)
        return true;
    const product_epilogue epilogue = {
        .count = p->m * p->n,
        .n = p->n,
        .product = (const float *)call->result,
        .c = call->addend ? NULL : p->c,
        .bias = p->bias,
        .out_scale = p->out_scale,
        .out_type = p->out_type,
        .out = p->out,
    };
    call->status = launch_product_epilogue(&epilogue, stream, call->error);
    return call->status == QG_OK;
}

qg_status product_run(qg_cuda_product *p, void *stream, qg_cuda_error *error) {
    product_call call = {.p = p, .error = error};
    memset(&p->algorithm, 0, sizeof p->algorithm);
    call.kind = kind_of(p, error);
    if (!call.kind)
        return QG_ERROR_UNSUPPORTED;
    call.status = check_pointers(p, error);
    if (call.status == QG_OK)
        call.status = divide_memory(&call);
    if (call.status != QG_OK)
        return call.status;
    if (describe_product(&call) && describe_matrices(&call) && describe_preference(&call) &&
        choose_algorithm(&call) && multiply(&call, stream)) {
        p->algorithm = read_back(&call.chosen);
        (void)finish(&call, stream);
    }
    release(&call);
    return call.status;
}
