// The seeded transformer against the NumPy program's embeddings and layer outputs, twins that are
// wrong in one thing, padding, and how a transformer is built.
#include "model_check.h"

#include <inttypes.h>
#include <run_suite.h>
#include <stdio.h>

#define REFERENCE "datasets/seeded_transformer.h5"
enum { SENTENCES = 8, TOKENS = 12, HIDDEN = 64 };

static const transformer_shape SHAPE = {.layers = 2,
                                        .hidden = HIDDEN,
                                        .heads = 4,
                                        .ffn = 256,
                                        .vocabulary = 384,
                                        .positions = 32,
                                        .types = 2,
                                        .eps = 1e-12f};

static model *open_seeded(void) {
    model *m;
    ck_assert_msg(model_open("seeded", &m) == QG_OK, "%s", qg_detail());
    return m;
}

static const int64_t *ids_of(const model *m) {
    const qg_graph_feed *feeds;
    ck_assert_int_eq(model_feeds(m, &feeds), 2);
    ck_assert_str_eq(feeds[0].name, "ids");
    return feeds[0].values;
}

static const float *mask_of(const model *m) {
    const qg_graph_feed *feeds;
    model_feeds(m, &feeds);
    ck_assert_str_eq(feeds[1].name, "mask");
    return feeds[1].values;
}

// --------------------------------------------------------------------------------------- reference

START_TEST(embeddings_agree_with_numpy) {
    model *m = open_seeded();
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(m, &feeds);
    reference r = read_reference(REFERENCE, "embedding");
    ck_assert_int_eq(r.m, SENTENCES);
    double difference = embedding_difference(model_graph(m), count, feeds, &r);
    printf("seeded: largest difference of embeddings %.2e\n", difference);
    ck_assert_double_le(difference, MODEL_GATE);
    free(r.values);
    model_free(m);
}
END_TEST

// Rows of the reference are tokens, those of the graph also padding: (sentences * tokens, k).
static double difference_of_tokens(const float *mask, const float *x, const reference *r) {
    double largest = 0;
    int64_t row = 0;
    for (int64_t i = 0; i < SENTENCES * TOKENS; i++)
        if (mask[i] != 0.0f) {
            double d = largest_difference(r->k, x + i * r->k, r->values + row++ * r->k);
            largest = d > largest ? d : largest;
        }
    ck_assert_int_eq(row, r->m);
    return largest;
}

START_TEST(every_layer_agrees_with_numpy) {
    static const char *const NAMES[] = {
        "embeddings",
        "layer0/context",
        "layer0/attention_residual",
        "layer0/attention_norm",
        "layer0/gelu",
        "layer0/output_residual",
        "layer1/context",
        "layer1/attention_residual",
        "layer1/attention_norm",
        "layer1/gelu",
        "layer1/output_residual",
        "layer1/output_norm",
    };
    model *m = open_seeded();
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(m, &feeds);
    qg_graph_runner *runner = run_graph(model_graph(m), count, feeds);
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        reference r = read_reference(REFERENCE, NAMES[i]);
        const float *x = values_of(model_graph(m), runner, NAMES[i]);
        double difference = difference_of_tokens(mask_of(m), x, &r);
        ck_assert_msg(difference <= MODEL_GATE, "%s: %.2e", NAMES[i], difference);
        free(r.values);
    }
    qg_graph_runner_free(runner);
    model_free(m);
}
END_TEST

START_TEST(token_ids_and_mask_are_those_of_numpy) {
    char path[1024];
    int64_t ids[SENTENCES * TOKENS];
    qg_tensor_file *file;
    model *m = open_seeded();
    ck_assert_int_eq(qg_data_file(REFERENCE, path, sizeof path), QG_OK);
    ck_assert_int_eq(qg_tensor_file_open(path, &file), QG_OK);
    ck_assert_int_eq(qg_tensor_file_read_i64(file, qg_tensor_file_find(file, "ids"), ids), QG_OK);
    ck_assert_mem_eq(ids, ids_of(m), sizeof ids);
    qg_tensor_file_close(file);
    reference mask = read_reference(REFERENCE, "mask");
    ck_assert_mem_eq(mask.values, mask_of(m), SENTENCES * TOKENS * sizeof(float));
    free(mask.values);
    model_free(m);
}
END_TEST

START_TEST(each_fault_exceeds_the_gate) {
    model *m = open_seeded();
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(m, &feeds);
    reference r = read_reference(REFERENCE, "embedding");
    for (int twin = 0; twin < TWIN_COUNT; twin++) {
        qg_graph *graph = twin_of(model_graph(m), (model_twin)twin);
        double difference = embedding_difference(graph, count, feeds, &r);
        printf("%s: %.2e\n", twin_name((model_twin)twin), difference);
        ck_assert_msg((difference > MODEL_GATE) == (twin != TWIN_NONE), "%s: %.2e",
                      twin_name((model_twin)twin), difference);
        qg_graph_free(graph);
    }
    free(r.values);
    model_free(m);
}
END_TEST

// ----------------------------------------------------------------------------------------- padding

START_TEST(rows_have_length_one) {
    model *m = open_seeded();
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(m, &feeds);
    qg_graph_runner *runner = run_graph(model_graph(m), count, feeds);
    const float *x = values_of(model_graph(m), runner, "embedding");
    for (int i = 0; i < SENTENCES; i++) {
        double squares = 0;
        for (int j = 0; j < HIDDEN; j++)
            squares += (double)x[i * HIDDEN + j] * (double)x[i * HIDDEN + j];
        ck_assert_double_le(fabs(squares - 1), 1e-6);
    }
    qg_graph_runner_free(runner);
    model_free(m);
}
END_TEST

// Padding adds zeros to sums that are taken in order, and so changes no bit.
START_TEST(a_sentence_alone_has_the_bits_of_the_padded_one) {
    model *m = open_seeded();
    const qg_graph_feed *all;
    int32_t count = model_feeds(m, &all);
    qg_graph_runner *padded = run_graph(model_graph(m), count, all);
    const float *x = values_of(model_graph(m), padded, "embedding");
    for (int s = 0; s < SENTENCES; s++) {
        const int64_t *ids = ids_of(m) + s * TOKENS;
        const float *mask = mask_of(m) + s * TOKENS;
        int64_t length = 0;
        while (length < TOKENS && mask[length] != 0.0f)
            length++;
        qg_graph *graph = graph_for(m, &SHAPE, 1, length);
        const qg_graph_feed feeds[] = {
            {"ids",  ids },
            {"mask", mask}
        };
        qg_graph_runner *runner = run_graph(graph, 2, feeds);
        ck_assert_mem_eq(values_of(graph, runner, "embedding"), x + s * HIDDEN,
                         HIDDEN * sizeof(float));
        qg_graph_runner_free(runner);
        qg_graph_free(graph);
    }
    qg_graph_runner_free(padded);
    model_free(m);
}
END_TEST

// Runs the model with other ids or mask (NULL: its own) into x.
static void embed_with(const model *m, const int64_t *ids, const float *mask,
                       float x[SENTENCES * HIDDEN]) {
    const qg_graph_feed feeds[] = {
        {"ids",  ids ? ids : ids_of(m)   },
        {"mask", mask ? mask : mask_of(m)}
    };
    qg_graph_runner *runner = run_graph(model_graph(m), 2, feeds);
    memcpy(x, values_of(model_graph(m), runner, "embedding"), SENTENCES * HIDDEN * sizeof(float));
    qg_graph_runner_free(runner);
}

START_TEST(tokens_under_the_mask_change_nothing) {
    model *m = open_seeded();
    static float x[SENTENCES * HIDDEN], y[SENTENCES * HIDDEN];
    int64_t ids[SENTENCES * TOKENS];
    for (int i = 0; i < SENTENCES * TOKENS; i++)
        ids[i] = mask_of(m)[i] != 0.0f ? ids_of(m)[i] : 100 + i;
    embed_with(m, NULL, NULL, x);
    embed_with(m, ids, NULL, y);
    ck_assert_mem_eq(x, y, sizeof x);
    model_free(m);
}
END_TEST

START_TEST(the_mask_tells_which_tokens_count) {
    model *m = open_seeded();
    static float x[SENTENCES * HIDDEN], y[SENTENCES * HIDDEN];
    float mask[SENTENCES * TOKENS];
    memcpy(mask, mask_of(m), sizeof mask);
    mask[3 * TOKENS + 5] = 0.0f; // one token of sentence 3
    embed_with(m, NULL, NULL, x);
    embed_with(m, NULL, mask, y);
    for (int s = 0; s < SENTENCES; s++) {
        double d = largest_difference(HIDDEN, x + s * HIDDEN, y + s * HIDDEN);
        ck_assert_msg(s == 3 ? d > 1e-3 : d == 0, "sentence %d: %.2e", s, d);
    }
    model_free(m);
}
END_TEST

START_TEST(a_sentence_of_padding_alone_is_zero) {
    model *m = open_seeded();
    static float x[SENTENCES * HIDDEN];
    float mask[SENTENCES * TOKENS];
    memcpy(mask, mask_of(m), sizeof mask);
    memset(mask, 0, TOKENS * sizeof mask[0]);
    embed_with(m, NULL, mask, x);
    for (int i = 0; i < HIDDEN; i++)
        ck_assert(x[i] == 0.0f);
    model_free(m);
}
END_TEST

START_TEST(a_sentence_of_one_token_pools_to_its_row) {
    model *m = open_seeded();
    qg_graph *graph = graph_for(m, &SHAPE, 1, 1);
    const qg_graph_feed feeds[] = {
        {"ids",  ids_of(m) },
        {"mask", mask_of(m)}
    };
    qg_graph_runner *runner = run_graph(graph, 2, feeds);
    ck_assert_mem_eq(values_of(graph, runner, "pooled"),
                     values_of(graph, runner, "layer1/output_norm"), HIDDEN * sizeof(float));
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
    model_free(m);
}
END_TEST

// Which the length of the pooled rows tells, that of the embeddings no more.
START_TEST(pooled_rows_are_means_of_the_tokens_that_count) {
    model *m = open_seeded();
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(m, &feeds);
    qg_graph_runner *runner = run_graph(model_graph(m), count, feeds);
    const float *x = values_of(model_graph(m), runner, "layer1/output_norm");
    const float *pooled = values_of(model_graph(m), runner, "pooled"), *mask = mask_of(m);
    for (int i = 0; i < SENTENCES * HIDDEN; i++) {
        double sum = 0, tokens = 0;
        for (int place = i / HIDDEN * TOKENS; place < (i / HIDDEN + 1) * TOKENS; place++) {
            tokens += (double)mask[place];
            sum += (double)mask[place] * (double)x[place * HIDDEN + i % HIDDEN];
        }
        ck_assert_double_le(fabs((double)pooled[i] - sum / tokens), 1e-6);
    }
    qg_graph_runner_free(runner);
    model_free(m);
}
END_TEST

static float tiny[384 * 256];

static qg_status tiny_weight(void *context, const char *name, const qg_tensor_type *type,
                             const void **values) {
    static const int64_t ZEROS[32];
    (void)context;
    (void)name;
    *values = type->dtype == QG_DTYPE_I64 ? (const void *)ZEROS : tiny;
    return QG_OK;
}

START_TEST(small_rows_have_length_one_too) {
    static const int64_t ID = 3;
    static const float ONE = 1.0f;
    const transformer_weights weights = {tiny_weight, NULL};
    const qg_graph_feed feeds[] = {
        {"ids",  &ID },
        {"mask", &ONE}
    };
    qg_graph *graph;
    for (size_t i = 0; i < sizeof tiny / sizeof tiny[0]; i++)
        tiny[i] = 1e-9f;
    ck_assert_int_eq(transformer_build(&SHAPE, &weights, 1, 1, &graph), QG_OK);
    qg_graph_runner *runner = run_graph(graph, 2, feeds);
    ck_assert_double_le(fabs((double)values_of(graph, runner, "pooled")[0]), 1e-8);
    for (int i = 0; i < HIDDEN; i++) // all are equal
        ck_assert_double_le(fabs((double)values_of(graph, runner, "embedding")[i] - 0.125), 1e-6);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}
END_TEST

// ------------------------------------------------------------------------------------------- names

START_TEST(nodes_that_mean_something_have_names) {
    static const char *const PARTS[] = {"query",
                                        "query/product",
                                        "key",
                                        "key/product",
                                        "value",
                                        "value/product",
                                        "scores",
                                        "scores/product",
                                        "masked_scores",
                                        "probabilities",
                                        "context",
                                        "context/product",
                                        "attention",
                                        "attention/product",
                                        "intermediate",
                                        "intermediate/product",
                                        "gelu",
                                        "output",
                                        "output/product",
                                        "attention_residual",
                                        "output_norm",
                                        "attention_norm",
                                        "output_residual"};
    model *m = open_seeded();
    const qg_graph *graph = model_graph(m);
    char name[64];
    for (int layer = 0; layer < 2; layer++)
        for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
            snprintf(name, sizeof name, "layer%d/%s", layer, PARTS[i]);
            qg_node node = node_of(graph, name);
            ck_assert_int_eq(qg_graph_node_op(graph, node) == QG_GRAPH_MATMUL,
                             name_ends_with(name, "/product"));
        }
    node_of(graph, "embeddings");
    node_of(graph, "pooled");
    const qg_node *outputs;
    ck_assert_int_eq(qg_graph_outputs(graph, &outputs), 1);
    ck_assert_int_eq(outputs[0], node_of(graph, "embedding"));
    model_free(m);
}
END_TEST

// Weights go into products as their own transposes, so that quantization finds them K last.
START_TEST(products_are_six_of_matrices_and_two_of_batches_per_layer) {
    model *m = open_seeded();
    const qg_graph *graph = model_graph(m);
    int matrices = 0, batches = 0;
    for (qg_node node = 0; node < qg_graph_count(graph); node++) {
        const qg_node *inputs;
        if (qg_graph_node_op(graph, node) != QG_GRAPH_MATMUL)
            continue;
        qg_graph_node_inputs(graph, node, &inputs);
        bool matrix = qg_graph_node_type(graph, node)->rank == 2;
        matrices += matrix;
        batches += !matrix;
        if (matrix) {
            ck_assert_int_eq(qg_graph_node_op(graph, inputs[1]), QG_GRAPH_TRANSPOSE);
            qg_graph_node_inputs(graph, inputs[1], &inputs);
            ck_assert_int_eq(qg_graph_node_op(graph, inputs[0]), QG_GRAPH_PARAMETER);
        }
    }
    ck_assert_int_eq(matrices, 12);
    ck_assert_int_eq(batches, 4);
    ck_assert_int_eq(qg_graph_verify(graph), QG_OK);
    model_free(m);
}
END_TEST

START_TEST(the_model_describes_itself) {
    model *m = open_seeded(), *again = open_seeded();
    char text[128], less[12];
    model_describe(m, text, sizeof text);
    ck_assert_str_eq(text, "seeded: 126848 parameters in 2 layers, 8 sentences, 62 tokens");
    model_describe(m, less, sizeof less);
    ck_assert_str_eq(less, "seeded: 126");
    ck_assert_str_eq(model_name(m), "seeded");
    ck_assert_int_eq(model_sentences(m), SENTENCES);
    ck_assert_uint_eq(model_digest(m), model_digest(again));
    ck_assert_uint_eq(model_digest(m), 0x526ce85be3cc3260); // pinned: bits of weights, ids and mask
    model_free(again);
    model_free(m);
    model_free(NULL);
}
END_TEST

// ------------------------------------------------------------------------------------------- build

static qg_status no_weight(void *context, const char *name, const qg_tensor_type *type,
                           const void **values) {
    int *left = context;
    static const float ZEROS[384 * 256];
    (void)type;
    *values = ZEROS;
    return (*left)-- > 0 ? QG_OK : qg_fail(QG_ERROR_DATA, "%s is not there", name);
}

// Each weight once, whichever of them it is.
START_TEST(a_weight_that_is_not_there_ends_the_building) {
    enum { WEIGHTS = 6 + 2 * 16 };
    for (int there = 0; there <= WEIGHTS; there++) {
        int left = there;
        const transformer_weights weights = {no_weight, &left};
        qg_graph *graph = (qg_graph *)1;
        qg_status status = transformer_build(&SHAPE, &weights, 2, 3, &graph);
        ck_assert_int_eq(status, there < WEIGHTS ? QG_ERROR_DATA : QG_OK);
        ck_assert_int_eq(left, there < WEIGHTS ? -1 : 0);
        ck_assert((graph == NULL) == (status != QG_OK));
        if (there < WEIGHTS)
            ck_assert_ptr_nonnull(strstr(qg_detail(), "is not there"));
        qg_graph_free(graph);
    }
}
END_TEST

START_TEST(extents_that_make_no_transformer_are_refused) {
    static const struct {
        transformer_shape shape;
        int64_t sentences, tokens;
        const char *words;
    } CASES[] = {
        {{0, 64, 4, 256, 384, 32, 2, 0}, 1, 1,  "of 0 layers"              },
        {{2, 64, 0, 256, 384, 32, 2, 0}, 1, 1,  "in 0 heads"               },
        {{2, 0, 4, 256, 384, 32, 2, 0},  1, 1,  "hidden size 0"            },
        {{2, 64, 5, 256, 384, 32, 2, 0}, 1, 1,  "hidden size 64 in 5 heads"},
        {{2, 64, 4, 256, 384, 32, 2, 0}, 0, 1,  "0 sentences"              },
        {{2, 64, 4, 256, 384, 32, 2, 0}, 1, 0,  "of 0 tokens"              },
        {{2, 64, 4, 256, 384, 32, 2, 0}, 1, 33, "at most 32 tokens"        },
        {{2, 64, 4, 0, 384, 32, 2, 0},   1, 1,  "intermediate.dense.weight"},
        {{2, 64, 4, 256, 0, 32, 2, 0},   1, 1,  "word_embeddings"          },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        int left = 100;
        const transformer_weights weights = {no_weight, &left};
        qg_graph *graph = (qg_graph *)1;
        qg_status status = transformer_build(&CASES[i].shape, &weights, CASES[i].sentences,
                                             CASES[i].tokens, &graph);
        ck_assert_int_eq(status, QG_ERROR_ARGUMENT);
        ck_assert_ptr_null(graph);
        ck_assert_msg(strstr(qg_detail(), CASES[i].words) != NULL, "\"%s\" does not say \"%s\"",
                      qg_detail(), CASES[i].words);
    }
    qg_graph *graph;
    const transformer_weights none = {no_weight, NULL};
    ck_assert_int_eq(transformer_build(&SHAPE, &none, INT64_MAX, 2, &graph), QG_ERROR_OVERFLOW);
    ck_assert_ptr_null(graph);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {embeddings_agree_with_numpy,
                                  every_layer_agrees_with_numpy,
                                  token_ids_and_mask_are_those_of_numpy,
                                  each_fault_exceeds_the_gate,
                                  rows_have_length_one,
                                  a_sentence_alone_has_the_bits_of_the_padded_one,
                                  tokens_under_the_mask_change_nothing,
                                  the_mask_tells_which_tokens_count,
                                  a_sentence_of_padding_alone_is_zero,
                                  a_sentence_of_one_token_pools_to_its_row,
                                  pooled_rows_are_means_of_the_tokens_that_count,
                                  small_rows_have_length_one_too,
                                  nodes_that_mean_something_have_names,
                                  products_are_six_of_matrices_and_two_of_batches_per_layer,
                                  the_model_describes_itself,
                                  a_weight_that_is_not_there_ends_the_building,
                                  extents_that_make_no_transformer_are_refused};
    if (qg_unit_use_isa(NULL) != QG_OK)
        return 1;
    return RUN_SUITE("model_seeded", tests);
}
