// Codes, scales and tensor scales of the scaled ops against recipes of every layout and structure.
// Other rules: test_graph_verify_scaled.c.
#include "refused_line.h"

#include <run_suite.h>

// What quantizing x (fp32[4,40]) gives: written out, so that nothing computes what it checks.
typedef struct form {
    const char *recipe;
    qg_tensor_type scale;
    bool has_tensor_scale, has_two_planes, has_blocks;
} form;

// clang-format off
static const form FORMS[] = {
    {"e4m3", {QG_DTYPE_FP32, 1, {1}}, false, false, false},
    {"te_e4m3_pow2", {QG_DTYPE_FP32, 1, {1}}, false, false, false},
    {"int4//fixed:0x1.8p-2", {QG_DTYPE_FP32, 1, {1}}, false, false, false},
    {"e5m2/per_row", {QG_DTYPE_FP32, 2, {4, 1}}, false, false, false},
    {"mxfp8/per_row", {QG_DTYPE_U8, 2, {4, 1}}, false, false, false},
    {"mxfp8", {QG_DTYPE_U8, 2, {4, 2}}, false, false, false},
    {"deepseek_act128", {QG_DTYPE_FP32, 2, {4, 1}}, false, false, false},
    {"e4m3/group:16", {QG_DTYPE_FP32, 2, {4, 3}}, false, false, false},
    {"e2m1/group:8/rceil/rtz", {QG_DTYPE_U8, 2, {4, 5}}, false, false, false},
    {"deepseek_w128x128", {QG_DTYPE_FP32, 2, {1, 1}}, false, false, true},
    {"e4m3/block:2x16", {QG_DTYPE_FP32, 2, {2, 3}}, false, false, true},
    {"mxfp4/block:3x8", {QG_DTYPE_U8, 2, {2, 5}}, false, false, true},
    {"nvfp4", {QG_DTYPE_U8, 2, {4, 3}}, true, false, false},
    {"nvfp4_4over6/group:40", {QG_DTYPE_U8, 2, {4, 1}}, true, false, false},
    {"rlx_nvfp4", {QG_DTYPE_U8, 2, {4, 3}}, false, false, false},
    {"mx9", {QG_DTYPE_U8, 3, {4, 3, 2}}, false, false, false},
    {"msfp12", {QG_DTYPE_U8, 3, {4, 3, 2}}, false, false, false},
    {"rlx_mxfp4x2", {QG_DTYPE_FP32, 3, {4, 2, 2}}, false, true, false}
};
// clang-format on

enum { FORM_COUNT = sizeof FORMS / sizeof FORMS[0] };

// Where a quantized tensor goes in. The other operand is mxfp8.
typedef enum use { QUANTIZE, DEQUANTIZE, LHS, RHS, TOKENS, EXPERTS, USE_COUNT } use;

// What details call it.
static const char *const USE_NAMES[] = {"", "", " of lhs", " of rhs", " of tokens", " of experts"};

static bool has_use(const form *f, use u) {
    return !f->has_blocks || (u != TOKENS && u != EXPERTS);
}

typedef struct parts {
    qg_tensor_type codes, scale, tensor_scale;
} parts;

// Experts are two matrices of two rows.
static parts parts_of(const form *f, use u) {
    parts p = {.codes = qg_tensor(QG_DTYPE_U8, 2, 4, 40),
               .scale = f->scale,
               .tensor_scale = qg_tensor(QG_DTYPE_FP32, 1, 1)};
    if (u == EXPERTS)
        p.codes = qg_tensor(QG_DTYPE_U8, 3, 2, 2, 40);
    if (f->has_two_planes) {
        insert_axis(&p.codes, 0);
        p.codes.shape[0] = 2;
    }
    return p;
}

static void line_of(const form *f, use u, bool with_tensor_scale, char *line, size_t size) {
    const char *ts = with_tensor_scale ? ",ts" : "";
    char codes[QG_TENSOR_TEXT_SIZE];
    parts own = parts_of(f, u);
    qg_tensor_text(&own.codes, codes);
    switch (u) {
    case QUANTIZE:
        snprintf(line, size, "scaled_quantize(x,scale%s) %s recipe=%s", ts, codes, f->recipe);
        return;
    case DEQUANTIZE:
        snprintf(line, size, "scaled_dequantize(codes,scale%s) fp32[4,40] recipe=%s", ts,
                 f->recipe);
        return;
    case LHS:
        snprintf(line, size,
                 "scaled_matmul(codes,c6,scale,s6%s) fp32[4,6] recipe=%s recipe_b=mxfp8", ts,
                 f->recipe);
        return;
    case RHS:
        snprintf(line, size,
                 "scaled_matmul(c6,codes,s6,scale%s) bf16[6,4] recipe=mxfp8 recipe_b=%s", ts,
                 f->recipe);
        return;
    case TOKENS:
        snprintf(line, size,
                 "scaled_grouped_matmul(codes,c37,i4,scale,s37%s) fp32[4,7] recipe=%s "
                 "recipe_b=mxfp8",
                 ts, f->recipe);
        return;
    default:
        snprintf(line, size,
                 "scaled_grouped_matmul(c6,codes,i6,s6,scale%s) bf16[6,2] recipe=mxfp8 "
                 "recipe_b=%s",
                 ts, f->recipe);
    }
}

static void sources_of(const parts *p, char *sources, size_t size) {
    char codes[QG_TENSOR_TEXT_SIZE], scale[QG_TENSOR_TEXT_SIZE], tensor_scale[QG_TENSOR_TEXT_SIZE];
    qg_tensor_text(&p->codes, codes);
    qg_tensor_text(&p->scale, scale);
    qg_tensor_text(&p->tensor_scale, tensor_scale);
    snprintf(sources, size,
             "x = input fp32[4,40]\ncodes = input %s\nscale = input %s\nts = input %s\n"
             "c6 = input u8[6,40]\ns6 = input u8[6,2]\nc37 = input u8[3,7,40]\n"
             "s37 = input u8[21,2]\ni4 = input i64[4]\ni6 = input i64[6]\n",
             codes, scale, tensor_scale);
}

static void check_form_refused(const form *f, use u, const parts *p, bool with_tensor_scale,
                               const char *message) {
    char sources[1024], line[512];
    sources_of(p, sources, sizeof sources);
    line_of(f, u, with_tensor_scale, line, sizeof line);
    check_refused(sources, &(refused_line){line, message});
}

START_TEST(each_form_is_taken_everywhere) {
    for (int i = 0; i < FORM_COUNT; i++)
        for (int u = 0; u < USE_COUNT; u++) {
            char sources[1024], line[512];
            parts p = parts_of(&FORMS[i], (use)u);
            if (!has_use(&FORMS[i], (use)u))
                continue;
            sources_of(&p, sources, sizeof sources);
            line_of(&FORMS[i], (use)u, FORMS[i].has_tensor_scale, line, sizeof line);
            check_taken(sources, line);
        }
}
END_TEST

// Calls `each` for every form, use and slip.
static void visit(void (*each)(const form *f, use u, int slip)) {
    for (int i = 0; i < FORM_COUNT; i++)
        for (int u = 0; u < USE_COUNT; u++)
            for (int slip = 0; slip < TYPE_SLIPS && has_use(&FORMS[i], (use)u); slip++)
                each(&FORMS[i], (use)u, slip);
}

static void check_scale(const form *f, use u, int slip) {
    char message[512], wrong[QG_TENSOR_TEXT_SIZE], right[QG_TENSOR_TEXT_SIZE];
    parts p = parts_of(f, u);
    if (!slip_type(&p.scale, slip))
        return;
    qg_tensor_text(&p.scale, wrong);
    qg_tensor_text(&f->scale, right);
    snprintf(message, sizeof message, "scale%s is %s, not %s", USE_NAMES[u], wrong, right);
    check_form_refused(f, u, &p, f->has_tensor_scale, message);
}

START_TEST(a_scale_of_another_type_is_refused) { visit(check_scale); }
END_TEST

// How many experts there are matters to scales of blocks alone.
static void check_codes(const form *f, use u, int slip) {
    parts p = parts_of(f, u);
    bool matters = !(u == EXPERTS && f->scale.rank == 1 && slip < 2);
    if (slip_type(&p.codes, slip) && u != QUANTIZE && matters)
        check_form_refused(f, u, &p, f->has_tensor_scale, "");
}

START_TEST(codes_of_another_type_are_refused) { visit(check_codes); }
END_TEST

static void check_tensor_scale(const form *f, use u, int slip) {
    char message[512], wrong[QG_TENSOR_TEXT_SIZE];
    parts p = parts_of(f, u);
    if (!slip_type(&p.tensor_scale, slip) || !f->has_tensor_scale)
        return;
    qg_tensor_text(&p.tensor_scale, wrong);
    snprintf(message, sizeof message, "tensor scale%s is %s, not fp32[1]", USE_NAMES[u], wrong);
    check_form_refused(f, u, &p, true, message);
}

START_TEST(a_tensor_scale_of_another_type_is_refused) { visit(check_tensor_scale); }
END_TEST

// Products take a superfluous one for a bias.
START_TEST(a_tensor_scale_too_much_or_too_few_is_refused) {
    for (int i = 0; i < FORM_COUNT; i++)
        for (int u = 0; u < USE_COUNT; u++) {
            const form *f = &FORMS[i];
            parts p = parts_of(f, (use)u);
            bool has = f->has_tensor_scale;
            const char *message = u <= DEQUANTIZE
                                      ? (has ? "has a tensor scale" : "has no tensor sc")
                                  : has ? " inputs, not "
                                        : "bias is fp32[1], not fp32[";
            if (has_use(f, (use)u))
                check_form_refused(f, (use)u, &p, !has, message);
        }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {each_form_is_taken_everywhere, a_scale_of_another_type_is_refused,
                                  codes_of_another_type_are_refused,
                                  a_tensor_scale_of_another_type_is_refused,
                                  a_tensor_scale_too_much_or_too_few_is_refused};
    return RUN_SUITE("graph_scaled_forms", tests);
}
