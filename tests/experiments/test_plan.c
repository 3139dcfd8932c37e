// The plan of operation error: ids that stay, order, defaults, skips, repro lines, plan files, the text.
#include <list.h>
#include <plan_internal.h>
#include <plan_options.h>
#include <qg_digest.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

// A folder of its own that becomes the current one.
static char folder[] = "/tmp/quantgauge-plan-XXXXXX";

static void enter_folder(void) {
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void leave_folder(void) {
    char command[128];
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

// A .safetensors file of the header and `size` bytes 0, 1, 2, ...
static void write_tensors(const char *path, const char *header, size_t size) {
    uint8_t bytes[4096];
    uint64_t length = strlen(header);
    ck_assert_uint_le(8 + length + size, sizeof bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < size; i++)
        bytes[8 + length + i] = (uint8_t)(i % 60);
    write_bytes(path, bytes, 8 + length + size);
}

static const char MIXED[] = "{\"ids\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
                            "\"w\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[16,48]}}";

// -------------------------------------------------------------------------------------- identity

typedef struct golden {
    const char *format, *layout, *rule, *rounding, *data, *tensor;
    int64_t m, k;
    uint64_t seed, id;
} golden;

// Baselines are kept by these ids: a change here is a change of every baseline.
// clang-format off
static const golden GOLDEN[] = {
    {"e4m3", "per_tensor", "amax", "rne", "normal", "", 16, 128, 1, 0xc634a74df38ad5c3},
    {"mxfp8", "group:32", "floor", "rne", "outliers:100", "", 1168, 5120, 1, 0x6b820d707defb2f4},
    {"mxfp8", "group:32", "rceil", "stochastic:A:16", "normal", "", 1, 1, UINT64_MAX,
     0xdca137ce0cf1ad6c},
    {"e4m3", "block:128x128", "amax", "rne", "tensors:minilm.h5",
     "encoder.layer.0.attention.self.query.weight", 384, 384, 1, 0x96a02ea24769641a},
};
// clang-format on

START_TEST(ids_stay) {
    for (size_t i = 0; i < sizeof GOLDEN / sizeof GOLDEN[0]; i++) {
        const golden *g = &GOLDEN[i];
        char data[128], m[24], k[24], seed[24];
        snprintf(data, sizeof data, "%s%s%s", g->data, *g->tensor ? "#" : "", g->tensor);
        snprintf(m, sizeof m, "%" PRId64, g->m);
        snprintf(k, sizeof k, "%" PRId64, g->k);
        snprintf(seed, sizeof seed, "%" PRIu64, g->seed);
        qg_plan *plan =
            plan_of("", "formats", g->format, "layouts", g->layout, "rules", g->rule, "rounding",
                    g->rounding, "data", data, "m", m, "k", k, "seeds", seed, NULL);
        ck_assert_int_eq(qg_plan_count(plan), 1);
        const qg_case *c = qg_plan_case(plan, 0);
        ck_assert_int_eq(c->m, g->m);
        ck_assert_int_eq(c->k, g->k);
        ck_assert_msg(c->id == g->id, "row %zu: %016" PRIx64, i, c->id);
        qg_plan_free(plan);
    }
}
END_TEST

START_TEST(the_id_is_the_digest_of_all_axes) {
    char text[2048];
    qg_plan *plan = plan_of("", "formats", "mxfp8", "rules", "floor", "data", "normal", "m", "2",
                            "k", "3", NULL);
    const qg_case *c = qg_plan_case(plan, 0);
    ck_assert(qg_case_identity_text(c, text, sizeof text));
    ck_assert_str_eq(text, "op=error\nformat=mxfp8\nlayout=group:32\nscale_rule=floor\n"
                           "scale_format=e8m0\nrounding=rne\nformat_b=\nlayout_b=\n"
                           "scale_rule_b=\nunit=\ninput_type=fp32\nout_type=\nbias=0\n"
                           "backend=emulator\ndata=normal\ntensor=\ntensor_digest=\nm=2\nn=0\n"
                           "k=3\nsm_count=0\nseed=1\n");
    ck_assert_uint_eq(c->id, qg_digest_bytes(text, strlen(text)));
    ck_assert(!qg_case_identity_text(c, text, 100));
    qg_plan_free(plan);
}
END_TEST

START_TEST(collisions_are_found) {
    uint64_t ids[] = {3, 1, 2, 1}, different[] = {3, 1, 2}, found = 0;
    ck_assert(qg_ids_collide(ids, 4, &found));
    ck_assert_uint_eq(found, 1);
    ck_assert(!qg_ids_collide(different, 3, &found));
    ck_assert(!qg_ids_collide(different, 0, &found));
}
END_TEST

// The same tensors elsewhere are the same cases, the same plan.
START_TEST(ids_do_not_depend_on_paths) {
    char before[4096], typed[256];
    enter_folder();
    ck_assert_int_eq(mkdir("sub", 0700), 0);
    write_tensors("x.safetensors", MIXED, 48);
    write_tensors("sub/x.safetensors", MIXED, 48);
    qg_plan *here = plan_of("", "formats", "e4m3", "data", "tensors:x.safetensors#w", NULL);
    snprintf(typed, sizeof typed, "tensors:%s/sub/x.safetensors#w", folder);
    qg_plan *there = plan_of("", "formats", "e4m3", "data", typed, NULL);
    ck_assert_int_eq(qg_plan_count(here), 4);
    for (int64_t i = 0; i < 4; i++)
        ck_assert_uint_eq(qg_plan_case(here, i)->id, qg_plan_case(there, i)->id);
    ck_assert_str_eq(qg_plan_text(here), qg_plan_text(there));
    snprintf(before, sizeof before, "%s", qg_plan_text(here));
    uint64_t id = qg_plan_case(here, 0)->id;
    qg_plan_free(here);
    qg_plan_free(there);

    // Both at once are one case each; another content is another case.
    snprintf(typed, sizeof typed, "tensors:x.safetensors#w,tensors:sub/x.safetensors#w");
    qg_plan *both = plan_of("", "formats", "e4m3", "data", typed, NULL);
    ck_assert_int_eq(qg_plan_count(both), 4);
    qg_plan_free(both);
    write_tensors("sub/x.safetensors", MIXED, 48);
    FILE *file = fopen("sub/x.safetensors", "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -1, SEEK_END), 0);
    fputc(99, file);
    fclose(file);
    qg_plan *other = plan_of("", "formats", "e4m3", "data", "tensors:sub/x.safetensors#w", NULL);
    ck_assert_uint_ne(qg_plan_case(other, 0)->id, id);
    ck_assert_str_ne(qg_plan_text(other), before);
    qg_plan_free(other);
    leave_folder();
}
END_TEST

// ------------------------------------------------------------------------- defaults, order, union

static bool has_case(const qg_plan *plan, const char *format, const char *layout,
                     const char *rule) {
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (strcmp(c->format, format) == 0 && strcmp(c->layout, layout) == 0 &&
            strcmp(c->scale_rule, rule) == 0)
            return true;
    }
    return false;
}

START_TEST(defaults) {
    qg_plan *plan = plan_of("", "formats", "e4m3,mxfp8,mxint4,nvfp4,te_e5m2", "level", "smoke",
                            "data", "normal", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 9 * (4 + 3 + 3 + 1 + 1));
    ck_assert(has_case(plan, "e4m3", "per_tensor", "amax"));
    ck_assert(has_case(plan, "e4m3", "per_row", "amax"));
    ck_assert(has_case(plan, "e4m3", "group:128", "amax"));
    ck_assert(has_case(plan, "e4m3", "block:128x128", "amax"));
    ck_assert(has_case(plan, "mxfp8", "group:32", "even"));
    ck_assert(has_case(plan, "mxint4", "group:32", "rceil"));
    ck_assert(has_case(plan, "nvfp4", "group:16", "two_level"));
    ck_assert(has_case(plan, "te_e5m2", "per_tensor", "amax_mul"));
    qg_plan_free(plan);
    plan = plan_of("", "formats", "e4m3", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 4 * (2 * 12 + 8)); // two laws, eight shipped tensors
    qg_plan_free(plan);
}
END_TEST

START_TEST(levels) {
    qg_plan *plan =
        plan_of("", "formats", "mxfp4", "rules", "floor", "data", "normal", "level", "paper", NULL);
    int64_t largest = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        largest = c->m * c->k > largest ? c->m * c->k : largest;
    }
    ck_assert_int_eq(largest, 1 << 24);
    ck_assert_int_eq(qg_plan_count(plan), 13 * 12 - 4 - 3 - 2 - 1); // 2^25 .. 2^28 are left out
    qg_plan_free(plan);
    plan = plan_of("", "formats", "mxfp4", "rules", "floor", "data", "normal", "level", "paper",
                   "m", "4096", "k", "65536", NULL); // asked for: no bound
    ck_assert_int_eq(qg_plan_count(plan), 1);
    qg_plan_free(plan);
}
END_TEST

START_TEST(names_are_canonical) {
    qg_plan *plan = plan_of("", "formats", "E4M3,float8_e4m3fn,MXFP8,mxfp8", "layouts", "GROUP:32",
                            "rules", "FLOOR", "rounding", "stochastic", "inputs", "f32,bfloat16",
                            "data", "normal", "m", "1", "k", "64", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2 * 2);
    const qg_case *c = qg_plan_case(plan, 0);
    ck_assert_str_eq(c->format, "e4m3");
    ck_assert_str_eq(c->layout, "group:32");
    ck_assert_str_eq(c->scale_rule, "floor");
    ck_assert_str_eq(c->scale_format, "e8m0");
    ck_assert_str_eq(c->rounding, "stochastic:A:16");
    ck_assert_str_eq(qg_plan_case(plan, 1)->format, "mxfp8");
    qg_plan_free(plan);
}
END_TEST

START_TEST(globs) {
    qg_plan *plan = plan_of("", "formats", "mxfp6*", "rules", "?loor", "data", "normal", "m", "1",
                            "k", "64", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2);
    qg_plan_free(plan);
    plan = plan_of("", "formats", "*", "data", "normal", "m", "1", "k", "64", NULL);
    ck_assert_int_gt(qg_plan_count(plan), 200);
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        ck_assert_ptr_null(qg_plan_case(plan, i)->skip);
    qg_plan_free(plan);
}
END_TEST

// Equal inputs stand next to each other, formats inside in the order of their listing.
START_TEST(order) {
    qg_plan *plan = plan_of("", "formats", "mxfp8,e4m3", "data", "laplace,normal", "m", "8,2", "k",
                            "64,32", "seeds", "2,1", NULL);
    const int64_t inner = 3 + 4, inputs = 2 * 2 * 2 * 2;
    ck_assert_int_eq(qg_plan_count(plan), inputs * inner);
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i), *first = qg_plan_case(plan, i / inner * inner);
        ck_assert_int_eq(c->order, i);
        ck_assert_ptr_eq(c->source, first->source);
        ck_assert(c->m == first->m && c->k == first->k && c->seed == first->seed);
        ck_assert_str_eq(c->format, i % inner < 3 ? "mxfp8" : "e4m3");
    }
    ck_assert_str_eq(qg_plan_case(plan, 0)->data, "laplace");
    ck_assert_int_eq(qg_plan_case(plan, 0)->m, 2);
    ck_assert_str_eq(qg_plan_case(plan, inputs * inner - 1)->data, "normal");
    qg_plan_free(plan);
}
END_TEST

START_TEST(duplicates_are_dropped) {
    qg_plan *plan =
        plan_of("", "formats", "e4m3,e4m3", "layouts", "default,per_row,group:128", "rules",
                "default,amax", "rounding", "rne,rne", "data", "normal,normal:sigma=1,normal", "m",
                "1,1", "k", "8", "seeds", "1,1", "inputs", "fp32,f32", NULL);
    ck_assert_int_eq(qg_plan_count(plan) % 4, 0);
    ck_assert_int_le(qg_plan_count(plan), 8); // sigma=1 may or may not be the plain law
    qg_plan_free(plan);
    plan = plan_of("", "formats", "mxfp8", "layouts", "default,group:32", "data", "normal", "m",
                   "1", "k", "8", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 3);
    qg_plan_free(plan);
}
END_TEST

// ------------------------------------------------------------------------------ impossible ones

START_TEST(skips_have_reasons) {
    qg_plan *plan = plan_of("", "formats", "e4m3,nvfp4", "layouts", "per_row,group:16", "data",
                            "normal", "m", "1", "k", "32", NULL);
    int64_t skipped = 0;
    ck_assert_int_eq(qg_plan_count(plan), 4);
    for (int64_t i = 0; i < 4; i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (!c->skip)
            continue;
        skipped++;
        ck_assert_str_eq(c->format, "nvfp4");
        ck_assert_str_eq(c->layout, "per_row");
        ck_assert_str_eq(c->scale_rule, "two_level");
        ck_assert_ptr_nonnull(strstr(c->skip, "group:G"));
        ck_assert_int_eq(qg_case_bytes(c), 0);
    }
    ck_assert_int_eq(skipped, 1);
    qg_plan_free(plan);
}
END_TEST

START_TEST(values_that_fit_nothing) {
    refused(QG_ERROR_ARGUMENT, "--layouts: 'per_row' fits nothing", "formats", "nvfp4", "layouts",
            "per_row,group:16", NULL);
    refused(QG_ERROR_ARGUMENT, "--rules: 'amax' fits nothing", "formats", "mx9,msfp12", "rules",
            "amax,floor", NULL);
    refused(QG_ERROR_ARGUMENT, "--formats: 'mx9' fits nothing", "formats", "mx9,e4m3", "layouts",
            "group:32", NULL);
    refused(QG_ERROR_ARGUMENT, "'delayed' fits nothing in the sweep: scale rule delayed needs",
            "formats", "e4m3", "layouts", "per_row", "rules", "delayed,amax", NULL);
    // By glob or default they are only skipped.
    qg_plan *plan = plan_of("", "formats", "e4m3", "rules", "amax_ue*", "data", "normal", "m", "1",
                            "k", "8", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 4);
    qg_plan_free(plan);
}
END_TEST

// Neither order of setting layout and rule passes only through possible recipes.
START_TEST(layout_and_rule_replaced_together) {
    qg_plan *plan = plan_of("", "formats", "nvfp4", "layouts", "per_tensor", "rules",
                            "delayed,amax,floor", "data", "normal", "m", "1", "k", "8", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 3);
    for (int64_t i = 0; i < 3; i++) {
        ck_assert_ptr_null(qg_plan_case(plan, i)->skip);
        ck_assert_int_eq(qg_plan_case(plan, i)->recipe->layout.kind, QG_LAYOUT_PER_TENSOR);
    }
    ck_assert_int_eq(qg_plan_case(plan, 0)->recipe->rule, QG_RULE_DELAYED);
    qg_plan_free(plan);
}
END_TEST

START_TEST(a_named_default_changes_nothing) {
    qg_plan *plain =
        plan_of("", "formats", "vllm_ue8m0", "data", "normal", "m", "1", "k", "8", NULL);
    qg_plan *named = plan_of("", "formats", "vllm_ue8m0", "layouts", "group:128", "rules", "rceil",
                             "data", "normal", "m", "1", "k", "8", NULL);
    ck_assert_uint_eq(qg_plan_case(plain, 0)->id, qg_plan_case(named, 0)->id);
    ck_assert(same_recipe(qg_plan_case(plain, 0)->recipe, qg_plan_case(named, 0)->recipe));
    qg_plan_free(plain);
    qg_plan_free(named);
}
END_TEST

START_TEST(backends_that_do_not_answer) {
    qg_plan *plan = plan_of("", "formats", "mxfp4", "rules", "floor", "backends", "emulator,cuda",
                            "data", "normal", "m", "1", "k", "8", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2);
    ck_assert_ptr_null(qg_plan_case(plan, 0)->unavailable);
    ck_assert_ptr_nonnull(qg_plan_case(plan, 1)->unavailable);
    ck_assert_str_eq(qg_plan_case(plan, 1)->backend, "cuda");
    qg_plan_free(plan);
}
END_TEST

// ------------------------------------------------------------------------------------ real tensors

START_TEST(tensors_that_cannot_be_read) {
    enter_folder();
    write_tensors("x.safetensors", MIXED, 48);
    qg_plan *plan =
        plan_of("", "formats", "e4m3,mxfp8", "data", "tensors:x.safetensors", "m", "5", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2 + 4 + 3); // ids: one per format
    int64_t skipped = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert_str_eq(c->data, "tensors:x.safetensors");
        if (c->skip) {
            skipped++;
            ck_assert_str_eq(c->tensor, "ids");
            ck_assert_ptr_nonnull(strstr(c->skip, "I64"));
            ck_assert_int_eq(c->m, 0);
        } else {
            ck_assert_str_eq(c->tensor, "w");
            ck_assert(c->m == 2 && c->k == 4); // its own
        }
    }
    ck_assert_int_eq(skipped, 2);
    qg_plan_free(plan);
    refused(QG_ERROR_ARGUMENT, "I64", "formats", "e4m3", "data", "tensors:x.safetensors#ids", NULL);
    refused(QG_ERROR_ARGUMENT, "it has ids, w", "formats", "e4m3", "data",
            "tensors:x.safetensors#v*", NULL);
    refused(QG_ERROR_IO, "nowhere.npy", "formats", "e4m3", "data", "tensors:nowhere.npy", NULL);
    write_bytes("bad.safetensors", "12345678", 8);
    refused(QG_ERROR_DATA, "bad.safetensors", "formats", "e4m3", "data", "tensors:bad.safetensors",
            NULL);
    refused(QG_ERROR_ARGUMENT, "names no file", "formats", "e4m3", "data", "tensors:#w", NULL);
    refused(QG_ERROR_ARGUMENT, "nothing after", "formats", "e4m3", "data", "tensors:x.safetensors#",
            NULL);
    leave_folder();
}
END_TEST

START_TEST(the_current_folder_goes_before_the_shipped_tensors) {
    qg_plan *shipped = plan_of("", "formats", "mxfp8", "data", "tensors:minilm.h5", NULL);
    ck_assert_int_eq(qg_plan_count(shipped), 8 * 3);
    qg_plan_free(shipped);
    enter_folder();
    write_bytes("minilm.h5", "no HDF5", 7);
    refused(QG_ERROR_DATA, "minilm.h5", "formats", "mxfp8", "data", "tensors:minilm.h5", NULL);
    // The default means the shipped file wherever the sweep runs.
    qg_plan *plan = plan_of("", "formats", "mxfp8", "level", "smoke", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 3 * (2 * 9 + 8));
    qg_plan_free(plan);
    leave_folder();
}
END_TEST

START_TEST(missing_shipped_tensors_are_an_error) {
    enter_folder();
    ck_assert_int_eq(setenv("QG_DATA_DIR", folder, 1), 0);
    refused(QG_ERROR_IO, "QG_DATA_DIR", "formats", "mxfp8", NULL);
    ck_assert_int_eq(unsetenv("QG_DATA_DIR"), 0);
    leave_folder();
}
END_TEST

// ----------------------------------------------------------------------------------- repro lines

START_TEST(repro_lines_of_every_format) {
    qg_plan *plan = plan_of("", "formats", "*", "layouts", "default,per_tensor,group:48", "rules",
                            "default,amax_rcp,fixed:0.3,nearest", "rounding", "rne,stochastic:B:7",
                            "data", "outliers:100", "m", "3", "k", "5", "seeds",
                            "18446744073709551615", "inputs", "bf16", NULL);
    ck_assert_int_gt(qg_plan_count(plan), 1000);
    check_repro_lines(plan);
    qg_plan_free(plan);
}
END_TEST

START_TEST(repro_lines_of_data) {
    qg_plan *plan =
        plan_of("", "formats", "mxfp8", "rules", "floor", "data",
                "default,uniform,uniform:0.3,laplace:abs,crest:3,lognormal:2,student_t:3:sigma=2",
                "m", "1", "k", "7,64", NULL);
    check_repro_lines(plan);
    qg_plan_free(plan);
}
END_TEST

// Names with everything that lists, globs, shells and plan files give a meaning to.
static const char ODD_NAMES[] =
    "{\"a,b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
    "\"it's\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
    "\"w[0]*?\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},"
    "\"x y#z\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]},"
    "\"$HOME`id`;\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,40]},"
    "\"back\\\\slash\\\\,'\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[40,48]},"
    "\"\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[48,56]}}";

START_TEST(repro_lines_of_odd_names) {
    enter_folder();
    write_tensors("odd #1,2.safetensors", ODD_NAMES, 56);
    qg_plan *plan = plan_of("", "formats", "e4m3", "layouts", "per_row", "data",
                            "tensors:odd #1\\,2.safetensors", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 7);
    check_repro_lines(plan);
    char line[64];
    ck_assert(!qg_plan_repro(plan, qg_plan_case(plan, 0), line, sizeof line));
    qg_plan_free(plan);
    leave_folder();
}
END_TEST

START_TEST(shell_words) {
    char text[64] = "";
    ck_assert(qg_shell_append(text, sizeof text, "a-b_c/d.e:f=g,h"));
    ck_assert(qg_shell_append(text, sizeof text, "a b"));
    ck_assert(qg_shell_append(text, sizeof text, ""));
    ck_assert(qg_shell_append(text, sizeof text, "it's"));
    ck_assert_str_eq(text, "a-b_c/d.e:f=g,h 'a b' '' 'it'\\''s'");
    char small[8] = "abc";
    ck_assert(!qg_shell_append(small, sizeof small, "defgh"));
    ck_assert_str_eq(small, "abc");
    ck_assert(!qg_shell_append(small, sizeof small, "d ef"));
    ck_assert_str_eq(small, "abc");
    ck_assert(qg_shell_append(small, sizeof small, "def"));
    ck_assert_str_eq(small, "abc def");
}
END_TEST

// --------------------------------------------------------------------------------- files and texts

static void write_text(const char *path, const char *text) {
    write_bytes(path, text, strlen(text));
}

START_TEST(plan_files) {
    enter_folder();
    write_text("p.plan", "# a comment\n"
                         "[first]\n"
                         "formats e4m3   # another\n"
                         "layouts per_row\n"
                         "data normal\nm 1\nk 8,16\n"
                         "\n"
                         "[second]\n"
                         "--formats mxfp8,e4m3\n"
                         "layouts per_row\n"
                         "rules amax\n"
                         "data normal\nm 1\nk 8\n");
    qg_plan *plan = plan_of("", "plan", "p.plan", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 3); // e4m3 at k = 8 is in both
    ck_assert_int_eq(qg_plan_considered(plan), 4);
    qg_plan_free(plan);
    plan = plan_of("", "plan", "p.plan", "k", "32", "where", "format=e4m3", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 1); // the command line replaces k and filters
    ck_assert_int_eq(qg_plan_case(plan, 0)->k, 32);
    qg_plan_free(plan);
    leave_folder();
}
END_TEST

START_TEST(expressions_of_sections_and_of_the_command_line) {
    enter_folder();
    write_text("p.plan", "formats e4m3\nlayouts per_row\ndata normal\nm 1,2,3\nk 8,16\n"
                         "where m=1\nwhere m=2\nexclude m=2&k=16\n");
    qg_plan *plan = plan_of("", "plan", "p.plan", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 3);
    qg_plan_free(plan);
    plan =
        plan_of("", "plan", "p.plan", "where", "k=8", "where", "k=16", "exclude", "m=1&k=8", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2);
    qg_plan_free(plan);
    plan = plan_of("", "plan", "p.plan", "where", "k=9", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 0);
    ck_assert_int_eq(qg_plan_considered(plan), 6);
    qg_plan_free(plan);
    leave_folder();
}
END_TEST

START_TEST(refused_plan_files) {
    static const char *const wrong[][2] = {
        {"",                                 "no section"                                        },
        {"# nothing\n",                      "no section"                                        },
        {"[a]\nrules amax\n",                "p.plan:1: [a]: no formats"                         },
        {"rules amax\n",                     "no formats"                                        },
        {"formats e4m3\n\nformat e5m2\n",    "p.plan:3: format: 'format' is no option of a plan" },
        {"formats e4m3\nthreads 3\n",        "p.plan:2: threads"                                 },
        {"formats e4m3\nlayouts\n",          "p.plan:2: layouts: the list is empty"              },
        {"formats e4m4\n",                   "p.plan:1: formats: unknown recipe or format 'e4m4'"},
        {"[a\nformats e4m3\n",               "p.plan:1: '[a' is no section"                      },
        {"[]\nformats e4m3\n",               "p.plan:1: '[]' is no section"                      },
        {"formats e4m3\nwhere m~3\n",        "p.plan:2: where"                                   },
        {"formats e4m3\nm 0\n",              "p.plan:2: m: '0'"                                  },
        {"formats nvfp4\nlayouts per_row\n", "p.plan:2: layouts: 'per_row' fits nothing"         },
        {"formats e4m3\nlevel huge\n",       "p.plan:2: level: unknown level"                    },
    };
    enter_folder();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_text("p.plan", wrong[i][0]);
        refused(QG_ERROR_ARGUMENT, wrong[i][1], "plan", "p.plan", NULL);
    }
    write_bytes("p.plan", "formats\0e4m3\n", 13);
    refused(QG_ERROR_ARGUMENT, "not a text file", "plan", "p.plan", NULL);
    refused(QG_ERROR_IO, "cannot open", "plan", "none.plan", NULL);
    refused(QG_ERROR_ARGUMENT, "--formats is required", "rules", "amax", NULL);
    leave_folder();
}
END_TEST

// The text is a plan file that gives the same plan.
static void check_text(const qg_plan *plan) {
    write_text("text.plan", qg_plan_text(plan));
    qg_plan *again = plan_of("", "plan", "text.plan", NULL);
    ck_assert_str_eq(qg_plan_text(again), qg_plan_text(plan));
    ck_assert_int_eq(qg_plan_count(again), qg_plan_count(plan));
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        ck_assert_uint_eq(qg_plan_case(again, i)->id, qg_plan_case(plan, i)->id);
    qg_plan_free(again);
}

START_TEST(the_text_is_the_plan) {
    enter_folder();
    qg_plan *plan = plan_of("", "formats", "mxfp8,e4m3,mxfp4", "level", "paper", "rounding",
                            "rne,rtz", "inputs", "fp32,bf16", "exclude", "m=1", NULL);
    check_text(plan);
    ck_assert_ptr_nonnull(strstr(qg_plan_text(plan), "layouts per_tensor,per_row,group:128,"
                                                     "block:128x128\nrules amax\n"));
    ck_assert_ptr_nonnull(strstr(qg_plan_text(plan), "\nseeds 1\n"));
    ck_assert_ptr_null(strstr(qg_plan_text(plan), "default"));
    ck_assert_ptr_null(strstr(qg_plan_text(plan), "/datasets"));
    qg_plan_free(plan);
    write_tensors("odd #1,2.safetensors", ODD_NAMES, 56);
    plan = plan_of("", "formats", "e4m3", "data", "tensors:odd #1\\,2.safetensors#w*,normal", "m",
                   "1:8:*2", "k", "3", "where", "k=3", NULL);
    check_text(plan);
    qg_plan_free(plan);
    leave_folder();
}
END_TEST

START_TEST(the_default_written_out_has_the_same_text) {
    qg_plan *plain = plan_of("", "formats", "mxfp8", "data", "normal", NULL);
    qg_plan *named = plan_of("", "formats", "mxfp8", "data", "normal", "rules", "floor,even,rceil",
                             "m", "16,128,1168", "k", "128,1000,4096,5120", "level", "default",
                             "ops", "error", "backends", "emulator", NULL);
    ck_assert_str_eq(qg_plan_text(plain), qg_plan_text(named));
    qg_plan_free(plain);
    qg_plan_free(named);
}
END_TEST

// ------------------------------------------------------------------------------------------ limits

START_TEST(sizes) {
    refused(QG_ERROR_OVERFLOW, "too many elements", "formats", "e4m3", "m", "4294967296", "k",
            "4294967296", NULL);
    refused(QG_ERROR_OVERFLOW, "too many elements", "formats", "e4m3", "m", "1", "k",
            "9223372036854775807", NULL);
    refused(QG_ERROR_ARGUMENT, "more than 4194304 cases", "formats", "e4m3", "data", "normal", "m",
            "1:100000:1", "k", "1:1000:1", NULL);
    refused(QG_ERROR_ARGUMENT, "more than 4194304 cases", "formats", "e4m3", "data", "normal", "m",
            "1:1000000:1", "k", "1:1000000:1", "seeds", "1:1000000:1", NULL);
    qg_plan *plan = plan_of("", "formats", "e4m3", "layouts", "per_row", "data", "normal", "m",
                            "1099511627776", "k", "1024", NULL); // large, but a number
    ck_assert_int_gt(qg_case_bytes(qg_plan_case(plan, 0)), (int64_t)9 << 50);
    qg_plan_free(plan);
}
END_TEST

START_TEST(many_cases) {
    qg_plan *plan = plan_of("", "formats", "e4m3", "data", "normal,laplace", "m", "1:1000:1", "k",
                            "1:50:1", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 400000);
    ck_assert_ptr_eq(qg_plan_case(plan, 0)->layout, qg_plan_case(plan, 4)->layout); // kept once
    ck_assert(qg_case_cost(qg_plan_case(plan, 0)) > 0);
    qg_plan_free(plan);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {ids_stay,
                                  the_id_is_the_digest_of_all_axes,
                                  collisions_are_found,
                                  ids_do_not_depend_on_paths,
                                  defaults,
                                  levels,
                                  names_are_canonical,
                                  globs,
                                  order,
                                  duplicates_are_dropped,
                                  skips_have_reasons,
                                  values_that_fit_nothing,
                                  layout_and_rule_replaced_together,
                                  a_named_default_changes_nothing,
                                  backends_that_do_not_answer,
                                  tensors_that_cannot_be_read,
                                  the_current_folder_goes_before_the_shipped_tensors,
                                  missing_shipped_tensors_are_an_error,
                                  repro_lines_of_every_format,
                                  repro_lines_of_data,
                                  repro_lines_of_odd_names,
                                  shell_words,
                                  plan_files,
                                  expressions_of_sections_and_of_the_command_line,
                                  refused_plan_files,
                                  the_text_is_the_plan,
                                  the_default_written_out_has_the_same_text,
                                  sizes,
                                  many_cases};
    plan_standard_ops = "error"; // the others have tests of their own
    return RUN_SUITE("plan", tests);
}
