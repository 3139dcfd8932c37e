// Operation `partition`: its cases in a plan, what it says of a shape, and that a partition which is
// broken on purpose is found out.
#include <partition_cover.h>
#include <plan_options.h>
#include <qg_kernel_choice.h>
#include <qg_result_row.h>
#include <qg_table.h>
#include <qg_workspace.h>
#include <require.h>
#include <run_suite.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static qg_workspace *workspace_of_test(void) {
    qg_workspace *workspace;
    ck_assert_int_eq(qg_workspace_create(1, &workspace), QG_OK);
    return workspace;
}

static qg_case_result run(const qg_case *c, qg_workspace *workspace) {
    qg_case_result result;
    ck_assert_msg(!c->skip, "%s", c->skip ? c->skip : "");
    qg_case_result_clear(&result, c);
    c->op->run(c, workspace, &result);
    return result;
}

// ------------------------------------------------------------------------------------------- plans

#define PARTITION "ops", "partition"

START_TEST(a_case_is_format_layout_input_m_k_and_sm_count) {
    plan_standard_backends = NULL;
    qg_plan *plan = plan_of("", PARTITION, "formats", "metrale_act128,e4m3", "inputs", "fp32,bf16",
                            "m", "1,70000", "k", "1,5120,4096", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2 * 2 * 2 * 3 * 4);
    int64_t k = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert_str_eq(c->layout, "group:128");
        ck_assert(!*c->backend && !*c->data && !*c->tensor && !*c->scale_rule && !*c->rounding);
        ck_assert(!*c->scale_format && !*c->unit && !*c->format_b);
        ck_assert(c->seed == 0 && c->n == 0 && c->sm_count > 0);
        ck_assert(!c->skip && !c->unavailable && !c->against_emulator);
        ck_assert_int_ge(c->k, k); // what is enumerated serves the cases of one k
        k = c->k;
    }
    check_repro_lines(plan);
    qg_plan_free(plan);
}
END_TEST

// Nothing that a partition does not have multiplies its cases.
START_TEST(other_axes_do_not_multiply) {
    plan_standard_backends = NULL;
    qg_plan *plan =
        plan_of("", "ops", "error,partition", "formats", "mxfp8", "m", "4", "k", "64", "data",
                "normal,uniform", "seeds", "1,2,3", "rounding", "rne,rtz", "sm-counts", "10", NULL);
    int64_t partitions = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        partitions += strcmp(qg_plan_case(plan, i)->op->name, "partition") == 0;
    ck_assert_int_eq(partitions, 1);
    ck_assert_int_eq(qg_plan_count(plan), 1 + 2 * 3 * 2 * 3 * 2);
    check_repro_lines(plan);
    qg_plan_free(plan);
}
END_TEST

START_TEST(part_of_the_default_where_layouts_are_groups) {
    plan_standard_backends = NULL;
    qg_plan *plan = plan_of("", "formats", "e4m3,te_e4m3", "data", "normal", "m", "4", "k", "64",
                            "units", "exact", NULL);
    int64_t partitions = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        if (strcmp(qg_plan_case(plan, i)->op->name, "partition") == 0) {
            partitions++;
            ck_assert_str_eq(qg_plan_case(plan, i)->format, "e4m3");
            ck_assert_str_eq(qg_plan_case(plan, i)->layout, "group:128");
        }
    ck_assert_int_eq(partitions, 4);
    qg_plan_free(plan);
}
END_TEST

START_TEST(other_layouts) {
    plan_standard_backends = NULL;
    refused(QG_ERROR_ARGUMENT, "'per_row' fits nothing in the sweep: only groups along k",
            PARTITION, "formats", "e4m3", "layouts", "per_row,group:64", NULL);
    refused(QG_ERROR_ARGUMENT, "'te_e4m3' fits nothing in the sweep: only groups along k",
            PARTITION, "formats", "te_e4m3,mxfp8", NULL);
    refused(QG_ERROR_ARGUMENT, "--sm-counts", PARTITION, "formats", "mxfp8", "sm-counts", "0",
            NULL);
    refused(QG_ERROR_ARGUMENT, "no operation of the sweep has data", PARTITION, "formats", "mxfp8",
            "data", "normal", NULL);
    refused(QG_ERROR_ARGUMENT, "no operation of the sweep has backends", PARTITION, "formats",
            "mxfp8", "backends", "cpu", NULL);
    refused(QG_ERROR_ARGUMENT, "no operation of the sweep has rules", PARTITION, "formats", "mxfp8",
            "rules", "floor", NULL);
    refused(QG_ERROR_ARGUMENT, "no operation of the sweep has sm-counts", "ops", "error", "formats",
            "mxfp8", "sm-counts", "1", NULL);
    // Within a larger sweep: with its reason.
    qg_plan *plan = plan_of("", PARTITION, "formats", "te_*,mx9,e4m3", "layouts",
                            "default,group:16", "m", "1", "k", "64", "sm-counts", "1", NULL);
    int64_t skipped = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert(!c->skip == (strncmp(c->layout, "group:", 6) == 0));
        skipped += c->skip != NULL;
    }
    ck_assert_int_gt(skipped, 0);
    qg_plan_free(plan);
}
END_TEST

// The text of a plan is a plan: it has the same cases.
START_TEST(the_text_makes_the_same_plan) {
    plan_standard_backends = NULL;
    char path[] = "/tmp/quantgauge-partition-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    static const char *const ops[] = {"partition", "error,partition", "vectors,partition"};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        qg_plan *plan = plan_of("", "ops", ops[o], "formats", "e4m3,mxfp8", "inputs", "bf16", "m",
                                "3", "k", "200,4096", "sm-counts", "132", NULL);
        ck_assert_ptr_nonnull(strstr(qg_plan_text(plan), "\nsm-counts 132\n"));
        ck_assert((strstr(qg_plan_text(plan), "\ndata ") != NULL) == (o == 1));
        FILE *file = fopen(path, "w");
        fputs(qg_plan_text(plan), file);
        fclose(file);
        qg_plan *again = plan_of("", "plan", path, NULL);
        ck_assert_int_eq(qg_plan_count(again), qg_plan_count(plan));
        for (int64_t i = 0; i < qg_plan_count(plan); i++)
            ck_assert_uint_eq(qg_plan_case(again, i)->id, qg_plan_case(plan, i)->id);
        qg_plan_free(again);
        qg_plan_free(plan);
    }
    close(fd);
    remove(path);
}
END_TEST

// ----------------------------------------------------------------------------------------- results

typedef struct wanted {
    const char *input, *m, *k, *sms;
    int64_t groups, grid_x, grid_y, inert;
    const char *kernel, *reject;
} wanted;

static void check_wanted(const wanted *w) {
    qg_plan *plan = plan_of("", PARTITION, "formats", "metrale_act128", "inputs", w->input, "m",
                            w->m, "k", w->k, "sm-counts", w->sms, NULL);
    qg_workspace *workspace = workspace_of_test();
    qg_table *table;
    ck_assert_int_eq(qg_plan_count(plan), 1);
    qg_case_result result = run(qg_plan_case(plan, 0), workspace);
    ck_assert_msg(result.status == QG_CASE_PASSED, "%s", result.reason);
    ck_assert_int_eq(qg_table_create(&table), QG_OK);
    ck_assert_int_eq(qg_result_row_add(table, plan, qg_plan_case(plan, 0), &result, 0), QG_OK);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_PARTITION_GROUPS), w->groups);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_PARTITION_GRID_X), w->grid_x);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_PARTITION_GRID_Y), w->grid_y);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_PARTITION_COVERED_MIN), 1);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_PARTITION_COVERED_MAX), 1);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_PARTITION_INERT), w->inert);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_PARTITION_VIOLATIONS), 0);
    ck_assert_str_eq(qg_table_text(table, 0, QG_COLUMN_PARTITION_KERNEL), w->kernel);
    ck_assert_str_eq(qg_table_text(table, 0, QG_COLUMN_PARTITION_REJECT), w->reject);
    ck_assert_str_eq(qg_table_text(table, 0, QG_COLUMN_BACKEND), "");
    ck_assert_str_eq(qg_table_text(table, 0, QG_COLUMN_INPUT_TYPE), w->input);
    ck_assert_int_gt(qg_table_i64(table, 0, QG_COLUMN_SM_COUNT), 0);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_COUNT_N), -1);
    qg_table_free(table);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}

START_TEST(what_it_says_of_a_shape) {
    plan_standard_backends = NULL;
    static const wanted table[] = {
        {"bf16", "53",         "5120", "132", 40, 53,         5,  0,            "hopper", ""            },
        {"bf16", "52",         "5120", "132", 40, 52,         40, 0,            "shared", "too_few_ctas"},
        {"fp32", "27",         "5120", "132", 40, 27,         10, 0,            "hopper", ""            },
        {"fp32", "26",         "5120", "132", 40, 26,         40, 0,            "shared", "too_few_ctas"},
 // spans 5 and 4 of the twin: 48 and 64 lanes
        {"bf16", "132",        "1152", "132", 9,  132,        2,  112,          "hopper", ""            },
        {"bf16", "1",          "384",  "132", 3,  1,          3,  128 - 3 * 16, "shared", "too_few_ctas"},
 // one element: a lane of either kernel
        {"bf16", "2147483648", "1",    "132", 1,  2147483647, 1,  127 + 127,    "hopper", ""            },
        {"fp16", "2147483647", "127",  "148", 1,  2147483647, 1,  1 + 112,      "hopper", ""            },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check_wanted(&table[i]);
}
END_TEST

// What the environment and a route say does not enter.
START_TEST(lever_does_not_enter) {
    plan_standard_backends = NULL;
    static const wanted hopper = {"bf16", "53", "5120", "132", 40, 53, 5, 0, "hopper", ""};
    setenv("QG_GROUP_KERNEL", "shared", 1);
    check_wanted(&hopper);
}
END_TEST

START_TEST(every_shape_passes) {
    plan_standard_backends = NULL;
    qg_plan *plan = plan_of("", PARTITION, "formats", "e4m3", "layouts",
                            "group:1,group:3,group:16,group:32,group:100,group:128,group:200,"
                            "group:1000,group:5000",
                            "inputs", "fp32,bf16", "m", "1,70000,4294967295", "k",
                            "1,31,128,1152,5120,70001", "sm-counts", "1,132", NULL);
    qg_workspace *workspace = workspace_of_test();
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        qg_case_result result = run(qg_plan_case(plan, i), workspace);
        REQUIRE(result.status == QG_CASE_PASSED, "%s", result.reason);
    }
    ck_assert_int_eq(qg_plan_count(plan), 9 * 2 * 3 * 6 * 2);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

// What is kept of the case before is of its k, group and element size: every case after every other.
START_TEST(results_do_not_depend_on_the_case_before) {
    enum { MOST = 64 };
    static qg_case_result alone[MOST];
    plan_standard_backends = NULL;
    qg_plan *plan =
        plan_of("", PARTITION, "formats", "e4m3", "layouts", "group:16,group:100", "inputs",
                "fp32,bf16", "m", "1,70000", "k", "31,128,1152", "sm-counts", "132", NULL);
    int64_t count = qg_plan_count(plan);
    ck_assert_int_eq(count, 2 * 2 * 2 * 3);
    for (int64_t i = 0; i < count; i++) {
        qg_workspace *own = workspace_of_test();
        alone[i] = run(qg_plan_case(plan, i), own);
        qg_workspace_free(own);
    }
    qg_workspace *kept = workspace_of_test();
    for (int64_t i = 0; i < count * count; i++) {
        run(qg_plan_case(plan, i / count), kept);
        qg_case_result after = run(qg_plan_case(plan, i % count), kept);
        REQUIRE(memcmp(&after.partition, &alone[i % count].partition, sizeof after.partition) == 0,
                "case %d after case %d", (int)(i % count), (int)(i / count));
    }
    qg_workspace_free(kept);
    qg_plan_free(plan);
}
END_TEST

// ------------------------------------------------------------------------------- broken on purpose

static uint8_t counts[1 << 20];

static partition_cover count_broken(const qg_partition *p, int64_t grid_y) {
    ck_assert_int_le(partition_cover_bytes(p), (int64_t)sizeof counts);
    return partition_cover_count(p, grid_y, counts);
}

START_TEST(broken_partitions_are_found) {
    qg_partition good = qg_partition_of(QG_GROUP_KERNEL_HOPPER, 1152, 128, 2), p;
    partition_cover c = count_broken(&good, 2);
    ck_assert(c.violations == 0 && c.covered_min == 1 && c.covered_max == 1 && c.inert == 112);
    p = good;
    p.vector = 7; // a lane misses an element
    c = count_broken(&p, 2);
    ck_assert(c.violations == 9 * 16 && c.covered_min == 0 && c.covered_max == 1);
    ck_assert(!c.first_is_group && c.first == 112 && c.first_count == 0);
    p = good;
    p.lanes = 8; // half of a group
    c = count_broken(&p, 2);
    ck_assert(c.violations > 0 && c.covered_min == 0);
    p = good;
    p.held = 4; // tiles overlap
    c = count_broken(&p, 2);
    ck_assert(c.violations > 0 && c.covered_max == 2);
    p = good;
    p.steps = 0;
    c = count_broken(&p, 2);
    ck_assert(c.violations == 1152 && c.inert == 256);
    p = good;
    p.groups = 10; // one that is not there
    c = count_broken(&p, 2);
    ck_assert_int_eq(c.violations, 0); // it is empty,
    p.groups = 8;                      // one that is left out
    c = count_broken(&p, 2);
    ck_assert(c.violations == 128 && c.first == 1024 && c.first_count == 0);
    c = count_broken(&good, 0); // no CTA
    ck_assert(c.violations == 9 + 1152 && c.first_is_group && c.covered_max == 0);
}
END_TEST

START_TEST(limits) {
    ck_assert(partition_broken_y(0) && partition_broken_y(65536) && !partition_broken_y(65535));
    ck_assert(!partition_broken_y(1));
    static const int64_t rows[] = {1, 65537, 2147483647, 2147483648, INT64_C(1) << 45};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_int_eq(partition_broken_rows(rows[i]), 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {a_case_is_format_layout_input_m_k_and_sm_count,
                                  other_axes_do_not_multiply,
                                  part_of_the_default_where_layouts_are_groups,
                                  other_layouts,
                                  the_text_makes_the_same_plan,
                                  what_it_says_of_a_shape,
                                  lever_does_not_enter,
                                  every_shape_passes,
                                  results_do_not_depend_on_the_case_before,
                                  broken_partitions_are_found,
                                  limits};
    return RUN_SUITE("op_partition", tests);
}
