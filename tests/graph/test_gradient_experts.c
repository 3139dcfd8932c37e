// Gradients of grouped products (R16): each token's from its own expert, each expert's from its own
// tokens.
#include <gradient_bench.h>
#include <run_suite.h>

static const int64_t EXPERT_OF[M] = {2, 0, 2, 2, 0}; // expert 1 has no token

static qg_node add_experts(qg_graph *g, const char *const recipes[2], qg_node wrt[3]) {
    static const int64_t x[] = {M, K}, w[] = {EXPERTS, N, K}, v[] = {EXPERTS, N};
    wrt[0] = data(g, "x", 2, x);
    wrt[1] = data(g, "w", 3, w);
    wrt[2] = data(g, "v", 2, v);
    qg_node index = qg_graph_input(g, "index", qg_tensor(QG_DTYPE_I64, 1, M));
    qg_scaled l = qg_graph_quantize(g, wrt[0], recipes[0]);
    qg_scaled r = qg_graph_quantize(g, wrt[1], recipes[1]);
    qg_graph_output(g, qg_graph_name(g, qg_graph_dequantize(g, l), "left"));
    qg_graph_output(g, qg_graph_name(g, qg_graph_dequantize(g, r), "right"));
    return weighted(g, qg_graph_scaled_grouped_matmul(g, l, r, index, wrt[2], QG_DTYPE_FP32));
}

// The gradients of experts and biases: sums over the expert's own tokens.
static void check_experts(const bench *b, const float *dy) {
    const float *left = values_of(b, "left"), *gradient = values_of(b, "gradient/w");
    for (int64_t e = 0; e < EXPERTS; e++)
        for (int64_t j = 0; j < N; j++) {
            double bias = 0;
            for (int64_t l = 0; l < K; l++) {
                float sum = 0;
                for (int64_t i = 0; i < M; i++)
                    if (EXPERT_OF[i] == e)
                        sum = fmaf(dy[i * N + j], left[i * K + l], sum);
                REQUIRE(gradient[(e * N + j) * K + l] == sum, "expert %d", (int)e);
            }
            for (int64_t i = 0; i < M; i++)
                bias += EXPERT_OF[i] == e ? (double)dy[i * N + j] : 0;
            REQUIRE(values_of(b, "gradient/v")[e * N + j] == (float)bias, "bias of %d", (int)e);
        }
}

START_TEST(r16_holds_for_grouped_products) {
    for (int i = 0; i < RECIPE_COUNT; i++) {
        if (strstr(RECIPES[i][1], "128x128"))
            continue;
        bench b = {.graph = empty()};
        float row[K];
        qg_node wrt[3];
        memcpy(b.indices, EXPERT_OF, sizeof EXPERT_OF);
        qg_node loss = add_experts(b.graph, RECIPES[i], wrt);
        b.graph = gradient_of(b.graph, loss, 3, wrt);
        ck_assert_int_eq(dead_nodes(b.graph, loss + 1), 0);
        run(&b);
        const float *dy = b.values[4];
        for (int64_t t = 0; t < M; t++) {
            chain(dy + t * N, false, values_of(&b, "right") + EXPERT_OF[t] * N * K, 1, K, N, row);
            for (int64_t l = 0; l < K; l++)
                REQUIRE(values_of(&b, "gradient/x")[t * K + l] == row[l], "token %d", (int)t);
        }
        check_experts(&b, dy);
        done(&b);
    }
}
END_TEST

// With all experts' columns side by side it is a product like any other.
START_TEST(quantized_gradients_of_grouped_products_are_those_of_all_experts_together) {
    bench b = {.graph = empty()}, hand = {.graph = empty()};
    static const char *const recipes[] = {"mxfp8", "mxfp8"};
    static const int64_t x[] = {M, K}, w[] = {EXPERTS * N, K}, wide[] = {M, EXPERTS * N};
    qg_node wrt[3];
    memcpy(b.indices, EXPERT_OF, sizeof EXPERT_OF);
    qg_node loss = add_experts(b.graph, recipes, wrt);
    b.graph = gradient_with(b.graph, loss, 3, wrt, "mxfp8_e5m2");
    run(&b);
    qg_graph *g = hand.graph;
    qg_node left = qg_graph_dequantize(g, qg_graph_quantize(g, data(g, "x", 2, x), recipes[0]));
    qg_node right = qg_graph_dequantize(g, qg_graph_quantize(g, data(g, "w", 2, w), recipes[1]));
    qg_graph_name(g, left, "left");
    qg_graph_name(g, right, "right");
    data(g, "c", 2, wide);
    add_by_hand(g, recipes, "mxfp8_e5m2");
    run(&hand);
    memset(hand.values[2], 0, sizeof hand.values[2]);
    for (int64_t i = 0; i < M * N; i++)
        hand.values[2][i / N * EXPERTS * N + EXPERT_OF[i / N] * N + i % N] = b.values[4][i];
    ck_assert_int_eq(qg_graph_runner_run(hand.runner, hand.count, hand.feeds), QG_OK);
    const float *expected = values_of(&hand, "by_hand/x"), *found = values_of(&b, "gradient/x");
    for (int64_t i = 0; i < M * K; i++)
        REQUIRE(found[i] == expected[i], "token gradient %d", (int)i);
    expected = values_of(&hand, "by_hand/w");
    found = values_of(&b, "gradient/w");
    for (int64_t i = 0; i < EXPERTS * N * K; i++)
        REQUIRE(found[i] == expected[i], "expert gradient %d", (int)i);
    done(&hand);
    done(&b);
}
END_TEST

// The same codes as a stack of experts and as a batch of matrices.
START_TEST(experts_that_feed_a_batched_product_too) {
    static const int64_t x[] = {M, K}, w[] = {EXPERTS, N, K}, z[] = {EXPERTS, M, K};
    for (int quantizes = 0; quantizes < 2; quantizes++) {
        qg_graph *g = empty();
        qg_node wrt[] = {data(g, "x", 2, x), data(g, "w", 3, w), data(g, "z", 3, z)};
        qg_node index = qg_graph_input(g, "index", qg_tensor(QG_DTYPE_I64, 1, M));
        qg_scaled r = qg_graph_quantize(g, wrt[1], "mxfp8");
        qg_node grouped = qg_graph_scaled_grouped_matmul(g, qg_graph_quantize(g, wrt[0], "mxfp8"),
                                                         r, index, QG_NODE_NONE, QG_DTYPE_FP32);
        qg_node batched = qg_graph_scaled_matmul(g, qg_graph_quantize(g, wrt[2], "mxfp8"), r,
                                                 QG_NODE_NONE, QG_DTYPE_FP32);
        qg_node loss = total(g, qg_graph_add(g, grouped, batched));
        g = gradient_with(g, loss, 3, wrt, quantizes ? "e5m2" : NULL);
        ck_assert_int_eq(dead_nodes(g, loss + 1), 0);
        qg_graph_free(g);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        r16_holds_for_grouped_products,
        experts_that_feed_a_batched_product_too,
        quantized_gradients_of_grouped_products_are_those_of_all_experts_together,
    };
    return RUN_SUITE("gradient_experts", tests);
}
