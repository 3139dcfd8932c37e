// When a measured case is MISTRUSTED: its data say little. See op_internal.h.
#include <op_internal.h>

#include <qg_codec.h>
#include <qg_format_name.h>
#include <qg_source.h>

#include <stdio.h>

static bool is_open(const qg_case_result *result) { return result->status == QG_CASE_RAN; }

// Whether the largest value that the recipe scales data to has a square beyond binary32.
static bool overflows_products(const qg_recipe *recipe) {
    qg_format_info info = qg_format_describe(recipe->element);
    double largest = qg_format_max(&info);
    return recipe->rule != QG_RULE_FIXED && largest * largest > 0x1.fffffep127;
}

// What may help a product of wide formats (bf16, tf32, fp32) that overflowed; or "".
static void advise(const qg_case *c, char *text, size_t size) {
    const qg_recipe *recipes[2] = {c->recipe, c->recipe_b};
    text[0] = 0;
    for (int i = 0; i < 2 && c->op->kind == QG_OP_PRODUCT && !text[0]; i++)
        if (overflows_products(recipes[i])) {
            char name[QG_NAME_SIZE];
            qg_format_name(recipes[i]->element, name);
            snprintf(text, size,
                     "; %s scales these data to the largest value of %s: try --rules fixed:1",
                     i ? c->scale_rule_b : c->scale_rule, name);
        }
}

static void judge_odd(const qg_case *c, int64_t odd, qg_case_result *result) {
    char advice[128];
    advise(c, advice, sizeof advice);
    qg_case_result_set(result, QG_CASE_MISTRUSTED, "%lld elements of %s are NaN or infinite%s",
                       (long long)odd, c->source->model ? "a model" : "synthetic data", advice);
}

void qg_op_judge_pairs(const qg_case *c, const qg_sums *s, const char *reference,
                       qg_case_result *result) {
    int64_t odd = s->nan_reference + s->inf_reference + s->nan_output + s->inf_output;
    double n = (double)s->n;
    if (!is_open(result))
        return;
    if ((c->source->law || c->source->model) && odd > 0)
        judge_odd(c, odd, result);
    else if ((double)s->zero_reference > 0.7 * n)
        qg_case_result_set(result, QG_CASE_MISTRUSTED, "%.1f %% of the %s is zero",
                           100 * (double)s->zero_reference / n, reference);
    else if ((double)s->zero_output > 0.7 * n)
        qg_case_result_set(result, QG_CASE_MISTRUSTED, "%.1f %% of the output is zero",
                           100 * (double)s->zero_output / n);
}

void qg_op_judge_saturation(const qg_counts *counts, qg_case_result *result) {
    double n = (double)counts->n;
    if (is_open(result) && (double)counts->saturated > 0.5 * n)
        qg_case_result_set(result, QG_CASE_MISTRUSTED, "%.1f %% of the elements saturated",
                           100 * (double)counts->saturated / n);
}
