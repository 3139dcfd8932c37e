// What a run of the seeded model is made of: the recipes of both operands in one graph, the backend
// and the weights of its own case, means over tokens, and what it says of NaN.
#include <plan_options.h>

#include <model.h>
#include <model_run.h>
#include <qg_digest.h>
#include <qg_graph_pass.h>
#include <qg_workspace.h>

#include <math.h>

static qg_case_result run_in(const qg_case *c, qg_workspace *workspace) {
    qg_case_result result;
    qg_case_result_clear(&result, c);
    c->op->run(c, workspace, &result);
    return result;
}

static qg_workspace *workspace_of(void) {
    qg_workspace *workspace;
    ck_assert_int_eq(qg_workspace_create(1, &workspace), QG_OK);
    return workspace;
}

static qg_case_result run_fresh(const qg_case *c) {
    qg_workspace *workspace = workspace_of();
    qg_case_result result = run_in(c, workspace);
    qg_workspace_free(workspace);
    return result;
}

static qg_plan *int8_plan(const char *unit, const char *backend, const char *tensor) {
    char where[64];
    snprintf(where, sizeof where, "tensor=%s", tensor);
    qg_plan *plan =
        plan_of("", "ops", "model", "data", "model:seeded", "formats", "int8", "layouts", "per_row",
                "units", unit, "backends", backend, "where", where, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 1);
    return plan;
}

// Of the node in a graph with the recipes, whose weights are quantized as it runs.
static uint64_t digest_of_graph(const model *m, const qg_scaling *scaling, uint64_t seed,
                                const char *name) {
    const qg_graph_feed *feeds;
    qg_graph *graph;
    qg_graph_runner *runner;
    qg_unit exact;
    ck_assert_int_eq(qg_unit_parse("exact", &exact), QG_OK);
    qg_graph_run_options options = {.unit = &exact, .threads = 1, .seed = seed, .keep = true};
    int32_t count = model_feeds(m, &feeds);
    ck_assert_msg(qg_graph_insert_scaled_matmul(model_graph(m), scaling, &graph, NULL) == QG_OK,
                  "%s", qg_detail());
    ck_assert_int_eq(qg_graph_runner_create(graph, &options, &runner), QG_OK);
    ck_assert_msg(qg_graph_runner_run(runner, count, feeds) == QG_OK, "%s", qg_detail());
    qg_node node = qg_graph_find(graph, name);
    int64_t elements = qg_tensor_elements(qg_graph_node_type(graph, node));
    uint64_t digest =
        qg_digest_bytes(qg_graph_runner_values(runner, node), (size_t)elements * sizeof(float));
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
    return digest;
}

static void same_as_graph(const char *rounding, const char *lhs, const char *rhs) {
    qg_plan *plan = plan_of("", "ops", "model", "data", "model:seeded", "formats", "int8",
                            "formats-b", "mxfp4", "layouts", "per_row", "rounding", rounding,
                            "units", "exact", "seeds", "3", "where", "tensor=embedding", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 1);
    const qg_case *c = qg_plan_case(plan, 0);
    ck_assert_str_eq(c->scale_rule, "amax");
    ck_assert_str_eq(c->scale_rule_b, "floor");
    qg_case_result r = run_fresh(c);
    qg_scaling scaling = {.lhs = lhs, .rhs = rhs};
    ck_assert_msg(r.status == QG_CASE_RAN, "%s", r.reason);
    ck_assert_uint_eq(r.output_digest,
                      digest_of_graph(c->source->model, &scaling, c->seed, "embedding"));
    qg_plan_free(plan);
}

START_TEST(a_run_is_that_of_a_graph_with_both_recipes) {
    same_as_graph("rtz", "int8/per_row/amax/rtz", "mxfp4/per_row/floor/rtz");
    same_as_graph("stochastic:A:16", "int8/per_row/amax/stochastic:A:16",
                  "mxfp4/per_row/floor/stochastic:A:16");
}
END_TEST

// Nobody answers for the other backend; what is kept of cpu is not its answer.
START_TEST(another_backend_is_another_run) {
    qg_plan *plan = int8_plan("native", "cpu", "embedding");
    qg_workspace *workspace = workspace_of();
    qg_case other = *qg_plan_case(plan, 0);
    ck_assert_int_eq(run_in(&other, workspace).status, QG_CASE_RAN);
    other.backend = "cuda";
    qg_case_result r = run_in(&other, workspace);
    ck_assert_int_ne(strncmp(r.impl_used, "cpu", 3), 0);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

// A model of the same name with one weight changed, and the digest that goes with it.
static qg_source changed_model(const qg_case *c, const char *weight, float value, float *before) {
    qg_source source = *c->source;
    const qg_graph *graph = model_graph(source.model);
    float *values = (float *)(uintptr_t)qg_graph_node_values(graph, qg_graph_find(graph, weight));
    *before = values[0];
    values[0] = value;
    source.digest++;
    return source;
}

static const char WEIGHT[] = "encoder.layer.0.attention.self.query.weight";

START_TEST(a_model_of_other_content_is_another_run) {
    qg_plan *plan = int8_plan("exact", "emulator", "layer0/query/product");
    qg_workspace *workspace = workspace_of();
    qg_case c = *qg_plan_case(plan, 0);
    float before, xx;
    qg_case_result first = run_in(&c, workspace);
    qg_source other = changed_model(&c, WEIGHT, 3, &before);
    c.source = &other;
    qg_case_result second = run_in(&c, workspace);
    xx = (float)qg_sum_value(first.compared[0].sums.xx);
    ck_assert_int_eq(second.status, QG_CASE_RAN);
    ck_assert_uint_ne(first.output_digest, second.output_digest);
    ck_assert(xx < (float)qg_sum_value(second.compared[0].sums.xx)); // in fp32, too
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

START_TEST(a_model_with_nan_is_mistrusted) {
    qg_plan *plan = int8_plan("exact", "emulator", "layer0/query/product");
    qg_case c = *qg_plan_case(plan, 0);
    float before;
    qg_source other = changed_model(&c, WEIGHT, NAN, &before);
    c.source = &other;
    qg_case_result r = run_fresh(&c);
    ck_assert_int_eq(r.status, QG_CASE_MISTRUSTED);
    ck_assert_msg(strstr(r.reason, "elements of a model are NaN or infinite") != NULL, "%s",
                  r.reason);
    ck_assert(r.compared[0].has_sums);
    qg_plan_free(plan);
}
END_TEST

// The length of embeddings hides what their sum is divided by.
START_TEST(pooled_is_the_mean_over_the_tokens_of_a_sentence) {
    model *m;
    const qg_graph_feed *feeds;
    qg_graph_runner *runner;
    qg_graph_run_options options = {.threads = 1, .keep = true};
    ck_assert_int_eq(model_open("seeded", &m), QG_OK);
    const qg_graph *graph = model_graph(m);
    int32_t count = model_feeds(m, &feeds);
    const float *mask = feeds[1].values;
    ck_assert_int_eq(qg_graph_runner_create(graph, &options, &runner), QG_OK);
    ck_assert_int_eq(qg_graph_runner_run(runner, count, feeds), QG_OK);
    const float *pooled = qg_graph_runner_values(runner, qg_graph_find(graph, "pooled"));
    const float *x = qg_graph_runner_values(runner, qg_graph_find(graph, "layer1/output_norm"));
    enum { SENTENCES = 8, TOKENS = 12, HIDDEN = 64 };
    for (int s = 0; s < SENTENCES; s++)
        for (int h = 0; h < HIDDEN; h++) {
            double sum = 0, tokens = 0;
            for (int t = 0; t < TOKENS; t++)
                if (mask[s * TOKENS + t] != 0.0f) {
                    sum += (double)x[(s * TOKENS + t) * HIDDEN + h];
                    tokens++;
                }
            ck_assert_double_eq_tol(pooled[s * HIDDEN + h], sum / tokens, 1e-6);
        }
    qg_graph_runner_free(runner);
    model_free(m);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_run_is_that_of_a_graph_with_both_recipes, another_backend_is_another_run,
        a_model_of_other_content_is_another_run, a_model_with_nan_is_mistrusted,
        pooled_is_the_mean_over_the_tokens_of_a_sentence};
    return RUN_SUITE("model_run", tests);
}
