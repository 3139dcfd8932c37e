// The choice between the kernels of groups. See qg_kernel_choice.h.
//
// Order and floor are Metrale's, with the run-time number of SMs; a learned route replaces the
// floor alone, so that it never overrules the lever or runs a kernel that is not there. Pure but
// for the log, which remembers what it has said. Exact.
#include <qg_kernel_choice.h>

#include <qg_log.h>
#include <qg_size.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const char *qg_kernel_reject_name(qg_kernel_reject reject) {
    static const char *const names[] = {
#define REJECT_NAME(ID, name) name,
        QG_KERNEL_REJECT_TABLE(REJECT_NAME)
#undef REJECT_NAME
    };
    return (unsigned)reject < QG_REJECT_COUNT ? names[reject] : "";
}

const char *qg_group_kernel_name(int kernel) {
    static const char *const names[QG_GROUP_KERNEL_COUNT] = {"shared", "hopper"};
    return kernel >= 0 && kernel < QG_GROUP_KERNEL_COUNT ? names[kernel] : "";
}

// ------------------------------------------------------------------------------------------ lever

qg_status qg_kernel_lever_parse(const char *text, qg_kernel_lever *lever) {
    static const char *const names[] = {"auto", "shared", "hopper"};
    for (int i = 0; text && i < (int)(sizeof names / sizeof names[0]); i++)
        if (strcmp(text, names[i]) == 0) {
            *lever = (qg_kernel_lever)i;
            return QG_OK;
        }
    return qg_fail(QG_ERROR_ARGUMENT, "unknown group kernel '%.60s': auto, shared or hopper",
                   text ? text : "");
}

qg_status qg_kernel_lever_of_environment(qg_kernel_lever *lever) {
    const char *text = getenv("QG_GROUP_KERNEL");
    if (!text || !*text) {
        *lever = QG_LEVER_AUTO;
        return QG_OK;
    }
    if (qg_kernel_lever_parse(text, lever) == QG_OK)
        return QG_OK;
    return qg_fail(QG_ERROR_ARGUMENT,
                   "QG_GROUP_KERNEL: unknown group kernel '%.60s': auto, shared or hopper", text);
}

// ------------------------------------------------------------------------------------------ route

// The last row of [begin, end) whose key is at most `value`, the first if none is.
static size_t last_at_most(const qg_route *route, size_t begin, size_t end, bool by_k,
                           int64_t value) {
    size_t found = begin;
    for (size_t i = begin; i < end; i++)
        if ((by_k ? route->rows[i].k_from : route->rows[i].m_from) <= value)
            found = i;
    return found;
}

int qg_route_kernel(const qg_route *route, int64_t m, int64_t k) {
    if (!route || route->count == 0)
        return -1;
    int64_t k_from = route->rows[last_at_most(route, 0, route->count, true, k)].k_from;
    size_t begin = 0;
    while (route->rows[begin].k_from != k_from)
        begin++;
    size_t end = begin;
    while (end < route->count && route->rows[end].k_from == k_from)
        end++;
    return route->rows[last_at_most(route, begin, end, false, m)].kernel;
}

// ----------------------------------------------------------------------------------------- choice

// Fewer CTAs of the twin than two per SM; a product beyond 2^63 is many.
static bool has_too_few_ctas(const qg_kernel_request *r) {
    qg_partition twin = qg_partition_of(QG_GROUP_KERNEL_HOPPER, r->k, r->group, r->element_bytes);
    int64_t tiles = qg_ceil_divide(twin.groups, twin.held), ctas, wanted;
    if (!qg_size_multiply(r->m, tiles < 1 ? 1 : tiles, &ctas))
        ctas = INT64_MAX;
    if (!qg_size_multiply(2, r->sm_count < 1 ? 1 : r->sm_count, &wanted))
        wanted = INT64_MAX;
    return ctas < wanted;
}

static qg_kernel_reject reject_of(const qg_kernel_request *r) {
    if (!r->twin_present)
        return r->shared_present ? QG_REJECT_KERNEL_ABSENT : QG_REJECT_NONE_PRESENT;
    if (!r->shared_present)
        return QG_REJECT_NONE;
    if (r->lever == QG_LEVER_SHARED)
        return QG_REJECT_NOT_REQUESTED;
    if (r->lever == QG_LEVER_HOPPER)
        return QG_REJECT_NONE;
    int measured = qg_route_kernel(r->route, r->m, r->k);
    if (measured >= 0)
        return measured == QG_GROUP_KERNEL_HOPPER ? QG_REJECT_NONE : QG_REJECT_MEASURED_SLOWER;
    return has_too_few_ctas(r) ? QG_REJECT_TOO_FEW_CTAS : QG_REJECT_NONE;
}

qg_kernel_choice qg_kernel_choose(const qg_kernel_request *request) {
    qg_kernel_choice c = {.kernel = -1, .reject = reject_of(request)};
    if (c.reject == QG_REJECT_NONE_PRESENT)
        return c;
    c.kernel = c.reject == QG_REJECT_NONE ? QG_GROUP_KERNEL_HOPPER : QG_GROUP_KERNEL_SHARED;
    c.partition = qg_partition_of(c.kernel, request->k, request->group, request->element_bytes);
    c.grid_x = qg_partition_grid_x(request->m, 0);
    c.grid_y = qg_partition_grid_y(&c.partition);
    c.slabs = qg_partition_slabs(request->m);
    return c;
}

// -------------------------------------------------------------------------------------------- log

void qg_kernel_choice_log(const qg_kernel_choice *choice) {
    static atomic_bool said[QG_REJECT_COUNT]; // one slot per reason; that of none is the twin's
    if (choice->reject == QG_REJECT_NOT_REQUESTED || (unsigned)choice->reject >= QG_REJECT_COUNT ||
        atomic_exchange(&said[choice->reject], true))
        return;
    if (choice->kernel < 0)
        qg_log_write("group kernel: none (%s)", qg_kernel_reject_name(choice->reject));
    else if (choice->reject == QG_REJECT_NONE)
        qg_log_write("group kernel: %s, grid %" PRId64 " x %" PRId64,
                     qg_group_kernel_name(choice->kernel), choice->grid_x, choice->grid_y);
    else
        qg_log_write("group kernel: %s, grid %" PRId64 " x %" PRId64 ": the twin was refused: %s",
                     qg_group_kernel_name(choice->kernel), choice->grid_x, choice->grid_y,
                     qg_kernel_reject_name(choice->reject));
}
