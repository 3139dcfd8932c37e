// The partition of an (m, k) tensor in 1xG groups among CTAs of 128 threads: grid, span and lane
// functions. The kernels call them, and `run_sweep --ops partition` proves them: nothing about a
// partition is written twice.
//
// Two kernels. `shared`: a CTA holds one group at a time, a thread one element at a time.
// `hopper`: a lane is one 16-byte load, a group is shared by as many lanes as it needs (a power of
// two, within one warp), a CTA holds several groups at a time.
// Grid X walks over rows, in slabs of 2^31 - 1; grid Y over spans of groups; a span that exceeds
// what the CTA holds at a time is walked in tiles. Rows do not enter the span and lane functions.
// Source: Metrale's FP8 activation quantizer (G = 128, bf16), generalised. C and CUDA. Exact.
#ifndef QG_PARTITION_H
#define QG_PARTITION_H

#include <qg_layout.h>

enum { QG_GROUP_KERNEL_SHARED, QG_GROUP_KERNEL_HOPPER, QG_GROUP_KERNEL_COUNT };

enum { QG_CTA_THREADS = 128, QG_WARP_THREADS = 32, QG_LOAD_BYTES = 16, QG_GRID_Y_MOST = 65535 };

#define QG_GRID_X_MOST ((int64_t)2147483647)

// How a kernel holds groups of G elements of a type.
typedef struct qg_partition {
    int64_t k, group;  // G >= 1
    int64_t groups;    // ceil(k / G), of a row
    int32_t vector;    // neighbouring elements that a lane holds at once
    int32_t lanes;     // threads that share a group; divides 128
    int32_t lane_bits; // lanes = 2^lane_bits
    int32_t held;      // groups that a CTA holds at a time: 128 / lanes
    int64_t steps;     // vectors of a lane in a full group
} qg_partition;

// k, group >= 1; element_bytes: 2 or 4.
QG_HD qg_partition qg_partition_of(int kernel, int64_t k, int64_t group, int element_bytes) {
    qg_partition p;
    p.k = k;
    p.group = group;
    p.groups = qg_ceil_divide(k, group);
    p.vector = kernel == QG_GROUP_KERNEL_HOPPER ? QG_LOAD_BYTES / element_bytes : 1;
    p.lanes = QG_CTA_THREADS;
    if (kernel == QG_GROUP_KERNEL_HOPPER) {
        int64_t vectors = qg_ceil_divide(group, p.vector);
        for (p.lanes = 1; p.lanes < vectors && p.lanes < QG_WARP_THREADS;)
            p.lanes *= 2;
    }
    for (p.lane_bits = 0; p.lanes >> p.lane_bits > 1;)
        p.lane_bits++;
    p.held = QG_CTA_THREADS / p.lanes;
    p.steps = qg_ceil_divide(group, (int64_t)p.vector * p.lanes);
    return p;
}

// ------------------------------------------------------------------------------------------- grid

// CTAs along Y: one for each tile of `held` groups, as far as a grid goes.
QG_HD int64_t qg_partition_grid_y(const qg_partition *p) {
    int64_t y = qg_ceil_divide(p->groups, p->held);
    return y < 1 ? 1 : y > QG_GRID_Y_MOST ? (int64_t)QG_GRID_Y_MOST : y;
}

// Rows beyond the limit of grid X go into further launches.
QG_HD int64_t qg_partition_slabs(int64_t m) { return qg_ceil_divide(m, QG_GRID_X_MOST); }

QG_HD int64_t qg_partition_grid_x(int64_t m, int64_t slab) {
    int64_t rest = m - slab * QG_GRID_X_MOST;
    return rest < QG_GRID_X_MOST ? rest : QG_GRID_X_MOST;
}

QG_HD int64_t qg_partition_row(int64_t slab, int64_t x) { return slab * QG_GRID_X_MOST + x; }

// ------------------------------------------------------------------------------------------- span

// Half-open; empty where begin >= end.
typedef struct qg_span {
    int64_t begin, end;
} qg_span;

// Groups of a CTA, where grid_y CTAs share them.
QG_HD int64_t qg_partition_span_size(const qg_partition *p, int64_t grid_y) {
    return qg_ceil_divide(p->groups, grid_y);
}

// The groups of CTA y, `size` to each.
QG_HD qg_span qg_partition_span_at(const qg_partition *p, int64_t size, int64_t y) {
    qg_span s;
    s.begin = y * size < p->groups ? y * size : p->groups;
    s.end = p->groups - s.begin < size ? p->groups : s.begin + size;
    return s;
}

// The groups of CTA y of grid_y: any grid_y >= 1 covers every group exactly once.
QG_HD qg_span qg_partition_span(const qg_partition *p, int64_t grid_y, int64_t y) {
    return qg_partition_span_at(p, qg_partition_span_size(p, grid_y), y);
}

// ------------------------------------------------------------------------------------------- lane

// The group of a thread in the tile whose first group is `first`; >= span.end: the thread is inert.
QG_HD int64_t qg_partition_group(const qg_partition *p, int64_t first, int thread) {
    return first + (thread >> p->lane_bits);
}

// The place of a thread among those of its group. Lane 0 is there for every group.
QG_HD int qg_partition_lane(const qg_partition *p, int thread) { return thread & (p->lanes - 1); }

// The columns of a thread at a step, in its group: empty where the group, or the row, is shorter.
QG_HD qg_span qg_partition_columns(const qg_partition *p, int64_t group, int thread, int64_t step) {
    int64_t within = (step * p->lanes + qg_partition_lane(p, thread)) * p->vector;
    int64_t group_begin = group * p->group;
    int64_t group_end = p->k - group_begin < p->group ? p->k : group_begin + p->group;
    qg_span s;
    s.begin = group_end - group_begin < within ? group_end : group_begin + within;
    s.end = group_end - s.begin < p->vector ? group_end : s.begin + p->vector;
    return s;
}

#endif
