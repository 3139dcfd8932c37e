// Gradients of the scaled ops (R16): straight through quantization, scales detached, products of
// the dequantized operands; with a recipe for gradients, the scaled products that a graph built by
// hand has. Bytes everywhere. Grouped products: test_gradient_experts.c.
#include <gradient_bench.h>
#include <run_suite.h>

// y = scaled_matmul of x (BATCH, m, k) and w (BATCH, n, k), or of one pair, with bias v; loss.
static qg_node add_loss(qg_graph *g, bool batched, const char *const recipes[2], qg_dtype dtype,
                        qg_node wrt[3]) {
    static const int64_t x[] = {BATCH, M, K}, w[] = {BATCH, N, K}, v[] = {N};
    int32_t rank = batched ? 3 : 2;
    wrt[0] = data(g, "x", rank, x + 3 - rank);
    wrt[1] = data(g, "w", rank, w + 3 - rank);
    wrt[2] = data(g, "v", 1, v);
    qg_scaled l = qg_graph_quantize(g, wrt[0], recipes[0]);
    qg_scaled r = qg_graph_quantize(g, wrt[1], recipes[1]);
    qg_graph_output(g, qg_graph_name(g, qg_graph_dequantize(g, l), "left"));
    qg_graph_output(g, qg_graph_name(g, qg_graph_dequantize(g, r), "right"));
    return weighted(g, qg_graph_scaled_matmul(g, l, r, wrt[2], dtype));
}

static void check_product(bool batched, const char *const recipes[2], qg_dtype dtype) {
    bench b = {.graph = empty()};
    float expected[VALUES_MOST], dy[BATCH * M * N];
    int64_t batch = batched ? BATCH : 1;
    qg_node wrt[3];
    qg_node loss = add_loss(b.graph, batched, recipes, dtype, wrt);
    b.graph = gradient_of(b.graph, loss, 3, wrt);
    ck_assert_int_eq(dead_nodes(b.graph, loss + 1), 0);
    run(&b);
    memcpy(dy, b.values[3], sizeof dy);
    if (dtype == QG_DTYPE_BF16)
        ck_assert_int_eq(qg_input_round(QG_FORMAT_BF16, batch * M * N, dy), QG_OK);
    for (int64_t i = 0; i < batch; i++)
        chain(dy + i * M * N, false, values_of(&b, "right") + i * N * K, M, K, N,
              expected + i * M * K);
    same(values_of(&b, "gradient/x"), expected, batch * M * K, "gradient of lhs", recipes[0]);
    for (int64_t i = 0; i < batch; i++)
        chain(dy + i * M * N, true, values_of(&b, "left") + i * M * K, N, K, M,
              expected + i * N * K);
    same(values_of(&b, "gradient/w"), expected, batch * N * K, "gradient of rhs", recipes[1]);
    for (int64_t j = 0; j < N; j++) {
        double sum = 0;
        for (int64_t i = 0; i < batch * M; i++)
            sum += (double)dy[i * N + j];
        expected[j] = (float)sum;
    }
    same(values_of(&b, "gradient/v"), expected, N, "gradient of bias", recipes[0]);
    done(&b);
}

START_TEST(r16_gradients_of_a_product_are_products_of_the_dequantized_operands) {
    for (int i = 0; i < RECIPE_COUNT; i++)
        check_product(false, RECIPES[i], QG_DTYPE_FP32);
}
END_TEST

START_TEST(r16_holds_for_batched_products) {
    for (int i = 0; i < RECIPE_COUNT; i++)
        if (!strstr(RECIPES[i][1], "128x128")) // its blocks lie across these matrices
            check_product(true, RECIPES[i], QG_DTYPE_FP32);
}
END_TEST

START_TEST(r16_holds_for_outputs_in_bf16) {
    for (int batched = 0; batched < 2; batched++)
        check_product(batched, RECIPES[2], QG_DTYPE_BF16);
}
END_TEST

// Each of the three alone and in pairs: the same bytes, and nothing else is made.
START_TEST(gradients_of_a_product_do_not_depend_on_which_are_asked_for) {
    static const char *const names[] = {"gradient/x", "gradient/w", "gradient/v"};
    bench all = {.graph = empty()};
    qg_node wrt[3], some[3];
    qg_node loss = add_loss(all.graph, false, RECIPES[2], QG_DTYPE_FP32, wrt);
    all.graph = gradient_of(all.graph, loss, 3, wrt);
    run(&all);
    for (int mask = 1; mask < 7; mask++) {
        bench b = {.graph = empty()};
        int32_t count = 0;
        add_loss(b.graph, false, RECIPES[2], QG_DTYPE_FP32, wrt);
        for (int i = 0; i < 3; i++)
            if (mask >> i & 1)
                some[count++] = wrt[i];
        b.graph = gradient_of(b.graph, loss, count, some);
        ck_assert_int_eq(dead_nodes(b.graph, loss + 1), 0);
        run(&b);
        for (int i = 0; i < 3; i++)
            if (mask >> i & 1)
                same(values_of(&b, names[i]), values_of(&all, names[i]),
                     qg_tensor_elements(qg_graph_node_type(b.graph, wrt[i])), names[i], "some");
        done(&b);
    }
    done(&all);
}
END_TEST

// --------------------------------------------------------------------- quantization and its scales

START_TEST(r16_quantization_passes_gradients_through) {
    static const int64_t shape[] = {BATCH, M, K};
    // The last saturates whatever exceeds 448 / 256.
    static const char *const recipes[] = {
        "e4m3", "mxfp4", "nvfp4", "mx9", "rlx_mxfp4x2", "e4m3/per_tensor/fixed:0.00390625"};
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        bench b = {.graph = empty()};
        qg_node x = data(b.graph, "x", 3, shape);
        qg_node y = qg_graph_dequantize(b.graph, qg_graph_quantize(b.graph, x, recipes[i]));
        qg_node loss = weighted(b.graph, y);
        b.graph = gradient_of(b.graph, loss, 1, &x);
        run(&b);
        same(values_of(&b, "gradient/x"), b.values[1], BATCH * M * K, "gradient", recipes[i]);
        done(&b);
    }
}
END_TEST

// As insertion does where one scale serves all elements.
START_TEST(r16_codes_that_are_transposed_and_reshaped_pass_gradients_through) {
    static const int64_t shape[] = {BATCH, M, K}, flat[] = {K * BATCH, M};
    bench b = {.graph = empty()};
    float expected[BATCH * M * K];
    qg_node x = data(b.graph, "x", 3, shape);
    qg_scaled q = qg_graph_quantize(b.graph, x, "e4m3");
    q.codes = qg_graph_transpose(b.graph, q.codes, (int32_t[]){2, 0, 1});
    q.codes = qg_graph_reshape(b.graph, q.codes, 2, flat);
    qg_node loss = weighted(b.graph, qg_graph_dequantize(b.graph, q));
    b.graph = gradient_of(b.graph, loss, 1, &x);
    run(&b);
    for (int i = 0; i < BATCH * M; i++)
        for (int k = 0; k < K; k++)
            expected[i * K + k] = b.values[1][k * BATCH * M + i];
    same(values_of(&b, "gradient/x"), expected, BATCH * M * K, "gradient", "e4m3");
    done(&b);
}
END_TEST

START_TEST(r16_quantization_of_bf16_gives_bf16_gradients) {
    static const int64_t shape[] = {M, K};
    bench b = {.graph = empty()};
    qg_node x = data(b.graph, "x", 2, shape);
    qg_node low = qg_graph_cast(b.graph, x, QG_DTYPE_BF16);
    qg_node y = qg_graph_dequantize(b.graph, qg_graph_quantize(b.graph, low, "mxfp8"));
    qg_node loss = weighted(b.graph, y);
    b.graph = gradient_of(b.graph, loss, 1, &x);
    run(&b);
    ck_assert_int_eq(qg_input_round(QG_FORMAT_BF16, M * K, b.values[1]), QG_OK);
    same(values_of(&b, "gradient/x"), b.values[1], M * K, "gradient", "bf16");
    done(&b);
}
END_TEST

// x sets the scales alone, s the values: loss depends on x, and its gradient is zero.
START_TEST(r16_the_scale_is_detached) {
    static const int64_t shape[] = {M, K};
    static const char *const recipes[] = {"e4m3", "mxfp8", "nvfp4"};
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        bench b = {.graph = empty()};
        qg_node x = data(b.graph, "x", 2, shape), s = data(b.graph, "s", 2, shape);
        qg_scaled q = qg_graph_quantize(b.graph, x, recipes[i]);
        qg_attributes attributes = {0};
        snprintf(attributes.recipe, sizeof attributes.recipe, "%s", recipes[i]);
        qg_node inputs[] = {s, q.scale, q.tensor_scale};
        int32_t count = q.tensor_scale == QG_NODE_NONE ? 2 : 3;
        q.codes =
            qg_graph_add_node(b.graph, QG_GRAPH_SCALED_QUANTIZE, count, inputs, &attributes, NULL);
        qg_node loss = qg_graph_output(b.graph, weighted(b.graph, qg_graph_dequantize(b.graph, q)));
        qg_node wrt[] = {x, s};
        b.graph = gradient_of(b.graph, loss, 2, wrt);
        run(&b);
        const float *gradient = values_of(&b, "gradient/x");
        for (int j = 0; j < M * K; j++)
            ck_assert(gradient[j] == 0);
        same(values_of(&b, "gradient/s"), b.values[2], M * K, "gradient", recipes[i]);
        float before = *(const float *)qg_graph_runner_values(b.runner, loss);
        for (int j = 0; j < M * K; j++)
            b.values[0][j] *= 3;
        ck_assert_int_eq(qg_graph_runner_run(b.runner, b.count, b.feeds), QG_OK);
        ck_assert(*(const float *)qg_graph_runner_values(b.runner, loss) != before);
        done(&b);
    }
}
END_TEST

// Scales that are parameters of their own have none, either.
START_TEST(r16_scales_that_come_with_the_codes_are_detached) {
    static const int64_t shape[] = {M, K}, one[] = {1};
    bench b = {.graph = empty()};
    qg_node x = data(b.graph, "x", 2, shape), s = data(b.graph, "s", 1, one);
    qg_scaled q = qg_graph_quantize(b.graph, x, "e4m3");
    q.scale = s;
    qg_node loss =
        weighted(b.graph, qg_graph_scaled_matmul(b.graph, q, q, QG_NODE_NONE, QG_DTYPE_FP32));
    loss = qg_graph_add(b.graph, loss, total(b.graph, qg_graph_dequantize(b.graph, q)));
    b.graph = gradient_of(b.graph, loss, 1, &s);
    ck_assert_int_eq(dead_nodes(b.graph, loss + 1), 0);
    run(&b);
    ck_assert(values_of(&b, "gradient/s")[0] == 0);
    done(&b);
}
END_TEST

// ------------------------------------------------------------------------------- shared operands

// x feeds three products, w two of them.
static qg_node three_products(qg_graph *g, qg_node wrt[3]) {
    static const int64_t x[] = {M, K}, w[] = {N, K};
    wrt[0] = data(g, "x", 2, x);
    wrt[1] = data(g, "w", 2, w);
    wrt[2] = data(g, "u", 2, w);
    qg_scaled l = qg_graph_quantize(g, wrt[0], "mxfp8"), r = qg_graph_quantize(g, wrt[1], "mxfp8");
    qg_node y = qg_graph_scaled_matmul(g, l, r, QG_NODE_NONE, QG_DTYPE_FP32);
    y = qg_graph_add(g, y, qg_graph_scaled_matmul(g, l, r, QG_NODE_NONE, QG_DTYPE_FP32));
    qg_scaled q = qg_graph_quantize(g, wrt[2], "mxfp8");
    return weighted(
        g, qg_graph_add(g, y, qg_graph_scaled_matmul(g, l, q, QG_NODE_NONE, QG_DTYPE_FP32)));
}

START_TEST(an_operand_of_several_products_is_dequantized_and_quantized_once) {
    static const char *const recipes[] = {NULL, "mxfp8_e5m2"};
    for (int i = 0; i < 2; i++) {
        qg_graph *g = empty();
        qg_node wrt[3];
        qg_node loss = three_products(g, wrt);
        g = gradient_with(g, loss, 3, wrt, recipes[i]);
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_DEQUANTIZE), 3);
        // Of each product the gradient and its transpose; the three operands forward and backward.
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_QUANTIZE), i ? 3 + 3 + 2 * 3 : 3);
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_MATMUL), i ? 9 : 3);
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_MATMUL), i ? 0 : 6);
        qg_graph_free(g);
    }
}
END_TEST

// The same codes with twice the scale, or twice the tensor scale, are another operand.
static void check_twice(const char *recipe, bool tensor_scale) {
    static const int64_t x[] = {M, K}, w[] = {N, K};
    bench b = {.graph = empty()};
    float expected[M * K], sum[M * K], two = 2;
    qg_node left = data(b.graph, "x", 2, x), right = data(b.graph, "w", 2, w);
    qg_scaled l = qg_graph_quantize(b.graph, left, recipe);
    qg_scaled r = qg_graph_quantize(b.graph, right, recipe), other = r;
    qg_node *scale = tensor_scale ? &other.tensor_scale : &other.scale;
    *scale = qg_graph_multiply(
        b.graph, *scale, qg_graph_constant(b.graph, NULL, qg_tensor(QG_DTYPE_FP32, 1, 1), &two));
    qg_graph_output(b.graph, qg_graph_name(b.graph, qg_graph_dequantize(b.graph, r), "right"));
    qg_node y = qg_graph_scaled_matmul(b.graph, l, r, QG_NODE_NONE, QG_DTYPE_FP32);
    qg_node z = qg_graph_scaled_matmul(b.graph, l, other, QG_NODE_NONE, QG_DTYPE_FP32);
    qg_node loss = weighted(b.graph, qg_graph_add(b.graph, y, z));
    b.graph = gradient_of(b.graph, loss, 1, &left);
    run(&b);
    chain(b.values[2], false, values_of(&b, "right"), M, K, N, expected);
    for (int i = 0; i < M * K; i++)
        sum[i] = 2 * expected[i] + expected[i];
    same(values_of(&b, "gradient/x"), sum, M * K, "gradient", recipe);
    done(&b);
}

START_TEST(codes_with_another_scale_are_another_operand) {
    check_twice("e4m3", false);
    check_twice("nvfp4", true);
}
END_TEST

// Read by a recipe of another rule, they are quantized by that rule in the backward pass.
START_TEST(codes_with_another_recipe_are_another_operand) {
    static const int64_t x[] = {M, K}, w[] = {N, K};
    int32_t floor = 0, rceil = 0;
    qg_graph *g = empty();
    qg_node left = data(g, "x", 2, x);
    qg_scaled l = qg_graph_quantize(g, left, "mxfp8");
    qg_scaled r = qg_graph_quantize(g, data(g, "w", 2, w), "mxfp8"), other = r;
    other.recipe = "mxfp8//rceil";
    qg_node y = qg_graph_scaled_matmul(g, l, r, QG_NODE_NONE, QG_DTYPE_FP32);
    qg_node z = qg_graph_scaled_matmul(g, l, other, QG_NODE_NONE, QG_DTYPE_FP32);
    qg_node loss = weighted(g, qg_graph_add(g, y, z));
    g = gradient_with(g, loss, 1, &left, "mxfp8_e5m2");
    for (qg_node i = loss + 1; i < qg_graph_count(g); i++)
        if (qg_graph_node_op(g, i) == QG_GRAPH_SCALED_QUANTIZE) {
            floor += strcmp(qg_graph_node_attributes(g, i)->recipe, "mxfp8") == 0;
            rceil += strcmp(qg_graph_node_attributes(g, i)->recipe, "mxfp8//rceil") == 0;
        }
    ck_assert_int_eq(floor, 1);
    ck_assert_int_eq(rceil, 1);
    qg_graph_free(g);
}
END_TEST

// ----------------------------------------------------------------------------- quantized gradients

static void check_quantized(bool batched, const char *const recipes[2], const char *gradient) {
    bench b = {.graph = empty()}, plain = {.graph = empty()};
    int64_t batch = batched ? BATCH : 1;
    qg_node wrt[3];
    qg_node loss = add_loss(b.graph, batched, recipes, QG_DTYPE_FP32, wrt);
    add_by_hand(b.graph, recipes, gradient);
    b.graph = gradient_with(b.graph, loss, 3, wrt, gradient);
    run(&b);
    same(values_of(&b, "gradient/x"), values_of(&b, "by_hand/x"), batch * M * K, "gradient of lhs",
         gradient);
    same(values_of(&b, "gradient/w"), values_of(&b, "by_hand/w"), batch * N * K, "gradient of rhs",
         gradient);
    loss = add_loss(plain.graph, batched, recipes, QG_DTYPE_FP32, wrt);
    plain.graph = gradient_of(plain.graph, loss, 3, wrt);
    run(&plain);
    ck_assert(memcmp(values_of(&b, "gradient/x"), values_of(&plain, "gradient/x"),
                     (size_t)(batch * M * K) * sizeof(float)) != 0);
    same(values_of(&b, "gradient/v"), values_of(&plain, "gradient/v"), N, "gradient of bias",
         gradient);
    done(&plain);
    done(&b);
}

START_TEST(quantized_gradients_equal_a_graph_built_by_hand) {
    for (int i = 0; i < RECIPE_COUNT; i++) {
        if (strstr(RECIPES[i][0], "stochastic")) // seeds differ
            continue;
        check_quantized(false, RECIPES[i], "e5m2");
        check_quantized(false, RECIPES[i], "mxfp8_e5m2");
    }
    check_quantized(true, RECIPES[0], "e5m2");
    check_quantized(true, RECIPES[2], "mxfp8_e5m2");
    check_quantized(false, RECIPES[2], "nvfp4");
}
END_TEST

START_TEST(plain_products_stay_plain) {
    static const int64_t x[] = {M, K}, w[] = {K, N};
    qg_graph *g = empty();
    qg_node wrt[] = {data(g, "x", 2, x), data(g, "w", 2, w)};
    qg_node loss = total(g, qg_graph_matmul(g, wrt[0], wrt[1]));
    g = gradient_with(g, loss, 2, wrt, "e5m2");
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_MATMUL), 3);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_QUANTIZE), 0);
    qg_graph_free(g);
}
END_TEST

START_TEST(stochastic_roundings_have_seeds_of_their_own) {
    static const int64_t x[] = {M, K}, w[] = {N, K};
    const char *recipe = "mxfp8//floor/stochastic";
    qg_graph *g = empty();
    qg_attributes attributes = {.seed = 41};
    snprintf(attributes.recipe, sizeof attributes.recipe, "%s", recipe);
    qg_node wrt[] = {data(g, "x", 2, x), data(g, "w", 2, w)};
    qg_scaled l = qg_graph_quantize(g, wrt[0], recipe), r = qg_graph_quantize(g, wrt[1], recipe);
    qg_node inputs[] = {wrt[0], l.scale};
    l.codes = qg_graph_add_node(g, QG_GRAPH_SCALED_QUANTIZE, 2, inputs, &attributes, NULL);
    qg_node loss = total(g, qg_graph_scaled_matmul(g, l, r, QG_NODE_NONE, QG_DTYPE_FP32));
    g = gradient_with(g, loss, 2, wrt, "mxfp8_e5m2//floor/stochastic:B");
    uint64_t expected = 42;
    for (qg_node i = loss + 1; i < qg_graph_count(g); i++)
        if (qg_graph_node_op(g, i) == QG_GRAPH_SCALED_QUANTIZE)
            ck_assert_uint_eq(qg_graph_node_attributes(g, i)->seed, expected++);
    ck_assert_uint_eq(expected, 46);
    qg_graph_free(g);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        r16_gradients_of_a_product_are_products_of_the_dequantized_operands,
        r16_holds_for_batched_products,
        r16_holds_for_outputs_in_bf16,
        gradients_of_a_product_do_not_depend_on_which_are_asked_for,
        r16_quantization_passes_gradients_through,
        r16_codes_that_are_transposed_and_reshaped_pass_gradients_through,
        r16_quantization_of_bf16_gives_bf16_gradients,
        r16_the_scale_is_detached,
        r16_scales_that_come_with_the_codes_are_detached,
        an_operand_of_several_products_is_dequantized_and_quantized_once,
        codes_with_another_scale_are_another_operand,
        codes_with_another_recipe_are_another_operand,
        quantized_gradients_equal_a_graph_built_by_hand,
        plain_products_stay_plain,
        stochastic_roundings_have_seeds_of_their_own,
    };
    return RUN_SUITE("gradient_scaled", tests);
}
