// Which kernel quantizes groups: a pure function of the shape and the device, in Metrale's order and
// with its floor, or by a table of measurements where one was learned. Chooses kernel, grid and
// reason together, so that none can be paired with another's.
#ifndef QG_KERNEL_CHOICE_H
#define QG_KERNEL_CHOICE_H

#include <qg_partition.h>
#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>

QG_EXTERN_C_BEGIN

// Why the twin was refused, in the order in which the reasons are looked at. X(ID, name)
#define QG_KERNEL_REJECT_TABLE(X)                                                                  \
    X(NONE, "")                           /* the twin runs */                                      \
    X(NONE_PRESENT, "none_present")       /* neither kernel is there */                            \
    X(KERNEL_ABSENT, "kernel_absent")     /* the twin is not there */                              \
    X(NOT_REQUESTED, "not_requested")     /* the lever says shared */                              \
    X(MEASURED_SLOWER, "measured_slower") /* the routing table says shared */                      \
    X(TOO_FEW_CTAS, "too_few_ctas")       /* m ceil(groups / held) < 2 SMs, and no table */

typedef enum qg_kernel_reject {
#define QG_KERNEL_REJECT_ENUM(ID, name) QG_REJECT_##ID,
    QG_KERNEL_REJECT_TABLE(QG_KERNEL_REJECT_ENUM)
#undef QG_KERNEL_REJECT_ENUM
        QG_REJECT_COUNT
} qg_kernel_reject;

const char *qg_kernel_reject_name(qg_kernel_reject reject);
const char *qg_group_kernel_name(int kernel); // "shared", "hopper", "" for none

// The lever. `auto`: the floor or the table decides. `shared`: never the twin. `hopper`: the twin
// wherever it is present.
typedef enum qg_kernel_lever { QG_LEVER_AUTO, QG_LEVER_SHARED, QG_LEVER_HOPPER } qg_kernel_lever;

// QG_ERROR_ARGUMENT: no such word.
qg_status qg_kernel_lever_parse(const char *text, qg_kernel_lever *lever);
// What QG_GROUP_KERNEL says; unset or empty: auto.
qg_status qg_kernel_lever_of_environment(qg_kernel_lever *lever);

// A row of a routing table learned from measurements: for k >= k_from and m >= m_from, up to the
// next row, `kernel` was faster (or within the spread of the faster).
typedef struct qg_route_row {
    int64_t k_from, m_from;
    int kernel;   // QG_GROUP_KERNEL_*
    double ratio; // time of the other kernel over this one's, at that point
    int64_t samples;
} qg_route_row;

// Rows of one GPU, recipe and input type, sorted by k_from, then m_from.
typedef struct qg_route {
    const qg_route_row *rows;
    size_t count;
} qg_route;

// The kernel at (m, k): of the rows with the largest k_from <= k (or the least, if none is), the one
// with the largest m_from <= m (or the least). -1: an empty table.
int qg_route_kernel(const qg_route *route, int64_t m, int64_t k);

typedef struct qg_kernel_request {
    qg_kernel_lever lever;
    bool twin_present, shared_present;
    int64_t m, k, group;   // >= 1
    int element_bytes;     // of the input: 2 or 4
    int64_t sm_count;      // of the device, at run time; below 1 counts as 1
    const qg_route *route; // NULL: the floor
} qg_kernel_request;

typedef struct qg_kernel_choice {
    int kernel;              // QG_GROUP_KERNEL_*; -1 where neither is present
    qg_kernel_reject reject; // why not the twin
    int64_t grid_x, grid_y;  // of the first slab; 0 where kernel is -1
    int64_t slabs;
    qg_partition partition; // of the kernel
} qg_kernel_choice;

// Pure. Without either kernel: kernel -1, QG_REJECT_NONE_PRESENT. With the twin alone it always
// runs; with the shared kernel alone that runs, reason kernel_absent.
qg_kernel_choice qg_kernel_choose(const qg_kernel_request *request);

// Says by qg_log_write what was chosen and why, once per reason and process (not_requested: never).
void qg_kernel_choice_log(const qg_kernel_choice *choice);

QG_EXTERN_C_END

#endif
