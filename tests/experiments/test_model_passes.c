// The seeded transformer under the passes: what is inserted where, and that half precision, whose
// largest number is 65504, bears the mask.
#include "model_check.h"

#include <qg_graph_pass.h>
#include <run_suite.h>
#include <stdio.h>

enum { SENTENCES = 8, TOKENS = 12, HIDDEN = 64 };

static model *open_seeded(void) {
    model *m;
    ck_assert_msg(model_open("seeded", &m) == QG_OK, "%s", qg_detail());
    return m;
}

// The smallest cosine of an embedding with that of the model itself.
static double smallest_cosine(const model *m, const qg_graph *graph) {
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(m, &feeds);
    qg_graph_runner *a = run_graph(model_graph(m), count, feeds),
                    *b = run_graph(graph, count, feeds);
    const float *x = values_of(model_graph(m), a, "embedding");
    const float *y = values_of(graph, b, "embedding");
    double smallest = 1;
    for (int s = 0; s < SENTENCES; s++) {
        double xx = 0, yy = 0, xy = 0;
        for (int i = s * HIDDEN; i < (s + 1) * HIDDEN; i++) {
            xx += (double)x[i] * (double)x[i];
            yy += (double)y[i] * (double)y[i];
            xy += (double)x[i] * (double)y[i];
        }
        double cosine = xy / sqrt(xx * yy);
        smallest = cosine >= smallest ? smallest : cosine; // NaN is taken
    }
    qg_graph_runner_free(a);
    qg_graph_runner_free(b);
    return smallest;
}

static qg_graph *scaled(const model *m, const qg_scaling *scaling, qg_scaling_report *report) {
    qg_graph *graph;
    qg_status status = qg_graph_insert_scaled_matmul(model_graph(m), scaling, &graph, report);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    return graph;
}

START_TEST(each_dense_layer_becomes_a_scaled_product_without_a_transpose) {
    model *m = open_seeded();
    qg_scaling_report report;
    qg_graph *graph = scaled(m, &(qg_scaling){.lhs = "mxfp8"}, &report);
    ck_assert_int_eq(report.products, 12);
    ck_assert_int_eq(report.left_alone, 4);
    ck_assert_int_eq(report.transposed, 0);
    // Query, key and value share their input: 6 weights and 4 activations per layer.
    ck_assert_int_eq(report.quantized, 2 * (6 + 4));
    ck_assert_int_eq(report.reused, 2 * 2);
    ck_assert_double_gt(smallest_cosine(m, graph), 0.99);
    qg_graph_free(graph);
    model_free(m);
}
END_TEST

START_TEST(scores_and_context_become_scaled_products_when_asked) {
    model *m = open_seeded();
    qg_scaling_report report;
    qg_graph *graph = scaled(m, &(qg_scaling){.lhs = "mxfp8", .batched = true}, &report);
    ck_assert_int_eq(report.products, 16);
    ck_assert_int_eq(report.left_alone, 0);
    ck_assert_double_gt(smallest_cosine(m, graph), 0.99);
    qg_graph_free(graph);
    model_free(m);
}
END_TEST

START_TEST(filters_select_by_the_names_of_products) {
    static const struct {
        const char *only, *except;
        int products;
    } CASES[] = {
        {"layer0/*",              NULL,         6 },
        {"*/query/*,*/key/*",     NULL,         4 },
        {NULL,                    "*/output/*", 10},
        {"layer1/output/product", NULL,         1 },
    };
    model *m = open_seeded();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        qg_scaling_report report;
        const qg_scaling scaling = {
            .lhs = "mxfp8", .only = CASES[i].only, .except = CASES[i].except};
        qg_graph *graph = scaled(m, &scaling, &report);
        ck_assert_int_eq(report.products, CASES[i].products);
        qg_graph_free(graph);
    }
    model_free(m);
}
END_TEST

// Of a sentence of padding alone each score is masked: were they infinite, softmax would be NaN.
static void expect_zero_without_tokens(const model *m, const qg_graph *graph) {
    float mask[SENTENCES * TOKENS];
    const qg_graph_feed *own;
    model_feeds(m, &own);
    memcpy(mask, own[1].values, sizeof mask);
    memset(mask, 0, TOKENS * sizeof mask[0]);
    const qg_graph_feed feeds[] = {
        own[0], {"mask", mask}
    };
    qg_graph_runner *runner = run_graph(graph, 2, feeds);
    for (int i = 0; i < HIDDEN; i++)
        ck_assert(values_of(graph, runner, "embedding")[i] == 0.0f);
    qg_graph_runner_free(runner);
}

START_TEST(half_precision_bears_the_mask) {
    static const qg_dtype DTYPES[] = {QG_DTYPE_FP16, QG_DTYPE_BF16};
    model *m = open_seeded();
    for (int i = 0; i < 2; i++) {
        qg_graph *graph;
        ck_assert_msg(qg_graph_lower_precision(model_graph(m), DTYPES[i], &graph) == QG_OK, "%s",
                      qg_detail());
        ck_assert_int_ge(qg_graph_count_op(graph, QG_GRAPH_CAST), 1);
        double cosine = smallest_cosine(m, graph);
        printf("%s: smallest cosine %.6f\n", qg_dtype_name(DTYPES[i]), cosine);
        ck_assert_double_gt(cosine, i == 0 ? 0.99999 : 0.999);
        expect_zero_without_tokens(m, graph);
        qg_graph_free(graph);
    }
    model_free(m);
}
END_TEST

START_TEST(folding_weights_changes_no_bit) {
    model *m = open_seeded();
    qg_graph *graph = scaled(m, &(qg_scaling){.lhs = "mxfp8"}, NULL), *folded;
    qg_graph_run_options options = {.threads = 2};
    ck_assert_msg(qg_graph_fold(graph, true, &options, &folded) == QG_OK, "%s", qg_detail());
    ck_assert_int_eq(qg_graph_count_op(folded, QG_GRAPH_SCALED_QUANTIZE), 2 * 4); // activations
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(m, &feeds);
    qg_graph_runner *a = run_graph(graph, count, feeds), *b = run_graph(folded, count, feeds);
    ck_assert_mem_eq(values_of(graph, a, "embedding"), values_of(folded, b, "embedding"),
                     SENTENCES * HIDDEN * sizeof(float));
    qg_graph_runner_free(a);
    qg_graph_runner_free(b);
    qg_graph_free(graph);
    qg_graph_free(folded);
    model_free(m);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {each_dense_layer_becomes_a_scaled_product_without_a_transpose,
                                  scores_and_context_become_scaled_products_when_asked,
                                  filters_select_by_the_names_of_products,
                                  half_precision_bears_the_mask, folding_weights_changes_no_bit};
    if (qg_unit_use_isa(NULL) != QG_OK)
        return 1;
    return RUN_SUITE("model_passes", tests);
}
