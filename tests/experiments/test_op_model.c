// Operation `model` on the seeded transformer: what recipes lose, that results depend on nothing but
// the case, and the pieces: rank agreement, rounded products, kept objects.
#include <plan_options.h>

#include <model.h>
#include <model_run.h>
#include <qg_cpu.h>
#include <qg_graph_pass.h>
#include <qg_workspace.h>

#include <math.h>

static qg_workspace *workspace_of(int threads) {
    qg_workspace *workspace;
    ck_assert_int_eq(qg_workspace_create(threads, &workspace), QG_OK);
    return workspace;
}

static qg_case_result run(const qg_case *c, qg_workspace *workspace) {
    qg_case_result result;
    qg_case_result_clear(&result, c);
    c->op->run(c, workspace, &result);
    return result;
}

static qg_case_result run_fresh(const qg_case *c, int threads) {
    qg_workspace *workspace = workspace_of(threads);
    qg_case_result result = run(c, workspace);
    qg_workspace_free(workspace);
    return result;
}

static void ran(const qg_case_result *result) {
    ck_assert_msg(result->status == QG_CASE_RAN, "%s: %s",
                  qg_case_status_name((qg_case_status)result->status), result->reason);
    ck_assert(result->compared[0].has_sums && !result->compared[1].has_sums);
}

// But for how long it took.
static void same(const qg_case_result *a, const qg_case_result *b) {
    ck_assert_int_eq(a->status, b->status);
    ck_assert_uint_eq(a->output_digest, b->output_digest);
    ck_assert_uint_eq(a->input_digest, b->input_digest);
    ck_assert_int_eq(memcmp(&a->compared, &b->compared, sizeof a->compared), 0);
    ck_assert_str_eq(a->impl_used, b->impl_used);
}

static double metric(const qg_case_result *result, qg_metric which) {
    return qg_metric_value(&result->compared[0].sums, which);
}

static const qg_case *find(const qg_plan *plan, const char *format, const char *tensor) {
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (strcmp(c->format, format) == 0 && strcmp(c->tensor, tensor) == 0)
            return c;
    }
    ck_abort_msg("no case of %s at %s", format, tensor);
    return NULL;
}

// Of the seeded model; where: of its nodes.
static qg_plan *seeded(const char *formats, const char *layouts, const char *units,
                       const char *where) {
    return plan_of("", "ops", "model", "data", "model:seeded", "formats", formats, "layouts",
                   layouts, "units", units, "where", where, NULL);
}

// --------------------------------------------------------------------------------------- measured

START_TEST(more_bits_lose_less) {
    qg_plan *plan = plan_of("", "ops", "model", "data", "model:seeded", "formats",
                            "mxint8,mxfp8,mxfp6_e2m3,mxfp4", "rules", "rceil", "units", "exact",
                            "where", "tensor=embedding", NULL);
    static const struct {
        const char *format;
        double least_db, most_db;
    } rows[] = {
        {"mxint8",     35, 50},
        {"mxfp6_e2m3", 24, 35},
        {"mxfp8",      22, 35},
        {"mxfp4",      8,  22}
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        qg_case_result r = run_fresh(find(plan, rows[i].format, "embedding"), 1);
        ran(&r);
        double db = metric(&r, QG_METRIC_QSNR_DB), rho = r.compared[0].spearman;
        ck_assert_msg(db > rows[i].least_db && db < rows[i].most_db, "%s: %g", rows[i].format, db);
        ck_assert(rho > 0.4 && rho <= 1);
        ck_assert(metric(&r, QG_METRIC_COSINE) > (rows[i].least_db > 20 ? 0.99 : 0.9));
        ck_assert_double_eq_tol(qg_sum_value(r.compared[0].sums.xx), 8, 1e-5); // rows of length 1
    }
    qg_plan_free(plan);
}
END_TEST

START_TEST(int8_by_rows_agrees_with_the_model_in_fp32_and_four_bits_less) {
    qg_plan *plan = seeded("int8,int4", "per_row", "exact", "tensor=embedding");
    qg_case_result wide = run_fresh(find(plan, "int8", "embedding"), 1);
    qg_case_result narrow = run_fresh(find(plan, "int4", "embedding"), 1);
    ran(&wide);
    ran(&narrow);
    ck_assert(metric(&wide, QG_METRIC_QSNR_DB) > 38);
    ck_assert(wide.compared[0].spearman > 0.99);
    ck_assert(narrow.compared[0].spearman < wide.compared[0].spearman);
    double bits = (metric(&wide, QG_METRIC_QSNR_DB) - metric(&narrow, QG_METRIC_QSNR_DB)) / 6.02;
    ck_assert_msg(bits > 3 && bits < 5, "%g bits", bits);
    qg_plan_free(plan);
}
END_TEST

START_TEST(only_the_embedding_has_ranks_and_no_node_a_backward_error) {
    qg_plan *plan = seeded("int8", "per_row", "exact", "k>0");
    qg_workspace *workspace = workspace_of(1);
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        qg_case_result r = run(c, workspace);
        ran(&r);
        ck_assert_int_eq(r.compared[0].sums.n, c->m * c->k);
        ck_assert(isnan(r.compared[0].backward_error));
        ck_assert_int_eq(isnan(r.compared[0].spearman), strcmp(c->tensor, "embedding") != 0);
        ck_assert_uint_eq(r.input_digest, model_digest(c->source->model));
        ck_assert(r.output_digest != 0);
        ck_assert(metric(&r, QG_METRIC_QSNR_DB) > 20); // none without error
        ck_assert(metric(&r, QG_METRIC_QSNR_DB) < 120);
        ck_assert_int_eq(strncmp(r.impl_used, "emulator ", 9), 0);
    }
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

// The first product sees weights and activations quantized once: its noise is that of one product.
START_TEST(the_first_product_has_the_error_of_its_recipe) {
    qg_plan *plan = seeded("int8", "per_row", "exact", "tensor=layer0/query/product");
    qg_case_result r = run_fresh(qg_plan_case(plan, 0), 1);
    ran(&r);
    // Uniform weights of a step of 1/127 of their largest, activations of crest 2.5: 45 and 41 dB.
    double db = metric(&r, QG_METRIC_QSNR_DB);
    ck_assert_msg(db > 36 && db < 44, "%g", db);
    qg_plan_free(plan);
}
END_TEST

START_TEST(products_in_bf16_are_rounded_once_more) {
    qg_plan *plan = plan_of("", "ops", "model", "data", "model:seeded", "formats", "int8",
                            "layouts", "per_row", "units", "exact", "out-types", "fp32,bf16",
                            "where", "tensor=layer0/query/product", NULL);
    qg_case_result fp32 = run_fresh(qg_plan_case(plan, 0), 1);
    qg_case_result bf16 = run_fresh(qg_plan_case(plan, 1), 1);
    ran(&fp32);
    ran(&bf16);
    double step = metric(&fp32, QG_METRIC_QSNR_DB) - metric(&bf16, QG_METRIC_QSNR_DB);
    ck_assert_msg(step > 0.01 && step < 1, "%g dB", step);
    qg_plan_free(plan);
}
END_TEST

// The libraries behind it accumulate in binary32: near the exact sums and not their bits.
START_TEST(the_native_product_of_cpu_is_its_own) {
    qg_plan *plan = plan_of("", "ops", "model", "data", "model:seeded", "formats", "mxfp8", "rules",
                            "rceil", "units", "exact,native", "backends", "emulator,cpu", "where",
                            "tensor=embedding", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2);
    qg_case_result exact = run_fresh(qg_plan_case(plan, 0), 1);
    qg_case_result native = run_fresh(qg_plan_case(plan, 1), 1);
    ran(&exact);
    ran(&native);
    ck_assert_int_eq(strncmp(exact.impl_used, "emulator ", 9), 0);
    ck_assert_int_eq(strncmp(native.impl_used, "cpu ", 4), 0);
    ck_assert_uint_ne(exact.output_digest, native.output_digest);
    double other = metric(&exact, QG_METRIC_QSNR_DB) - metric(&native, QG_METRIC_QSNR_DB);
    ck_assert_msg(other > -1 && other < 1, "%g dB", other);
    qg_plan_free(plan);
}
END_TEST

START_TEST(a_node_that_became_zero_is_mistrusted) {
    qg_plan *plan = plan_of("", "ops", "model", "data", "model:seeded", "formats", "int8",
                            "layouts", "per_row", "rules", "fixed:0x1p40", "units", "exact",
                            "where", "tensor=layer0/query/product", NULL);
    qg_case_result r = run_fresh(qg_plan_case(plan, 0), 1);
    ck_assert_int_eq(r.status, QG_CASE_MISTRUSTED);
    ck_assert_msg(strstr(r.reason, "100.0 % of the output is zero") != NULL, "%s", r.reason);
    ck_assert(r.compared[0].has_sums && r.output_digest != 0);
    qg_plan_free(plan);
}
END_TEST

// ------------------------------------------------------------------------------------ independence

START_TEST(a_node_found_again_is_the_node_of_a_run_of_its_own) {
    qg_plan *plan = seeded("nvfp4", "default", "exact", "tensor=layer1*");
    qg_workspace *workspace = workspace_of(1);
    for (int64_t i = 0; i < qg_plan_count(plan); i += 5) {
        qg_case_result found = run(qg_plan_case(plan, i), workspace);
        qg_case_result alone = run_fresh(qg_plan_case(plan, i), 1);
        ran(&found);
        same(&found, &alone);
    }
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

// The only case that is left when one option of a run is another.
static qg_plan *variation(const char *option, const char *value) {
    static const char *const usual[][2] = {
        {"formats",   "mxfp8"           },
        {"formats-b", "mxfp8"           },
        {"layouts",   "group:32"        },
        {"rules",     "rceil"           },
        {"rounding",  "stochastic:A:16" },
        {"units",     "exact"           },
        {"out-types", "fp32"            },
        {"seeds",     "1"               },
        {"ops",       "model"           },
        {"data",      "model:seeded"    },
        {"backends",  "emulator"        },
        {"where",     "tensor=embedding"}
    };
    qg_plan_request *request;
    qg_plan *plan;
    ck_assert_int_eq(qg_plan_request_create(&request), QG_OK);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        qg_plan_request_set(request, usual[i][0],
                            strcmp(option, usual[i][0]) == 0 ? value : usual[i][1]);
    ck_assert_msg(qg_plan_build(request, &plan) == QG_OK, "%s", qg_detail());
    qg_plan_request_free(request);
    ck_assert_int_eq(qg_plan_count(plan), 1);
    return plan;
}

// Whatever a run depends on: after a case that differs in that alone a case is as by itself, and
// none is like another.
START_TEST(what_is_kept_is_taken_by_no_other_case) {
    static const char *const options[][2] = {
        {"",          ""               },
        {"formats",   "mxfp4"          },
        {"formats-b", "mxfp4"          },
        {"layouts",   "group:16"       },
        {"rules",     "floor"          },
        {"rounding",  "rne"            },
        {"units",     "fp32_sequential"},
        {"out-types", "bf16"           },
        {"seeds",     "2"              }
    };
    enum { COUNT = sizeof options / sizeof options[0] };
    uint64_t digests[COUNT];
    qg_workspace *workspace = workspace_of(1);
    qg_plan *usual = variation("", "");
    for (int i = 0; i < COUNT; i++) {
        qg_plan *plan = variation(options[i][0], options[i][1]);
        run(qg_plan_case(usual, 0), workspace);
        qg_case_result after = run(qg_plan_case(plan, 0), workspace);
        qg_case_result alone = run_fresh(qg_plan_case(plan, 0), 1);
        ran(&after);
        same(&after, &alone);
        digests[i] = after.output_digest;
        for (int j = 0; j < i; j++)
            ck_assert_msg(digests[i] != digests[j], "%s and %s", options[i][0], options[j][0]);
        qg_plan_free(plan);
    }
    qg_plan_free(usual);
    qg_workspace_free(workspace);
}
END_TEST

START_TEST(seeds_change_nothing_but_stochastic_rounding) {
    qg_plan *plan =
        plan_of("", "ops", "model", "data", "model:seeded", "formats", "int8", "layouts", "per_row",
                "units", "exact", "seeds", "1,2", "where", "tensor=embedding", NULL);
    qg_case_result a = run_fresh(qg_plan_case(plan, 0), 1);
    qg_case_result b = run_fresh(qg_plan_case(plan, 1), 1);
    same(&a, &b);
    qg_plan_free(plan);
}
END_TEST

START_TEST(threads_change_nothing) {
    qg_plan *plan = seeded("nvfp4,int8", "default", "exact", "tensor=embedding");
    for (int64_t i = 0; i < qg_plan_count(plan); i += 2) {
        qg_case_result one = run_fresh(qg_plan_case(plan, i), 1);
        qg_case_result three = run_fresh(qg_plan_case(plan, i), 3);
        same(&one, &three);
    }
    qg_plan_free(plan);
}
END_TEST

START_TEST(a_workspace_that_shrank_gives_the_same) {
    qg_plan *plan = seeded("int8,int4", "per_row", "exact", "tensor=embedding");
    qg_workspace *workspace = workspace_of(1);
    qg_case_result before[2], after[2];
    for (int i = 0; i < 2; i++)
        before[i] = run(qg_plan_case(plan, i), workspace);
    qg_workspace_shrink(workspace);
    for (int i = 1; i >= 0; i--) { // the last one is found, the other one runs again
        after[i] = run(qg_plan_case(plan, i), workspace);
        same(&before[i], &after[i]);
    }
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

// The plan whose model made what is kept is gone.
START_TEST(a_workspace_outlives_the_plan) {
    qg_workspace *workspace = workspace_of(1);
    qg_case_result first, again;
    for (int i = 0; i < 2; i++) {
        qg_plan *plan = seeded("int8,int4", "per_row", "exact", "tensor=embedding");
        qg_case_result *r = i ? &again : &first;
        *r = run(qg_plan_case(plan, 0), workspace);
        run(qg_plan_case(plan, 1), workspace);
        qg_plan_free(plan);
    }
    same(&first, &again);
    qg_workspace_free(workspace);
}
END_TEST

// --------------------------------------------------------------------------------------- refusals

START_TEST(a_backend_that_cannot_multiply_is_skipped_or_fails_with_a_reason) {
    qg_plan *plan = seeded("int8", "per_row", "exact", "tensor=embedding");
    qg_case c = *qg_plan_case(plan, 0);
    qg_unit unit;
    ck_assert_int_eq(qg_unit_parse("hopper_wgmma", &unit), QG_OK);
    c.matrix_unit = &unit;
    c.unit = "hopper_wgmma";
    qg_case_result r = run_fresh(&c, 1);
    ck_assert_int_eq(r.status, QG_CASE_SKIPPED);
    ck_assert_msg(strstr(r.reason, "hopper_wgmma") != NULL, "%s", r.reason);
    ck_assert(!r.compared[0].has_sums && r.output_digest == 0);
    qg_plan_free(plan);
}
END_TEST

// ----------------------------------------------------------------------------------- rank agreement

static double agreement(int64_t rows, int64_t k, const float *x, const float *q) {
    double rho;
    ck_assert_int_eq(model_rank_agreement(rows, k, x, q, &rho), QG_OK);
    return rho;
}

START_TEST(ranks_are_those_of_cosines) {
    // Angles of 0, 10, 30 and 70 degrees: six pairs of distinct angles.
    static const float x[] = {1,          0,    0.98480775f, 0.17364818f,
                              0.8660254f, 0.5f, 0.34202014f, 0.9396926f};
    float longer[8], swapped[8];
    ck_assert_double_eq(agreement(4, 2, x, x), 1);
    for (int i = 0; i < 8; i++)
        longer[i] = x[i] * (float)(1 + i / 2); // lengths do not matter
    ck_assert_double_eq(agreement(4, 2, x, longer), 1);
    memcpy(swapped, x, sizeof x);
    memcpy(swapped + 2, x + 6, 2 * sizeof *x); // sentences 1 and 3 change places
    memcpy(swapped + 6, x + 2, 2 * sizeof *x);
    // Pairs 01 02 03 12 13 23: angles 10 30 70 20 60 40 become 70 30 10 40 60 20.
    // Ranks 1 3 6 2 5 4 and 6 3 1 4 5 2: sum of d^2 = 25 + 0 + 25 + 4 + 0 + 4 = 58.
    ck_assert_double_eq_tol(agreement(4, 2, x, swapped), 1 - 6 * 58.0 / (6 * 35), 1e-12);
}
END_TEST

START_TEST(ranks_need_three_sentences) {
    static const float x[] = {1, 0, 0, 1};
    ck_assert(isnan(agreement(2, 2, x, x)));
    ck_assert(isnan(agreement(1, 4, x, x)));
}
END_TEST

// ----------------------------------------------------------------------------------------- pieces

START_TEST(products_with_weights_are_quantized_and_batched_ones_are_not) {
    model *m;
    ck_assert_int_eq(model_open("seeded", &m), QG_OK);
    const qg_graph *graph = model_graph(m);
    int32_t count = 0;
    double multiplications = 0;
    for (qg_node node = 0; node < qg_graph_count(graph); node++) {
        int64_t rows, n, k;
        if (!model_product(graph, node, &rows, &n, &k))
            continue;
        count++;
        ck_assert_int_eq(rows, 96);
        multiplications += (double)rows * (double)n * (double)k;
    }
    ck_assert_int_eq(count, 2 * 6);
    ck_assert_int_eq(qg_graph_count_op(graph, QG_GRAPH_MATMUL), 2 * 8);
    ck_assert_double_eq(multiplications, 2.0 * 96 * (4 * 64 * 64 + 2 * 64 * 256));
    model_free(m);
}
END_TEST

static bool is_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0xFFFF) == 0;
}

// x (2, 4) times the transpose of w (3, 4), then twice that.
static qg_graph *small_graph(const float *w) {
    qg_graph *g;
    static const int32_t SWAP[] = {1, 0};
    ck_assert_int_eq(qg_graph_create(&g), QG_OK);
    qg_node x = qg_graph_input(g, "x", qg_tensor(QG_DTYPE_FP32, 2, 2, 4));
    qg_node weight = qg_graph_parameter(g, "w", qg_tensor(QG_DTYPE_FP32, 2, 3, 4), w);
    qg_node y = qg_graph_matmul(g, x, qg_graph_transpose(g, weight, SWAP));
    qg_graph_name(g, y, "y");
    qg_graph_output(g, qg_graph_name(g, qg_graph_add(g, y, y), "twice"));
    ck_assert_msg(qg_graph_status(g) == QG_OK, "%s", qg_detail());
    return g;
}

START_TEST(rounded_products_keep_their_names_and_the_rest_its_type) {
    static const float w[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.5f};
    static const float x[8] = {1.25f, 2, 3, 4, -5, 6.75f, 7, 8};
    qg_graph *graph = small_graph(w), *scaled, *rounded;
    qg_scaling scaling = {.lhs = "int8/per_row"};
    qg_graph_run_options options = {.keep = true};
    qg_graph_feed feed = {"x", x};
    qg_graph_runner *of[2];
    ck_assert_int_eq(qg_graph_insert_scaled_matmul(graph, &scaling, &scaled, NULL), QG_OK);
    ck_assert_msg(model_round_products(scaled, QG_DTYPE_BF16, &rounded) == QG_OK, "%s",
                  qg_detail());
    ck_assert_int_eq(qg_graph_verify(rounded), QG_OK);
    qg_node product = qg_graph_find(rounded, "y"), twice = qg_graph_find(rounded, "twice");
    ck_assert_int_eq(qg_graph_node_op(rounded, product), QG_GRAPH_SCALED_MATMUL);
    ck_assert_int_eq(qg_graph_node_type(rounded, product)->dtype, QG_DTYPE_BF16);
    ck_assert_int_eq(qg_graph_node_type(rounded, twice)->dtype, QG_DTYPE_FP32);
    ck_assert_int_eq(qg_graph_count_op(rounded, QG_GRAPH_CAST), 1);
    const qg_graph *graphs[2] = {scaled, rounded};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(qg_graph_runner_create(graphs[i], &options, &of[i]), QG_OK);
        ck_assert_int_eq(qg_graph_runner_run(of[i], 1, &feed), QG_OK);
    }
    const float *plain = qg_graph_runner_values(of[0], qg_graph_find(scaled, "twice"));
    const float *values = qg_graph_runner_values(of[1], twice);
    bool any_other = false;
    for (int i = 0; i < 6; i++) {
        ck_assert(is_bf16(values[i]));
        ck_assert(fabsf(values[i] - plain[i]) <= fabsf(plain[i]) * 0x1p-8f);
        any_other |= values[i] != plain[i];
    }
    ck_assert(any_other);
    for (int i = 0; i < 2; i++)
        qg_graph_runner_free(of[i]);
    qg_graph_free(rounded);
    qg_graph_free(scaled);
    qg_graph_free(graph);
}
END_TEST

START_TEST(a_recipe_text_that_does_not_fit_is_refused) {
    char text[QG_RECIPE_TEXT_SIZE], name[QG_RECIPE_TEXT_SIZE + 1];
    model_recipe_names names = {"mxfp8", "group:32", "rceil", "rne"};
    ck_assert_int_eq(model_recipe_text(&names, text), QG_OK);
    ck_assert_str_eq(text, "mxfp8/group:32/rceil/rne");
    memset(name, 'x', QG_RECIPE_TEXT_SIZE);
    name[QG_RECIPE_TEXT_SIZE] = 0;
    names.format = name;
    ck_assert_int_eq(model_recipe_text(&names, text), QG_ERROR_ARGUMENT);
}
END_TEST

static int released;
static void release(void *object) { released += *(int *)object; }

START_TEST(kept_objects_are_found_by_label_and_released_once) {
    qg_workspace *workspace = workspace_of(1);
    int one = 1, ten = 10;
    char *longest = calloc(1, QG_LABEL_SIZE + 1);
    memset(longest, 'x', QG_LABEL_SIZE);
    released = 0;
    qg_workspace_keep(workspace, QG_KEPT_MODEL_REFERENCE, &one, release, "a");
    qg_workspace_keep(workspace, QG_KEPT_MODEL_QUANTIZED, &ten, release, "b");
    ck_assert_ptr_eq(qg_workspace_kept(workspace, QG_KEPT_MODEL_REFERENCE, "a"), &one);
    ck_assert_ptr_null(qg_workspace_kept(workspace, QG_KEPT_MODEL_REFERENCE, "b"));
    ck_assert_ptr_null(qg_workspace_kept(workspace, QG_KEPT_MODEL_REFERENCE, ""));
    ck_assert_int_eq(released, 0);
    qg_workspace_keep(workspace, QG_KEPT_MODEL_REFERENCE, NULL, NULL, "");
    ck_assert_int_eq(released, 1);
    ck_assert_ptr_null(qg_workspace_kept(workspace, QG_KEPT_MODEL_REFERENCE, "a"));
    qg_workspace_shrink(workspace);
    ck_assert_int_eq(released, 11);
    ck_assert_ptr_null(qg_workspace_kept(workspace, QG_KEPT_MODEL_QUANTIZED, "b"));
    qg_workspace_keep(workspace, QG_KEPT_MODEL_REFERENCE, &one, release, longest); // not kept
    ck_assert_ptr_null(qg_workspace_kept(workspace, QG_KEPT_MODEL_REFERENCE, longest));
    qg_workspace_free(workspace);
    ck_assert_int_eq(released, 12);
    free(longest);
}
END_TEST

START_TEST(shrinking_leaves_the_nodes_of_a_model_alone) {
    qg_workspace *workspace = workspace_of(1);
    void *nodes, *floats;
    ck_assert_int_eq(qg_workspace_room(workspace, QG_BUFFER_MODEL_NODES, 8, 1, &nodes), QG_OK);
    ck_assert_int_eq(qg_workspace_room(workspace, QG_BUFFER_FLOATS, 8, 1, &floats), QG_OK);
    qg_workspace_label(workspace, QG_BUFFER_MODEL_NODES, "n");
    qg_workspace_label(workspace, QG_BUFFER_FLOATS, "f");
    qg_workspace_shrink(workspace);
    ck_assert_ptr_eq(qg_workspace_find(workspace, QG_BUFFER_MODEL_NODES, "n"), nodes);
    ck_assert_ptr_null(qg_workspace_find(workspace, QG_BUFFER_FLOATS, "f"));
    qg_workspace_free(workspace);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {more_bits_lose_less,
                                  int8_by_rows_agrees_with_the_model_in_fp32_and_four_bits_less,
                                  only_the_embedding_has_ranks_and_no_node_a_backward_error,
                                  the_first_product_has_the_error_of_its_recipe,
                                  products_in_bf16_are_rounded_once_more,
                                  the_native_product_of_cpu_is_its_own,
                                  a_node_that_became_zero_is_mistrusted,
                                  a_node_found_again_is_the_node_of_a_run_of_its_own,
                                  what_is_kept_is_taken_by_no_other_case,
                                  seeds_change_nothing_but_stochastic_rounding,
                                  threads_change_nothing,
                                  a_workspace_that_shrank_gives_the_same,
                                  a_workspace_outlives_the_plan,
                                  a_backend_that_cannot_multiply_is_skipped_or_fails_with_a_reason,
                                  ranks_are_those_of_cosines,
                                  ranks_need_three_sentences,
                                  products_with_weights_are_quantized_and_batched_ones_are_not,
                                  rounded_products_keep_their_names_and_the_rest_its_type,
                                  a_recipe_text_that_does_not_fit_is_refused,
                                  kept_objects_are_found_by_label_and_released_once,
                                  shrinking_leaves_the_nodes_of_a_model_alone};
    qg_cpu_use_isa(NULL); // the variants that the program has
    return RUN_SUITE("op_model", tests);
}
