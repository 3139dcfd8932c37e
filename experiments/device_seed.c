// Stage `seed shapes`: the shapes of Metrale's microtest, K 5120, 6144, 17408 times M 16, 17, 25,
// 1168, 4576. Both group kernels on one buffer must give the same bytes, and the CPU runtime's.
#include <device_recipes.h>
#include <device_stage.h>

#include <qg_cpu.h>
#include <qg_memory.h>

#include <inttypes.h>
#include <string.h>

typedef struct seed_bench {
    device_check *c;
    device_input x;
    device_job job;
    device_quantized wanted, got;
} seed_bench;

static qg_status quantize_on_cpu(seed_bench *b) {
    qg_quantize_options options = {.input_type = b->x.type};
    return qg_cpu_quantize(&b->job.recipe, &options, NULL, b->x.m, b->x.k, b->x.raw,
                           b->wanted.codes, b->wanted.scales, &b->wanted.tensor_scale, NULL);
}

static void write_row(seed_bench *b, const char *label, const char *reason, device_difference d) {
    char axes[DEVICE_AXES_SIZE];
    qg_cuda_quantize call = device_call_of(&b->job);
    bool same = device_is_same(d);
    device_recipe_axes(&b->job.recipe, b->job.format, axes);
    device_report_row(b->c->report, DEVICE_BYTES, label,
                      same ? DEVICE_VERDICT_PASSED : DEVICE_VERDICT_FAILED, same ? "" : reason,
                      "%s\t%s\tbf16\t\tseed_groups\t1\t%" PRId64 "\t0\t%" PRId64
                      "\trow_major\t%" PRId64 "\t%" PRId64 "\t%" PRId64,
                      b->c->module->quantize_name(&call), axes, b->x.m, b->x.k, d.codes, d.scales,
                      d.guards);
}

// The shared kernel against the CPU, then the twin against the shared kernel.
static qg_status compare_kernels(seed_bench *b) {
    qg_status status = quantize_on_cpu(b);
    if (status == QG_OK) {
        b->job.kernel = QG_GROUP_KERNEL_SHARED;
        status = device_quantize(b->c, &b->job, &b->got);
    }
    if (status != QG_OK)
        return status;
    write_row(b, "seed shapes: shared against the CPU runtime", "differs from the CPU runtime",
              device_compare(&b->wanted, &b->got));
    device_quantized shared = b->got;
    b->got = b->wanted; // its memory
    b->got.damage = 0;
    b->job.kernel = QG_GROUP_KERNEL_HOPPER;
    status = device_quantize(b->c, &b->job, &b->got);
    b->wanted = shared;
    if (status == QG_OK)
        write_row(b, "seed shapes: the twin against shared", "differs from the shared kernel",
                  device_compare(&b->wanted, &b->got));
    return status;
}

static qg_status try_shape(seed_bench *b, int64_t m, int64_t k) {
    qg_status status = device_input_fill(&b->x, DEVICE_DATA_GROUPS, QG_FORMAT_BF16, 1, m, k);
    b->job.x = &b->x;
    if (status == QG_OK)
        status = device_quantized_open(&b->job, &b->wanted);
    if (status == QG_OK)
        status = device_quantized_open(&b->job, &b->got);
    if (status == QG_OK)
        status = compare_kernels(b);
    if (status == QG_ERROR_UNSUPPORTED) {
        device_report_left(b->c->report, "seed shapes", 2, qg_detail());
        status = QG_OK;
    }
    device_quantized_free(&b->wanted);
    device_quantized_free(&b->got);
    return status;
}

qg_status device_stage_seed(device_check *c) {
    static const int64_t ks[] = {5120, 6144, 17408}, ms[] = {16, 17, 25, 1168, 4576};
    static const int64_t small_ks[] = {512, 1152}, small_ms[] = {3, 17};
    int64_t k_count = c->is_small ? 2 : 3, m_count = c->is_small ? 2 : 5;
    device_recipe spec = {.format = "metrale_act128"};
    seed_bench b = {
        .c = c, .job = {.format = spec.format, .seed = 1}
    };
    qg_status status = device_recipe_make(&spec, &b.job.recipe);
    for (int64_t i = 0; i < m_count; i++) // the large ones last
        for (int64_t j = 0; j < k_count && status == QG_OK; j++) {
            if (device_is_late(c))
                device_report_left(c->report, "seed shapes", 2, "time is up");
            else
                status = try_shape(&b, c->is_small ? small_ms[i] : ms[i],
                                   c->is_small ? small_ks[j] : ks[j]);
        }
    device_input_free(&b.x);
    return status;
}
