// Stages `conversions`, `dequantize` and `multiply`: the device's cvt instructions against the
// branch-free encoder, over all bf16 values and many binary32 values; codes back to values; the
// module's own product against unit fp32_fma.
#include <device_recipes.h>
#include <device_stage.h>

#include <qg_encode32.h>
#include <qg_format_name.h>
#include <qg_input.h>
#include <qg_memory.h>
#include <qg_philox.h>
#include <qg_unit.h>

#include <inttypes.h>
#include <string.h>

static const char *reason_of(bool same, const char *reason) { return same ? "" : reason; }

static device_verdict verdict_of(bool same) {
    return same ? DEVICE_VERDICT_PASSED : DEVICE_VERDICT_FAILED;
}

// ------------------------------------------------------------------------------------ conversions

// Binary32 values around the format's range, and any bits.
static float random_value(const qg_format_info *info, uint64_t i) {
    qg_philox_block words = qg_philox_quad(7, QG_STREAM_DATA, i);
    int least = qg_double_exponent(qg_format_min_positive(info)) - 3;
    int span = qg_format_emax(info) - least + 3;
    uint32_t exponent = (uint32_t)(least + (int)(words.word[1] % (uint32_t)span) + 127);
    uint32_t bits = (words.word[0] & 0x807fffffu) | exponent << 23;
    // Ties and their neighbours: few bits, then one more or less.
    if (words.word[2] % 4 == 1)
        bits = (bits & 0xfff80000u) + (words.word[3] % 3) - 1;
    return qg_float_of_bits(words.word[2] % 4 == 0 ? words.word[0] : bits);
}

static void fill_values(const qg_format_info *info, device_input *input) {
    int64_t count = input->m * input->k;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) {
        if (input->type == QG_FORMAT_BF16)
            ((uint16_t *)input->raw)[i] = (uint16_t)i;
        else
            ((float *)input->raw)[i] = random_value(info, (uint64_t)i);
        input->wide[i] = device_element(input->type, input->raw, i);
    }
}

// Under X = 1 a code is what the encoder makes of the element.
static void encode_all(const qg_recipe *recipe, const device_input *input, uint8_t *codes) {
    qg_format_info info = qg_format_describe(recipe->element);
    qg_encoder32 encoder = qg_encoder32_of(&info, &recipe->conversion);
    int64_t count = input->m * input->k;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        codes[i] = (uint8_t)qg_encode32(&encoder, qg_bits_of_float(input->wide[i]), 0);
}

static qg_status convert(device_check *c, const device_job *job, const qg_format_info *info) {
    device_quantized wanted, got = {0};
    char axes[DEVICE_AXES_SIZE], input[QG_NAME_SIZE];
    (void)info;
    qg_status status = device_quantized_open(job, &wanted);
    if (status == QG_OK)
        status = device_quantized_open(job, &got);
    if (status == QG_OK)
        status = device_emulate(job, &wanted); // the scales
    if (status == QG_OK)
        status = device_quantize(c, job, &got);
    if (status == QG_OK) {
        encode_all(&job->recipe, job->x, wanted.codes);
        device_difference d = device_compare(&wanted, &got);
        device_recipe_axes(&job->recipe, job->format, axes);
        qg_format_name(job->x->type, input);
        bool same = device_is_same(d);
        device_report_row(c->report, DEVICE_BYTES, "conversions, by value", verdict_of(same),
                          reason_of(same, "the conversion differs from the encoder"),
                          "cvt\t%s\t%s\t\t%s\t7\t%" PRId64 "\t0\t%" PRId64 "\trow_major\t%" PRId64
                          "\t%" PRId64 "\t%" PRId64,
                          axes, input, job->x->type == QG_FORMAT_BF16 ? "all_bf16" : "random_bits",
                          job->x->m, job->x->k, d.codes, d.scales, d.guards);
    } else if (status == QG_ERROR_UNSUPPORTED) {
        device_report_left(c->report, "conversions", 1, qg_detail());
        status = QG_OK;
    }
    device_quantized_free(&wanted);
    device_quantized_free(&got);
    return status;
}

qg_status device_stage_conversions(device_check *c) {
    static const char *const formats[] = {"e4m3", "e5m2", "e2m1", "e2m3", "e3m2"};
    static const qg_format types[] = {QG_FORMAT_BF16, QG_FORMAT_FP32};
    device_input input = {0};
    qg_status status = QG_OK;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (size_t t = 0; t < sizeof types / sizeof types[0] && status == QG_OK; t++) {
            device_recipe spec = {.format = formats[f], .layout = "per_tensor", .rule = "fixed:1"};
            device_job job = {.format = formats[f], .x = &input};
            if (device_is_late(c)) {
                device_report_left(c->report, "conversions", 1, "time is up");
                continue;
            }
            status = device_recipe_make(&spec, &job.recipe);
            qg_format_info info = qg_format_describe(job.recipe.element);
            int64_t m = types[t] == QG_FORMAT_BF16 ? 64 : c->is_small ? 16 : 4096;
            if (status == QG_OK) // for its memory
                status = device_input_fill(&input, DEVICE_DATA_SPECIALS, types[t], 7, m, 1024);
            if (status == QG_OK) {
                fill_values(&info, &input);
                status = convert(c, &job, &info);
            }
        }
    device_input_free(&input);
    return status;
}

// ------------------------------------------------------------------------------------- dequantize

typedef struct values {
    float *wanted, *got;
} values;

static qg_status take_values(int64_t count, values *v) {
    void *wanted = NULL, *got = NULL;
    qg_status status = qg_allocate(&wanted, count, sizeof(float), "values");
    if (status == QG_OK)
        status = qg_allocate(&got, count, sizeof(float), "values");
    *v = (values){wanted, got};
    return status;
}

static void free_values(values *v) {
    qg_release(v->wanted);
    qg_release(v->got);
}

static int64_t different_bytes(const void *a, const void *b, int64_t count) {
    const uint8_t *x = a, *y = b;
    int64_t different = 0;
    for (int64_t i = 0; i < count; i++)
        different += x[i] != y[i];
    return different;
}

static qg_status dequantize_on_device(device_check *c, const device_job *job,
                                      const device_quantized *stored, qg_format out_type, void *out,
                                      int64_t *damage) {
    void *codes, *scales, *q;
    int64_t bytes = job->x->m * job->x->k * device_type_bytes(out_type);
    qg_status status =
        device_put(c, DEVICE_ROOM_CODES, stored->codes, stored->shape.codes_size, &codes);
    if (status == QG_OK)
        status =
            device_put(c, DEVICE_ROOM_SCALES, stored->scales, stored->shape.scales_size, &scales);
    if (status == QG_OK)
        status = device_take(c, DEVICE_ROOM_OUT, bytes, &q);
    if (status != QG_OK)
        return status;
    qg_cuda_dequantize call = {.recipe = job->recipe,
                               .packed = job->storage.packed,
                               .order = job->storage.order,
                               .m = job->x->m,
                               .k = job->x->k,
                               .codes = codes,
                               .scales = scales,
                               .tensor_scale = stored->tensor_scale,
                               .out_type = out_type,
                               .q = q};
    status = device_status(c, c->module->dequantize(&call, &c->error));
    if (status == QG_OK)
        status = device_status(c, c->module->synchronize(&c->error));
    return status == QG_OK ? device_get(c, DEVICE_ROOM_OUT, out, bytes, damage) : status;
}

static qg_status compare_values(device_check *c, const device_job *job,
                                const device_quantized *stored, qg_format out_type, values *v) {
    const qg_backend *emulator = qg_backend_find("emulator");
    int64_t count = job->x->m * job->x->k, damage = 0;
    char axes[DEVICE_AXES_SIZE], storage[64], out_name[QG_NAME_SIZE];
    qg_status status =
        emulator->dequantize(&job->recipe, &job->storage, job->x->m, job->x->k, stored->codes,
                             stored->scales, stored->tensor_scale, 0, v->wanted, NULL);
    for (int64_t i = 0; out_type == QG_FORMAT_BF16 && i < count; i++) {
        uint16_t bits = qg_bf16_of_sum(v->wanted[i]); // NaN is 7fff, as it is 7fffffff
        memcpy((char *)v->wanted + i * (int64_t)sizeof bits, &bits, sizeof bits);
    }
    if (status == QG_OK)
        status = dequantize_on_device(c, job, stored, out_type, v->got, &damage);
    if (status == QG_ERROR_UNSUPPORTED) {
        device_report_left(c->report, "dequantize", 1, qg_detail());
        return QG_OK;
    }
    if (status != QG_OK)
        return status;
    int64_t differences = different_bytes(v->wanted, v->got, count * device_type_bytes(out_type));
    bool same = differences == 0 && damage == 0;
    device_recipe_axes(&job->recipe, job->format, axes);
    device_storage_name(&job->storage, storage);
    qg_format_name(out_type, out_name);
    device_report_row(c->report, DEVICE_BYTES, "dequantize", verdict_of(same),
                      reason_of(same, "values differ from the emulator's"),
                      "dequantize\t%s\tbf16\t%s\tspecials\t1\t%" PRId64 "\t0\t%" PRId64
                      "\t%s\t%" PRId64 "\t0\t%" PRId64,
                      axes, out_name, job->x->m, job->x->k, storage, differences, damage);
    return QG_OK;
}

// Codes and scales of the emulator, NaN and infinite ones included.
static qg_status dequantize_recipe(device_check *c, const device_recipe *spec, size_t turn,
                                   device_input *input) {
    device_job job = {.format = spec->format, .x = input, .seed = 1};
    device_quantized stored = {0};
    values v = {0};
    qg_status status = device_recipe_make(spec, &job.recipe);
    bool plain = job.recipe.structure == QG_STRUCTURE_PLAIN;
    job.storage.packed = turn % 2;
    if (plain && turn % 2)
        job.storage.order = (qg_scale_order){.kind = QG_ORDER_K_MAJOR, .padding = 16};
    job.history_amax = job.recipe.rule == QG_RULE_DELAYED ? 3.25f : 0;
    if (status == QG_OK)
        status = device_quantized_open(&job, &stored);
    if (status == QG_OK)
        status = take_values(input->m * input->k, &v);
    if (status == QG_OK)
        status = device_emulate(&job, &stored);
    if (status == QG_OK)
        status = compare_values(c, &job, &stored, QG_FORMAT_FP32, &v);
    if (status == QG_OK)
        status = compare_values(c, &job, &stored, QG_FORMAT_BF16, &v);
    free_values(&v);
    device_quantized_free(&stored);
    return status;
}

qg_status device_stage_dequantize(device_check *c) {
    device_input input = {0};
    device_recipe spec;
    qg_status status = device_input_fill(&input, DEVICE_DATA_SPECIALS, QG_FORMAT_BF16, 1,
                                         c->is_small ? 3 : 67, c->is_small ? 133 : 517);
    for (size_t i = 0; status == QG_OK && device_recipe_listed(i, &spec); i++) {
        if (device_is_late(c))
            device_report_left(c->report, "recipes of dequantize", 1, "time is up");
        else
            status = dequantize_recipe(c, &spec, i, &input);
    }
    device_input_free(&input);
    return status;
}

// --------------------------------------------------------------------------------------- multiply

typedef struct product {
    int64_t m, n, k;
    const float *a, *b, *bias;
    qg_format out_type;
} product;

static qg_status multiply_on_device(device_check *c, const product *p, void *out, int64_t *damage) {
    void *a, *b, *bias = NULL, *to;
    int64_t bytes = p->m * p->n * device_type_bytes(p->out_type), item = sizeof(float);
    qg_status status = device_put(c, DEVICE_ROOM_A, p->a, p->m * p->k * item, &a);
    if (status == QG_OK)
        status = device_put(c, DEVICE_ROOM_B, p->b, p->n * p->k * item, &b);
    if (status == QG_OK && p->bias)
        status = device_put(c, DEVICE_ROOM_BIAS, p->bias, p->n * item, &bias);
    if (status == QG_OK)
        status = device_take(c, DEVICE_ROOM_OUT, bytes, &to);
    if (status != QG_OK)
        return status;
    qg_cuda_multiply call = {.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .a = a,
                             .b = b,
                             .bias = bias,
                             .out_type = p->out_type,
                             .out = to};
    status = device_status(c, c->module->multiply(&call, &c->error));
    if (status == QG_OK)
        status = device_status(c, c->module->synchronize(&c->error));
    return status == QG_OK ? device_get(c, DEVICE_ROOM_OUT, out, bytes, damage) : status;
}

static qg_status compare_product(device_check *c, const product *p, values *v) {
    qg_unit unit;
    int64_t damage = 0;
    char out_name[QG_NAME_SIZE];
    qg_matmul_options options = {.out_type = p->out_type, .bias = p->bias};
    qg_status status = qg_unit_parse("fp32_fma", &unit);
    if (status == QG_OK)
        status = qg_emulator_matmul(&unit, &options, p->m, p->n, p->k, p->a, p->b, v->wanted);
    if (status == QG_OK)
        status = multiply_on_device(c, p, v->got, &damage);
    if (status == QG_ERROR_UNSUPPORTED) {
        device_report_left(c->report, "multiply", 1, qg_detail());
        return QG_OK;
    }
    if (status != QG_OK)
        return status;
    int64_t differences =
        different_bytes(v->wanted, v->got, p->m * p->n * device_type_bytes(p->out_type));
    bool same = differences == 0 && damage == 0;
    qg_format_name(p->out_type, out_name);
    device_report_row(c->report, DEVICE_BYTES, "multiply", verdict_of(same),
                      reason_of(same, "the product differs from unit fp32_fma's"),
                      "multiply\tfp32\tper_tensor\tfixed:1\trne\tfp32\t%s\tnormal\t1\t%" PRId64
                      "\t%" PRId64 "\t%" PRId64 "\t%s\t%" PRId64 "\t0\t%" PRId64,
                      out_name, p->m, p->n, p->k, p->bias ? "bias" : "", differences, damage);
    return QG_OK;
}

qg_status device_stage_multiply(device_check *c) {
    static const int64_t sizes[][3] = {
        {1,  1,  1  },
        {3,  7,  5  },
        {18, 20, 40 },
        {37, 45, 80 },
        {65, 33, 257},
    };
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    device_input a = {0}, b = {0};
    qg_status status = QG_OK;
    size_t count = c->is_small ? 3 : sizeof sizes / sizeof sizes[0];
    for (size_t s = 0; s < count; s++)
        for (size_t t = 0; t < sizeof types / sizeof types[0] && status == QG_OK; t++) {
            int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            values v = {0};
            status = device_input_fill(&a, DEVICE_DATA_NORMAL, QG_FORMAT_FP32, 1, m, k);
            if (status == QG_OK)
                status = device_input_fill(&b, DEVICE_DATA_NORMAL, QG_FORMAT_FP32, 2, n + 1, k + n);
            if (status == QG_OK)
                status = take_values(m * n, &v);
            product p = {m, n, k, a.wide, b.wide, s % 2 ? b.wide + n * k : NULL, types[t]};
            if (status == QG_OK)
                status = compare_product(c, &p, &v);
            free_values(&v);
        }
    device_input_free(&a);
    device_input_free(&b);
    return status;
}
