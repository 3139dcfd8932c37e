// Coverage of a partition: how often its CTAs visit every group and every element of a row, counted
// by calling the functions that the kernels call. Rows do not enter them: one row stands for all.
#ifndef PARTITION_COVER_H
#define PARTITION_COVER_H

#include <qg_partition.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct partition_cover {
    int64_t covered_min, covered_max; // visits of a group or an element; counted up to 255
    int64_t inert;                    // threads of the row's CTAs that no element ever reaches
    int64_t violations;               // groups and elements not visited once; visits out of range
    bool first_is_group;              // of the first violation: what it is,
    int64_t first, first_count;       // where, and how often visited; out of range: -1 times
} partition_cover;

// Bytes of `counts` for partition_cover_count: p->groups + p->k. INT64_MAX if that overflows.
int64_t partition_cover_bytes(const qg_partition *p);

// Visits every CTA of grid_y, tile, thread and step.
partition_cover partition_cover_count(const qg_partition *p, int64_t grid_y, uint8_t *counts);

// Limits broken by the grid of m rows, all slabs looked at: a grid X outside 1 .. 2^31 - 1, a
// slab that does not begin at the row after the one before, rows left over or beyond m.
int64_t partition_broken_rows(int64_t m);
// 1 if Y is outside 1 .. 65535.
int64_t partition_broken_y(int64_t grid_y);

#endif
