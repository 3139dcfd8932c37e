// Stage `gemm`: products through cuBLASLt against the unit that the probe found, bit for bit: fast
// accumulation on and off, C zero and not, bias, K from 32 up, E4M3 and E5M2 mixed, every scale
// mode. Scales are powers of two, so that the accumulator alone counts.
#include <device_product.h>
#include <device_recipes.h>
#include <device_stage.h>

#include <qg_memory.h>

#include <inttypes.h>
#include <string.h>

// The scale modes by what the recipes' layouts and scale formats need.
typedef struct scale_mode {
    const char *name;
    device_recipe a, b;
    const char *unit; // NULL: the probe's
} scale_mode;

// clang-format off: one row per mode
static const scale_mode MODES[] = {
    {"per tensor",
     {"e4m3", "per_tensor", "fixed:0x1p-3", NULL},
     {"e4m3", "per_tensor", "fixed:4", NULL},
     NULL                                                                                         },
    {"per tensor",
     {"e4m3", "per_tensor", "fixed:0x1p-3", NULL},
     {"e5m2", "per_tensor", "fixed:1", NULL},
     NULL                                                                                         },
    {"per tensor",
     {"e5m2", "per_tensor", "fixed:0x1p-9", NULL},
     {"e4m3", "per_tensor", "fixed:0x1p-6", NULL},
     NULL                                                                                         },
    {"outer vector",
     {"e4m3", "per_row", "amax_pow2", NULL},
     {"e4m3", "per_row", "amax_pow2", NULL},
     NULL                                                                                         },
    {"vec128 x vec128",
     {"e4m3", "group:128", "amax_pow2", NULL},
     {"e4m3", "group:128", "amax_pow2", NULL},
     NULL                                                                                         },
    {"vec128 x blk128",
     {"e4m3", "group:128", "amax_pow2", NULL},
     {"e4m3", "block:128x128", "amax_pow2", NULL},
     NULL                                                                                         },
    {"blk128 x vec128",
     {"e4m3", "block:128x128", "amax_pow2", NULL},
     {"e4m3", "group:128", "amax_pow2", NULL},
     NULL                                                                                         },
    {"mxfp8",           {"mxfp8", NULL, NULL, NULL}, {"mxfp8", NULL, NULL, NULL}, "blackwell_mx"  },
    {"nvfp4",           {"nvfp4", NULL, NULL, NULL}, {"nvfp4", NULL, NULL, NULL}, "blackwell_mxf4"},
};
// clang-format on

typedef struct variation {
    qg_format out_type;
    bool with_c, with_bias;
} variation;

static const variation VARIATIONS[] = {
    {QG_FORMAT_FP32, false, false},
    {QG_FORMAT_FP32, true,  false},
    {QG_FORMAT_BF16, false, false},
    {QG_FORMAT_BF16, true,  false},
    {QG_FORMAT_BF16, false, true },
};

typedef struct outputs {
    void *wanted, *got, *c;
    float *bias;
} outputs;

static const char *accumulation(int fast) { return fast ? "fast" : "promoted"; }

// ------------------------------------------------------------------------------------------- rows

static void axes_of(const device_operand *o, char axes[DEVICE_AXES_SIZE]) {
    device_recipe_axes(&o->recipe, o->format, axes);
    *strrchr(axes, '\t') = 0; // rounding
}

static void algorithm_text(const qg_cuda_algorithm *a, char *text, size_t size) {
    snprintf(text, size,
             "id=%" PRId32 " tile=%" PRId32 " stages=%" PRId32 " splitk=%" PRId32
             " reduction=%" PRId32 " inner=%" PRId32 " cluster=%" PRId32 " custom=%" PRId32
             " numerical=0x%" PRIx64 " workspace=%" PRId64,
             a->id, a->tile, a->stages, a->splitk, a->reduction, a->inner_shape, a->cluster_shape,
             a->custom, a->numerical, a->workspace_bytes);
}

static void write_row(device_check *c, const scale_mode *mode, const device_product *p,
                      const char *unit, int64_t differences, device_verdict verdict,
                      const char *reason) {
    char a[DEVICE_AXES_SIZE], b[DEVICE_AXES_SIZE], out[QG_NAME_SIZE], algorithm[256], label[64];
    axes_of(&p->a, a);
    axes_of(&p->b, b);
    qg_format_name(p->out_type, out);
    algorithm_text(&p->algorithm, algorithm, sizeof algorithm);
    bool apart = p->a.recipe.layout.kind == QG_LAYOUT_PER_TENSOR;
    snprintf(label, sizeof label, "%s%s%s", mode->name, apart ? ", " : "",
             apart ? accumulation(p->accumulates_fast) : "");
    device_report_row(c->report, DEVICE_GEMM, label, verdict, reason,
                      "%s\t%s\t%s\t%s\t%s\t%d\t%d\t1\t%" PRId64 "\t%" PRId64 "\t%" PRId64
                      "\t%" PRId64 "\t%s",
                      a, b, unit, accumulation(p->accumulates_fast), out, p->c != NULL,
                      p->bias != NULL, p->a.rows, p->b.rows, p->a.k, differences, algorithm);
}

static int64_t differences_of(const device_product *p, const outputs *o) {
    int64_t count = p->a.rows * p->b.rows, different = 0;
    int bytes = device_type_bytes(p->out_type);
    for (int64_t i = 0; i < count; i++)
        different += memcmp((const char *)o->wanted + i * bytes, (const char *)o->got + i * bytes,
                            (size_t)bytes) != 0;
    return different;
}

// ------------------------------------------------------------------------------------------ cases

static qg_status compare(device_check *c, const scale_mode *mode, device_product *p,
                         const outputs *o) {
    char unit[DEVICE_UNIT_NAME], reason[200] = "";
    device_unit_fitted(p, mode->unit ? mode->unit : c->unit[p->accumulates_fast], unit);
    qg_status status = device_multiply(c, p, o->got);
    if (status == QG_ERROR_UNSUPPORTED) {
        write_row(c, mode, p, unit, 0, DEVICE_VERDICT_SKIPPED, qg_detail());
        return QG_OK;
    }
    if (status == QG_OK && !unit[0]) {
        write_row(c, mode, p, unit, 0, DEVICE_VERDICT_RAN, "no unit models this product");
        return QG_OK;
    }
    if (status == QG_OK)
        status = device_expect(p, unit, o->wanted);
    if (status != QG_OK)
        return status;
    int64_t differences = differences_of(p, o);
    if (differences)
        snprintf(reason, sizeof reason, "%" PRId64 " of %" PRId64 " outputs differ from %s",
                 differences, p->a.rows * p->b.rows, unit);
    write_row(c, mode, p, unit, differences,
              differences ? DEVICE_VERDICT_FAILED : DEVICE_VERDICT_PASSED, reason);
    return QG_OK;
}

static qg_status try_variation(device_check *c, const scale_mode *mode, device_product *p,
                               const variation *v, const outputs *o) {
    int64_t count = p->a.rows * p->b.rows;
    p->out_type = v->out_type;
    p->c = v->with_c ? o->c : NULL;
    p->bias = v->with_bias ? o->bias : NULL;
    // Of the size of the products' own sums.
    for (int64_t i = 0; i < count; i++)
        device_store(v->out_type, (float)(i % 97 - 48) * 0.37f, o->c, i);
    for (int64_t i = 0; i < p->b.rows; i++)
        o->bias[i] = (float)(i % 13 - 6) * 0.75f;
    qg_status status = QG_OK;
    for (int fast = 1; fast >= 0 && status == QG_OK; fast--) {
        p->accumulates_fast = fast;
        status = compare(c, mode, p, o);
    }
    return status;
}

static qg_status open_outputs(int64_t m, int64_t n, outputs *o) {
    void *wanted = NULL, *got = NULL, *c = NULL, *bias = NULL;
    qg_status status = qg_allocate(&wanted, m * n, 4, "outputs");
    if (status == QG_OK)
        status = qg_allocate(&got, m * n, 4, "outputs");
    if (status == QG_OK)
        status = qg_allocate(&c, m * n, 4, "a matrix c");
    if (status == QG_OK)
        status = qg_allocate(&bias, n, 4, "a bias");
    *o = (outputs){wanted, got, c, bias};
    return status;
}

static void close_outputs(outputs *o) {
    qg_release(o->wanted);
    qg_release(o->got);
    qg_release(o->c);
    qg_release(o->bias);
}

static qg_status open_operand(const device_recipe *spec, int64_t rows, int64_t k, int which,
                              device_operand *operand) {
    qg_recipe recipe;
    qg_status status = device_recipe_make(spec, &recipe);
    if (status == QG_OK)
        status = device_operand_open(&recipe, spec->format, rows, k, operand);
    return status == QG_OK ? device_operand_fill(operand, 1, which) : status;
}

static qg_status try_product(device_check *c, const scale_mode *mode, int64_t m, int64_t n,
                             int64_t k) {
    device_product p = {0};
    outputs o = {0};
    size_t count = k % 128 == 0 ? sizeof VARIATIONS / sizeof VARIATIONS[0] : 2;
    qg_status status = open_operand(&mode->a, m, k, 0, &p.a);
    if (status == QG_OK)
        status = open_operand(&mode->b, n, k, 1, &p.b);
    if (status == QG_OK)
        status = open_outputs(m, n, &o);
    for (size_t v = 0; v < count && status == QG_OK; v++)
        status = try_variation(c, mode, &p, &VARIATIONS[v], &o);
    device_operand_free(&p.a);
    device_operand_free(&p.b);
    close_outputs(&o);
    return status;
}

qg_status device_stage_gemm(device_check *c) {
    static const int64_t ks[] = {32, 64, 128, 144, 256, 512, 1040, 4096}, small_ks[] = {64, 256};
    size_t count = c->is_small ? 2 : sizeof ks / sizeof ks[0];
    qg_status status = QG_OK;
    if (!c->device->cublaslt && !c->simulated[0][0]) {
        device_report_left(c->report, "products", 1, c->device->cublaslt_missing);
        return QG_OK;
    }
    for (size_t i = 0; i < sizeof MODES / sizeof MODES[0]; i++)
        for (size_t j = 0; j < count && status == QG_OK; j++) {
            if (device_is_late(c))
                device_report_left(c->report, "products", 1, "time is up");
            else
                status = try_product(c, &MODES[i], c->is_small ? 16 : 256, c->is_small ? 32 : 144,
                                     c->is_small ? small_ks[j] : ks[j]);
        }
    return status;
}
