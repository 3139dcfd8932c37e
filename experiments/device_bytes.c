// Stage `bytes`: every quantization kernel against the emulator, byte for byte, over recipes, input
// types, data and ragged shapes, codes packed and scales in other orders included.
#include <device_recipes.h>
#include <device_stage.h>

#include <inttypes.h>
#include <string.h>

typedef struct shape {
    int64_t m, k;
} shape;

static const shape SHAPES[] = {
    {1,   1   },
    {3,   127 },
    {5,   129 },
    {7,   1152},
    {17,  2176},
    {129, 96  },
    {33,  1000},
    {66,  300 },
};
static const shape SMALL_SHAPES[] = {
    {3, 127},
    {5, 300},
};
// More rows than grid Y could hold: of a few recipes.
static const shape TALL = {65541, 40};
static const char *const TALL_RECIPES[] = {"metrale_act128", "mxfp8", "nvfp4", "te_e4m3",
                                           "deepseek_w128x128"};

static const qg_format INPUTS[] = {QG_FORMAT_BF16, QG_FORMAT_FP16, QG_FORMAT_FP32};
enum { INPUT_COUNT = sizeof INPUTS / sizeof INPUTS[0] };

// What one recipe is tried with; kept between calls for its memory.
typedef struct bench {
    device_check *c;
    device_input x, up;
    device_recipe spec;
    qg_recipe recipe;
} bench;

// ------------------------------------------------------------------------------------------- rows

static void write_row(device_check *c, const device_job *job, const char *kernel, int data,
                      device_difference d) {
    char axes[DEVICE_AXES_SIZE], input[QG_NAME_SIZE], storage[64], label[64];
    device_recipe_axes(&job->recipe, job->format, axes);
    qg_format_name(job->x->type, input);
    device_storage_name(&job->storage, storage);
    snprintf(label, sizeof label, "%s%s", kernel, job->up ? ", SiLU times up" : "");
    bool same = device_is_same(d);
    device_report_row(c->report, DEVICE_BYTES, label,
                      same ? DEVICE_VERDICT_PASSED : DEVICE_VERDICT_FAILED,
                      same                   ? ""
                      : d.guards && !d.codes ? "bytes outside of the buffers changed"
                      : d.scales             ? "scales differ from the emulator's"
                                             : "codes differ from the emulator's",
                      "%s%s\t%s\t%s\t\t%s\t%" PRIu64 "\t%" PRId64 "\t0\t%" PRId64 "\t%s\t%" PRId64
                      "\t%" PRId64 "\t%" PRId64,
                      kernel, job->up ? "+silu" : "", axes, input, device_data_name(data),
                      job->seed, job->x->m, job->x->k, storage, d.codes, d.scales, d.guards);
}

static qg_status check_kernel(device_check *c, const device_job *job, int data,
                              const device_quantized *wanted, device_quantized *got) {
    qg_cuda_quantize call = device_call_of(job);
    const char *name = c->module->quantize_name(&call);
    qg_status status = device_quantize(c, job, got);
    if (status == QG_ERROR_UNSUPPORTED) {
        device_report_left(c->report, name ? name : "quantize", 1, qg_detail());
        return QG_OK;
    }
    if (status == QG_OK)
        write_row(c, job, name, data, device_compare(wanted, got));
    return status;
}

// Groups have two kernels.
static qg_status check_job(device_check *c, device_job *job, int data) {
    device_quantized wanted, got = {0};
    qg_status status = device_quantized_open(job, &wanted);
    if (status == QG_OK)
        status = device_quantized_open(job, &got);
    if (status == QG_OK)
        status = device_emulate(job, &wanted);
    const char *before = "";
    for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT && status == QG_OK; kernel++) {
        job->kernel = kernel;
        qg_cuda_quantize call = device_call_of(job);
        const char *name = c->module->quantize_name(&call);
        if (name && strcmp(name, before) == 0)
            break;
        before = name ? name : "";
        status = check_kernel(c, job, data, &wanted, &got);
    }
    device_quantized_free(&wanted);
    device_quantized_free(&got);
    return status;
}

// ------------------------------------------------------------------------------------------ cases

// Of the shapes in turn: as the emulator stores them, packed and K-major, packed and in tiles.
static qg_storage storage_for(const qg_recipe *recipe, size_t turn) {
    qg_storage s = {.packed = turn % 3 != 0};
    bool narrow = qg_rule_scale_format(recipe->rule) != QG_FORMAT_FP32;
    if (recipe->structure != QG_STRUCTURE_PLAIN || turn % 3 == 0)
        return s;
    if (turn % 3 == 1)
        s.order = (qg_scale_order){.kind = QG_ORDER_K_MAJOR, .padding = 16};
    else
        s.order.kind =
            narrow ? turn % 2 ? QG_ORDER_TILE8X4 : QG_ORDER_TILE128X4 : QG_ORDER_BLOCK128_PADDED;
    return s;
}

static qg_status try_shape(bench *b, shape s, int data, qg_format input, size_t turn) {
    uint64_t seed = 1;
    qg_status status = device_input_fill(&b->x, data, input, seed, s.m, s.k);
    device_job job = {.recipe = b->recipe,
                      .format = b->spec.format,
                      .storage = storage_for(&b->recipe, turn),
                      .x = &b->x,
                      .seed = seed,
                      .history_amax = b->recipe.rule == QG_RULE_DELAYED ? 3.25f : 0};
    return status == QG_OK ? check_job(b->c, &job, data) : status;
}

static bool is_tall(const char *format) {
    for (size_t i = 0; i < sizeof TALL_RECIPES / sizeof TALL_RECIPES[0]; i++)
        if (strcmp(TALL_RECIPES[i], format) == 0)
            return true;
    return false;
}

static qg_status try_recipe(bench *b, size_t number) {
    const shape *shapes = b->c->is_small ? SMALL_SHAPES : SHAPES;
    size_t count =
        b->c->is_small ? sizeof SMALL_SHAPES / sizeof *shapes : sizeof SHAPES / sizeof *shapes;
    qg_status status = QG_OK;
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < INPUT_COUNT; i++)
            for (int data = 0; data < DEVICE_DATA_COUNT && status == QG_OK; data++)
                if (!b->c->is_small || (number + s + i) % DEVICE_DATA_COUNT == (size_t)data)
                    status = try_shape(b, shapes[s], data, INPUTS[i], number + s);
    if (status == QG_OK && !b->c->is_small && !b->spec.layout && is_tall(b->spec.format))
        status = try_shape(b, TALL, DEVICE_DATA_NORMAL, QG_FORMAT_BF16, 0);
    return status;
}

static size_t recipe_count(void) {
    device_recipe spec;
    size_t count = 0;
    while (device_recipe_listed(count, &spec))
        count++;
    return count;
}

static qg_status try_recipes(bench *b) {
    size_t count = recipe_count();
    for (size_t i = 0; i < count; i++) {
        if (device_is_late(b->c)) {
            device_report_left(b->c->report, "recipes of stage bytes", (int64_t)(count - i),
                               "time is up");
            return QG_OK;
        }
        (void)device_recipe_listed(i, &b->spec);
        qg_status status = device_recipe_make(&b->spec, &b->recipe);
        if (status == QG_OK)
            status = try_recipe(b, i);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

// --------------------------------------------------------------------------------- SiLU times up

static qg_status try_activation(bench *b, shape s, int data, qg_format input) {
    uint64_t seed = 1;
    qg_status status = device_input_fill(&b->x, data, input, seed, s.m, s.k);
    if (status == QG_OK)
        status = device_input_fill(&b->up, DEVICE_DATA_NORMAL, input, seed + 1, s.m, s.k);
    device_job job = {
        .recipe = b->recipe, .format = b->spec.format, .x = &b->x, .up = &b->up, .seed = seed};
    return status == QG_OK ? check_job(b->c, &job, data) : status;
}

static qg_status try_activations(bench *b) {
    static const char *const names[] = {"metrale_act128", "deepseek_act128", "mxfp8", "nvfp4",
                                        "deepseek_w128x128"};
    static const shape shapes[] = {
        {3, 127 },
        {9, 1152},
    };
    qg_status status = QG_OK;
    for (size_t r = 0; r < sizeof names / sizeof names[0] && status == QG_OK; r++) {
        b->spec = (device_recipe){.format = names[r]};
        status = device_recipe_make(&b->spec, &b->recipe);
        for (size_t s = 0; s < (b->c->is_small ? 1 : sizeof shapes / sizeof shapes[0]); s++)
            for (size_t i = 0; i < INPUT_COUNT; i++)
                for (int data = 0; data < DEVICE_DATA_COUNT && status == QG_OK; data++)
                    status = try_activation(b, shapes[s], data, INPUTS[i]);
    }
    return status;
}

qg_status device_stage_bytes(device_check *c) {
    bench b = {.c = c};
    qg_status status = try_recipes(&b);
    if (status == QG_OK && device_is_late(c))
        device_report_left(c->report, "SiLU times up", 1, "time is up");
    else if (status == QG_OK)
        status = try_activations(&b);
    device_input_free(&b.x);
    device_input_free(&b.up);
    return status;
}
