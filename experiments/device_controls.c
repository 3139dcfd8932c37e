// Stage `controls`: results known to be bad, which the comparison must catch. A control that is not
// caught fails the check, whatever else passed.
//
// Each begins with a result of the device that equals the emulator's; what is bad is then the other
// side (an encoder that truncates or rounds half up, scales in another order), the result itself (a
// scale off by one, a changed guard byte), or the call (one row too many).
#include <device_recipes.h>
#include <device_stage.h>

#include <inttypes.h>

typedef struct control {
    device_check *c;
    device_job job;
    device_quantized wanted, got;
} control;

static int64_t sum_of(device_difference d) { return d.codes + d.scales + d.guards; }

static void write_row(const control *t, const char *name, int64_t caught) {
    qg_cuda_quantize call = device_call_of(&t->job);
    device_report_row(t->c->report, DEVICE_CONTROL, name,
                      caught > 0 ? DEVICE_VERDICT_PASSED : DEVICE_VERDICT_FAILED,
                      caught > 0 ? "" : "a bad result was not caught", "%s\t%s\t%" PRId64, name,
                      t->c->module->quantize_name(&call), caught);
}

// What the emulator gives under another rounding.
static qg_status as_rounded(control *t, int mode, device_quantized *out) {
    device_job job = t->job;
    job.recipe.conversion.rounding.mode = (uint8_t)mode;
    return device_emulate(&job, out);
}

static qg_status control_encoders(control *t) {
    qg_status status = as_rounded(t, QG_ROUND_RTZ, &t->wanted);
    if (status != QG_OK)
        return status;
    write_row(t, "an encoder that truncates", device_compare(&t->wanted, &t->got).codes);
    status = as_rounded(t, QG_ROUND_RNA, &t->wanted);
    if (status == QG_OK)
        write_row(t, "ties half up", device_compare(&t->wanted, &t->got).codes);
    return status;
}

// K-major scales read as if they were row-major: P of 1 keeps the size.
static qg_status control_order(control *t) {
    device_job job = t->job;
    job.storage.order = (qg_scale_order){.kind = QG_ORDER_K_MAJOR, .padding = 1};
    qg_status status = device_emulate(&job, &t->wanted);
    if (status == QG_OK)
        write_row(t, "scales in another order", device_compare(&t->wanted, &t->got).scales);
    return status;
}

static qg_status control_bytes(control *t) {
    qg_status status = device_emulate(&t->job, &t->wanted);
    if (status != QG_OK)
        return status;
    int64_t last = t->got.shape.scales_size - 1;
    t->got.scales[last]++;
    write_row(t, "a scale off by one", device_compare(&t->wanted, &t->got).scales);
    t->got.scales[last]--;
    t->got.codes[t->got.shape.codes_size - 1] ^= 0x80;
    write_row(t, "the sign of the last code", device_compare(&t->wanted, &t->got).codes);
    t->got.codes[t->got.shape.codes_size - 1] ^= 0x80;
    return QG_OK;
}

// A byte right behind the codes, and one right before them.
static qg_status control_guard(control *t, int64_t at, const char *name) {
    device_check *c = t->c;
    uint8_t byte = DEVICE_POISON ^ 1;
    uint8_t *codes = c->room[DEVICE_ROOM_CODES].base + DEVICE_GUARD_BYTES;
    int64_t damage = 0;
    qg_status status = device_status(c, c->module->copy_in(codes + at, &byte, 1, &c->error));
    if (status == QG_OK)
        status = device_get(c, DEVICE_ROOM_CODES, t->got.codes, t->got.shape.codes_size, &damage);
    if (status != QG_OK)
        return status;
    t->got.damage = damage;
    write_row(t, name, device_compare(&t->wanted, &t->got).guards);
    byte = DEVICE_POISON;
    return device_status(c, c->module->copy_in(codes + at, &byte, 1, &c->error));
}

// A row beyond m: its codes and scales fit the guards.
static qg_status control_rows(control *t) {
    t->job.extra_rows = 1;
    qg_status status = device_quantize(t->c, &t->job, &t->got);
    t->job.extra_rows = 0;
    if (status == QG_OK)
        write_row(t, "m + 1 rows", device_compare(&t->wanted, &t->got).guards);
    return status;
}

// The controls prove something only where the true result is right.
static qg_status run_all(control *t) {
    qg_status status = device_emulate(&t->job, &t->wanted);
    if (status == QG_OK)
        status = device_quantize(t->c, &t->job, &t->got);
    if (status != QG_OK)
        return status;
    int64_t wrong = sum_of(device_compare(&t->wanted, &t->got));
    qg_cuda_quantize call = device_call_of(&t->job);
    device_report_row(t->c->report, DEVICE_CONTROL, "the true result, which must not be caught",
                      wrong ? DEVICE_VERDICT_FAILED : DEVICE_VERDICT_PASSED,
                      wrong ? "the controls begin with a wrong result" : "", "none\t%s\t%" PRId64,
                      t->c->module->quantize_name(&call), wrong);
    status = control_encoders(t);
    if (status == QG_OK)
        status = control_order(t);
    if (status == QG_OK)
        status = control_bytes(t);
    if (status == QG_OK)
        status = control_guard(t, t->got.shape.codes_size, "a changed byte behind the codes");
    if (status == QG_OK)
        status = control_guard(t, -1, "a changed byte before the codes");
    return status == QG_OK ? control_rows(t) : status;
}

static qg_status with_kernel(device_check *c, const device_input *x, int kernel) {
    enum { CONTROLS = 8 };
    device_recipe spec = {.format = "metrale_act128"};
    control t = {
        .c = c, .job = {.format = spec.format, .kernel = kernel, .x = x, .seed = 1}
    };
    qg_status status = device_recipe_make(&spec, &t.job.recipe);
    if (status == QG_OK)
        status = device_quantized_open(&t.job, &t.wanted);
    if (status == QG_OK)
        status = device_quantized_open(&t.job, &t.got);
    if (status == QG_OK)
        status = run_all(&t);
    if (status == QG_ERROR_UNSUPPORTED) {
        device_report_left(c->report, "controls", CONTROLS, qg_detail());
        status = QG_OK;
    }
    device_quantized_free(&t.wanted);
    device_quantized_free(&t.got);
    return status;
}

qg_status device_stage_controls(device_check *c) {
    device_input x = {0};
    // Rows of at most DEVICE_GUARD_BYTES codes, several groups each, all kinds of groups.
    qg_status status = device_input_fill(&x, DEVICE_DATA_GROUPS, QG_FORMAT_BF16, 1, 16, 256);
    for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT && status == QG_OK; kernel++)
        status = with_kernel(c, &x, kernel);
    device_input_free(&x);
    return status;
}
