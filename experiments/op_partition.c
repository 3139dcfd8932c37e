// Operation `partition`: the invariants of the grids of both group kernels, and the choice between
// them. Nothing is launched and no tensor is made.
//
// kernel, grid and reject are those that the floor chooses with both kernels present and asked for,
// whatever lever and route say: results must not depend on them. Coverage, inert lanes and limits
// are of both kernels' grids. What is enumerated depends on k, group size and element size alone,
// so it stays in the workspace for cases that differ in m and SM count. Exact.
#include <op_internal.h>

#include <partition_cover.h>
#include <qg_kernel_choice.h>
#include <qg_size.h>
#include <qg_workspace.h>

#include <inttypes.h>
#include <stdio.h>

typedef struct kernel_cover {
    qg_partition partition;
    int64_t grid_y;
    partition_cover cover;
} kernel_cover;

static int element_bytes(const qg_case *c) { return c->input_type == QG_FORMAT_FP32 ? 4 : 2; }

static qg_status count_kernels(const qg_case *c, qg_workspace *workspace, kernel_cover *kernels) {
    for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++) {
        kernel_cover *k = &kernels[kernel];
        void *counts;
        k->partition = qg_partition_of(kernel, c->k, c->recipe->layout.columns, element_bytes(c));
        k->grid_y = qg_partition_grid_y(&k->partition);
        qg_status status = qg_workspace_room(workspace, QG_BUFFER_TIMES_COVERED,
                                             partition_cover_bytes(&k->partition), 1, &counts);
        if (status != QG_OK)
            return status;
        k->cover = partition_cover_count(&k->partition, k->grid_y, counts);
    }
    return QG_OK;
}

static qg_status find_kernels(const qg_case *c, qg_workspace *workspace, kernel_cover **out) {
    char label[QG_LABEL_SIZE];
    snprintf(label, sizeof label, "%" PRId64 " %" PRId32 " %d", c->k, c->recipe->layout.columns,
             element_bytes(c));
    void *room = qg_workspace_find(workspace, QG_BUFFER_COVERS, label);
    *out = room;
    if (room)
        return QG_OK;
    qg_status status =
        qg_workspace_room(workspace, QG_BUFFER_COVERS, QG_GROUP_KERNEL_COUNT, sizeof **out, &room);
    if (status != QG_OK)
        return status;
    *out = room;
    status = count_kernels(c, workspace, *out);
    if (status == QG_OK)
        qg_workspace_label(workspace, QG_BUFFER_COVERS, label);
    return status;
}

static void add_kernel(const kernel_cover *k, qg_case_partition *out) {
    const partition_cover *cover = &k->cover;
    out->covered_min =
        cover->covered_min < out->covered_min ? cover->covered_min : out->covered_min;
    out->covered_max =
        cover->covered_max > out->covered_max ? cover->covered_max : out->covered_max;
    out->inert += cover->inert;
    out->violations += cover->violations + partition_broken_y(k->grid_y);
}

// The reason of the first violation that is found.
static void describe(const qg_case *c, const kernel_cover *kernels, qg_case_result *result) {
    for (int i = 0; i < QG_GROUP_KERNEL_COUNT; i++) {
        const partition_cover *cover = &kernels[i].cover;
        if (cover->violations && cover->first_count < 0)
            qg_case_result_set(result, QG_CASE_FAILED,
                               "kernel %s with grid y %" PRId64 " reaches %s %" PRId64
                               ", which is not there (%" PRId64 " violations)",
                               qg_group_kernel_name(i), kernels[i].grid_y,
                               cover->first_is_group ? "group" : "element", cover->first,
                               result->partition.violations);
        else if (cover->violations)
            qg_case_result_set(result, QG_CASE_FAILED,
                               "kernel %s with grid y %" PRId64 " covers %s %" PRId64 " %" PRId64
                               " times (%" PRId64 " violations)",
                               qg_group_kernel_name(i), kernels[i].grid_y,
                               cover->first_is_group ? "group" : "element", cover->first,
                               cover->first_count, result->partition.violations);
        else if (partition_broken_y(kernels[i].grid_y))
            qg_case_result_set(result, QG_CASE_FAILED, "kernel %s: grid y %" PRId64 " of 1 to %d",
                               qg_group_kernel_name(i), kernels[i].grid_y, (int)QG_GRID_Y_MOST);
        else
            continue;
        return;
    }
    qg_case_result_set(result, QG_CASE_FAILED,
                       "the slabs do not hold the %" PRId64 " rows once, in grids x of 1 to 2^31-1",
                       c->m);
}

static void judge(const qg_case *c, const kernel_cover *kernels, qg_case_result *result) {
    qg_kernel_request request = {.twin_present = true,
                                 .shared_present = true,
                                 .m = c->m,
                                 .k = c->k,
                                 .group = c->recipe->layout.columns,
                                 .element_bytes = element_bytes(c),
                                 .sm_count = c->sm_count};
    qg_kernel_choice choice = qg_kernel_choose(&request);
    qg_case_partition *p = &result->partition;
    *p = (qg_case_partition){.groups = choice.partition.groups,
                             .grid_x = choice.grid_x,
                             .grid_y = choice.grid_y,
                             .kernel = choice.kernel,
                             .reject = (int32_t)choice.reject,
                             .covered_min = INT64_MAX,
                             .violations = partition_broken_rows(c->m)};
    for (int i = 0; i < QG_GROUP_KERNEL_COUNT; i++)
        add_kernel(&kernels[i], p);
    result->has_partition = true;
    if (p->violations)
        describe(c, kernels, result);
    else
        result->status = QG_CASE_PASSED;
}

void qg_op_partition_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result) {
    kernel_cover *kernels;
    if (find_kernels(c, workspace, &kernels) != QG_OK)
        qg_case_result_set(result, QG_CASE_FAILED, "%s", qg_detail());
    else
        judge(c, kernels, result);
}

// ------------------------------------------------------------------------------------------ costs

int64_t qg_op_partition_bytes(const qg_case *c) {
    int64_t bytes; // groups are no more than elements
    return qg_size_multiply(2, c->k, &bytes) ? bytes : INT64_MAX;
}

// What is enumerated serves all cases of its k: a part of it. Slabs are looked at in each.
double qg_op_partition_cost(const qg_case *c) {
    static const double ELEMENT = 0.05, SLAB = 0.1;
    return ELEMENT * (double)c->k + SLAB * (double)qg_partition_slabs(c->m);
}
