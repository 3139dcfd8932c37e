// Properties of passes over random graphs: every result verifies, the graph itself stays as it was,
// and where all values are integers that every format holds, no pass and no sequence of passes
// changes a result.
#include "pass_random.h"

#include <run_suite.h>

enum { GRAPHS = 60 };

// Scales that are powers of two: integers up to 8 are codes.
static const char *const exact_recipes[] = {"mxfp8", "e4m3/per_row/amax_pow2",
                                            "e4m3/per_tensor/amax_pow2", "e4m3/block:2x2/rceil",
                                            "mxint8"};
static const char *const rough_recipes[] = {
    "nvfp4", "rlx_mxfp4x2", "te_e4m3", "mx9", "e5m2/per_row", "mxfp4//rceil/stochastic:A:16"};

static const char *recipe_of(bool exact, uint64_t seed) {
    return exact ? exact_recipes[seed % 5] : rough_recipes[seed % 6];
}

static qg_graph *insert(const qg_graph *g, const char *recipe, uint64_t seed) {
    qg_graph *out;
    qg_scaling scaling = {.lhs = recipe, .batched = seed % 2, .seed = seed};
    REQUIRE(qg_graph_insert_scaled_matmul(g, &scaling, &out, NULL) == QG_OK, "seed %d: %s",
            (int)seed, qg_detail());
    return out;
}

static qg_graph *lower(const qg_graph *g, uint64_t seed) {
    qg_graph *out;
    REQUIRE(qg_graph_lower_precision(g, QG_DTYPE_FP16, &out) == QG_OK, "seed %d: %s", (int)seed,
            qg_detail());
    return out;
}

static qg_graph *fold(const qg_graph *g, uint64_t seed) {
    qg_graph *out;
    qg_graph_run_options options = {.threads = 1, .seed = seed};
    REQUIRE(qg_graph_fold(g, true, &options, &out) == QG_OK, "seed %d: %s", (int)seed, qg_detail());
    return out;
}

static qg_graph *remove_dead(const qg_graph *g, uint64_t seed) {
    qg_graph *out;
    REQUIRE(qg_graph_remove_dead(g, &out) == QG_OK, "seed %d: %s", (int)seed, qg_detail());
    return out;
}

static void same(const qg_graph *a, const qg_graph *b, const char *what, uint64_t seed) {
    qg_graph_run_options options = {.threads = 1, .seed = seed};
    REQUIRE(run_alike(a, b, &options), "seed %d: %s changes results", (int)seed, what);
}

// Runs `check` on the graph of each seed and sees that the graph stayed as it was.
static void each_graph(bool exact, void (*check)(const qg_graph *g, uint64_t seed)) {
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        qg_graph *g = random_graph_of(seed, exact);
        char *before = text_of(g);
        check(g, seed);
        char *after = text_of(g);
        REQUIRE(strcmp(before, after) == 0, "seed %d: the graph changed", (int)seed);
        qg_release(before);
        qg_release(after);
        qg_graph_free(g);
    }
}

// --------------------------------------------------------------------------------------- exactness

static void check_insertion(const qg_graph *g, uint64_t seed) {
    qg_graph *scaled = insert(g, recipe_of(true, seed), seed);
    same(g, scaled, recipe_of(true, seed), seed);
    qg_graph_free(scaled);
}
START_TEST(insertion_keeps_results_that_codes_hold) { each_graph(true, check_insertion); }
END_TEST

static void check_lowering(const qg_graph *g, uint64_t seed) {
    qg_graph *low = lower(g, seed);
    same(g, low, "lowering", seed);
    qg_graph_free(low);
}
START_TEST(lowering_keeps_results_that_fp16_holds) { each_graph(true, check_lowering); }
END_TEST

static void check_both(const qg_graph *g, uint64_t seed) {
    const char *recipe = recipe_of(true, seed);
    qg_graph *scaled = insert(g, recipe, seed), *low = lower(g, seed);
    qg_graph *scaled_low = lower(scaled, seed), *low_scaled = insert(low, recipe, seed);
    qg_graph *all = fold(scaled_low, seed), *others = fold(low_scaled, seed);
    same(g, scaled_low, "insertion and lowering", seed);
    same(g, low_scaled, "lowering and insertion", seed);
    same(g, all, "insertion, lowering and folding", seed);
    same(g, others, "lowering, insertion and folding", seed);
    qg_graph *made[] = {scaled, low, scaled_low, low_scaled, all, others};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        qg_graph_free(made[i]);
}
START_TEST(passes_keep_such_results_in_any_order) { each_graph(true, check_both); }
END_TEST

// ------------------------------------------------------------------------------- with other values

static void check_removal(const qg_graph *g, uint64_t seed) {
    qg_graph *live = remove_dead(g, seed);
    same(g, live, "removal", seed);
    qg_graph_free(live);
}
START_TEST(removal_of_dead_nodes_keeps_results) { each_graph(false, check_removal); }
END_TEST

static void check_folding(const qg_graph *g, uint64_t seed) {
    qg_graph *scaled = insert(g, recipe_of(false, seed), seed), *low = lower(scaled, seed);
    qg_graph *folded = fold(scaled, seed), *low_folded = fold(low, seed);
    same(scaled, folded, "folding", seed);
    same(low, low_folded, "folding after lowering", seed);
    qg_graph *made[] = {scaled, low, folded, low_folded};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        qg_graph_free(made[i]);
}
START_TEST(folding_keeps_results) { each_graph(false, check_folding); }
END_TEST

// --------------------------------------------------------------------------------------- structure

static bool same_source(const qg_graph *g, qg_node a, qg_node b) {
    const qg_attributes *x = qg_graph_node_attributes(g, a), *y = qg_graph_node_attributes(g, b);
    return qg_graph_node_op(g, a) == qg_graph_node_op(g, b) &&
           input_of(g, a, 0) == input_of(g, b, 0) && strcmp(x->recipe, y->recipe) == 0;
}

static bool is_double_transpose(const qg_graph *g, qg_node x) {
    return qg_graph_node_op(g, x) == QG_GRAPH_TRANSPOSE &&
           qg_graph_node_op(g, input_of(g, x, 0)) == QG_GRAPH_TRANSPOSE;
}

static void check_sharing(const qg_graph *g, uint64_t seed) {
    qg_graph *scaled = insert(g, recipe_of(false, seed), seed);
    for (qg_node a = 0; a < qg_graph_count(scaled); a++) {
        bool inserted = qg_graph_find(g, qg_graph_node_name(scaled, a)) == QG_NODE_NONE;
        REQUIRE(!inserted || !is_double_transpose(scaled, a),
                "seed %d: a transpose of a transpose is inserted", (int)seed);
        if (qg_graph_node_op(scaled, a) != QG_GRAPH_SCALED_QUANTIZE)
            continue;
        REQUIRE(!is_double_transpose(scaled, input_of(scaled, a, 0)),
                "seed %d: a transpose of a transpose remains", (int)seed);
        for (qg_node b = 0; b < a; b++)
            REQUIRE(qg_graph_node_op(scaled, b) != QG_GRAPH_SCALED_QUANTIZE ||
                        !same_source(scaled, a, b),
                    "seed %d: quantized twice", (int)seed);
    }
    qg_graph_free(scaled);
}
START_TEST(nothing_is_quantized_twice_or_transposed_twice) { each_graph(false, check_sharing); }
END_TEST

static void check_names(const qg_graph *g, uint64_t seed) {
    qg_graph *scaled = insert(g, recipe_of(false, seed), seed), *low = lower(scaled, seed);
    for (qg_node i = 0; i < qg_graph_count(g); i++) {
        const char *name = qg_graph_node_name(g, i);
        qg_graph_op op = qg_graph_node_op(g, i);
        if (op == QG_GRAPH_TRANSPOSE || op == QG_GRAPH_CAST)
            continue; // those that served rewritten products alone are gone
        qg_node a = qg_graph_find(scaled, name), b = qg_graph_find(low, name);
        REQUIRE(a != QG_NODE_NONE && b != QG_NODE_NONE, "seed %d: %s is gone", (int)seed, name);
        REQUIRE(qg_tensor_equal(qg_graph_node_type(g, i), qg_graph_node_type(scaled, a)),
                "seed %d: the type of %s", (int)seed, name);
    }
    qg_graph_free(scaled);
    qg_graph_free(low);
}
START_TEST(names_stay_with_their_types) { each_graph(false, check_names); }
END_TEST

int main(void) {
    const TTest *tests[] = {insertion_keeps_results_that_codes_hold,
                            lowering_keeps_results_that_fp16_holds,
                            passes_keep_such_results_in_any_order,
                            removal_of_dead_nodes_keeps_results,
                            folding_keeps_results,
                            nothing_is_quantized_twice_or_transposed_twice,
                            names_stay_with_their_types};
    return RUN_SUITE("pass_random", tests);
}
