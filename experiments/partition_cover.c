// Counts what a partition covers. See partition_cover.h.
//
// Nothing is derived: a kernel's loops are walked, CTA by CTA and thread by thread, and what they
// would touch is counted. Indices are not trusted either.
#include <partition_cover.h>

#include <qg_size.h>

#include <limits.h>
#include <string.h>

typedef struct counter {
    uint8_t *counts;
    int64_t size;
    bool is_group;
} counter;

int64_t partition_cover_bytes(const qg_partition *p) {
    int64_t bytes;
    return qg_size_add(p->groups, p->k, &bytes) ? bytes : INT64_MAX;
}

static void violate(partition_cover *cover, bool is_group, int64_t at, int64_t count) {
    if (cover->violations++ == 0) {
        cover->first_is_group = is_group;
        cover->first = at;
        cover->first_count = count;
    }
}

// Returns whether there is anything between begin and end.
static bool visit(const counter *c, qg_span s, partition_cover *cover) {
    for (int64_t i = s.begin; i < s.end; i++) {
        if (i < 0 || i >= c->size)
            violate(cover, c->is_group, i, -1);
        else if (c->counts[i] < UINT8_MAX)
            c->counts[i]++;
    }
    return s.begin < s.end;
}

// One tile of a CTA: a thread has the elements of its group, step by step.
static void walk_tile(const qg_partition *p, int64_t first, int64_t end, const counter *elements,
                      bool live[QG_CTA_THREADS], partition_cover *cover) {
    for (int thread = 0; thread < QG_CTA_THREADS; thread++) {
        int64_t group = qg_partition_group(p, first, thread);
        if (group >= end)
            continue;
        for (int64_t step = 0; step < p->steps; step++)
            live[thread] |= visit(elements, qg_partition_columns(p, group, thread, step), cover);
    }
}

static void walk_cta(const qg_partition *p, qg_span span, const counter *elements,
                     partition_cover *cover) {
    bool live[QG_CTA_THREADS] = {false};
    for (int64_t first = span.begin; first < span.end; first += p->held)
        walk_tile(p, first, span.end, elements, live, cover);
    for (int thread = 0; thread < QG_CTA_THREADS; thread++)
        cover->inert += !live[thread];
}

static void judge(const counter *c, partition_cover *cover) {
    for (int64_t i = 0; i < c->size; i++) {
        int64_t count = c->counts[i];
        if (count != 1)
            violate(cover, c->is_group, i, count);
        cover->covered_min = count < cover->covered_min ? count : cover->covered_min;
        cover->covered_max = count > cover->covered_max ? count : cover->covered_max;
    }
}

partition_cover partition_cover_count(const qg_partition *p, int64_t grid_y, uint8_t *counts) {
    partition_cover cover = {.covered_min = INT64_MAX};
    counter groups = {counts, p->groups, true}, elements = {counts + p->groups, p->k, false};
    memset(counts, 0, (size_t)(p->groups + p->k));
    for (int64_t y = 0; y < grid_y; y++) {
        qg_span span = qg_partition_span(p, grid_y, y);
        visit(&groups, span, &cover);
        walk_cta(p, span, &elements, &cover);
    }
    judge(&groups, &cover);
    judge(&elements, &cover);
    return cover;
}

int64_t partition_broken_y(int64_t grid_y) { return grid_y < 1 || grid_y > QG_GRID_Y_MOST; }

int64_t partition_broken_rows(int64_t m) {
    int64_t slabs = qg_partition_slabs(m), next = 0, broken = 0;
    for (int64_t slab = 0; slab < slabs; slab++) {
        int64_t x = qg_partition_grid_x(m, slab);
        broken += x < 1 || x > QG_GRID_X_MOST;
        broken += qg_partition_row(slab, 0) != next;
        next = qg_partition_row(slab, x - 1) + 1;
    }
    return broken + (next != m);
}
