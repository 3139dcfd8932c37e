// all-MiniLM-L6-v2 with the weights that datasets/fetch_minilm.py obtains, against the embeddings
// of the NumPy program, and twins that are wrong in one thing. Skipped where the weights are not
// there.
// ctest-labels: model nosan
#include "model_check.h"

#include <run_suite.h>
#include <stdio.h>

#define REFERENCE "datasets/minilm_sentences.h5"
enum { SENTENCES = 36, TOKENS = 19, FEW = 4, SKIPPED = 77 };

static const transformer_shape SHAPE = {.layers = 6,
                                        .hidden = 384,
                                        .heads = 12,
                                        .ffn = 1536,
                                        .vocabulary = 30522,
                                        .positions = 512,
                                        .types = 2,
                                        .eps = 1e-12f};

static model *minilm;

START_TEST(embeddings_agree_with_numpy) {
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(minilm, &feeds);
    reference r = read_reference(REFERENCE, "embedding");
    ck_assert_int_eq(r.m, SENTENCES);
    ck_assert_int_eq(model_sentences(minilm), SENTENCES);
    double difference = embedding_difference(model_graph(minilm), count, feeds, &r);
    printf("minilm: largest difference of embeddings %.2e\n", difference);
    ck_assert_double_le(difference, MODEL_GATE);
    free(r.values);
}
END_TEST

START_TEST(each_fault_exceeds_the_gate_on_a_few_sentences) {
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(minilm, &feeds);
    reference r = read_reference(REFERENCE, "embedding");
    qg_graph *few = graph_for(minilm, &SHAPE, FEW, TOKENS);
    for (int twin = 0; twin < TWIN_COUNT; twin++) {
        qg_graph *graph = twin_of(few, (model_twin)twin);
        double difference = embedding_difference(graph, count, feeds, &r);
        printf("%s: %.2e\n", twin_name((model_twin)twin), difference);
        ck_assert_msg((difference > MODEL_GATE) == (twin != TWIN_NONE), "%s: %.2e",
                      twin_name((model_twin)twin), difference);
        qg_graph_free(graph);
    }
    qg_graph_free(few);
    free(r.values);
}
END_TEST

START_TEST(the_model_describes_itself) {
    char text[128];
    model_describe(minilm, text, sizeof text);
    ck_assert_str_eq(text, "minilm: 22565376 parameters in 6 layers, 36 sentences, 472 tokens");
    ck_assert_str_eq(model_name(minilm), "minilm");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {embeddings_agree_with_numpy,
                                  each_fault_exceeds_the_gate_on_a_few_sentences,
                                  the_model_describes_itself};
    if (qg_unit_use_isa(NULL) != QG_OK)
        return 1;
    qg_status status = model_open("minilm", &minilm);
    if (status != QG_OK)
        printf("%s\n", qg_detail());
    if (status == QG_ERROR_IO)
        return SKIPPED;
    if (status != QG_OK)
        return 1;
    int failed = RUN_SUITE("model_minilm", tests);
    model_free(minilm);
    return failed;
}
