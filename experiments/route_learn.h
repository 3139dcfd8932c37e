// From measured times to the rows of a route: pure.
#ifndef ROUTE_LEARN_H
#define ROUTE_LEARN_H

#include <qg_kernel_choice.h>

// Both kernels' times at one shape.
typedef struct route_point {
    int64_t k, m;
    double median_s[QG_GROUP_KERNEL_COUNT], mad_s[QG_GROUP_KERNEL_COUNT];
    int64_t samples[QG_GROUP_KERNEL_COUNT];
} route_point;

// Writes at most `count` rows and returns how many: one at the first point of each k, and one wherever
// the kernel changes with m. points: ascending by k, then m, none twice.
//
// The kernel of a point is the faster one where the medians differ by more than both spreads (mad)
// together. Elsewhere it is that of the neighbour, so that noise makes no rows: of the next smaller m
// of the same k, else the next larger one; of a k without any difference, that of the k before at the
// same m, else the one with the smaller median.
size_t route_learn(const route_point *points, size_t count, qg_route_row *rows);

#endif
