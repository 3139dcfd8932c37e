// The monotonic clock in seconds.
#ifndef QG_CLOCK_H
#define QG_CLOCK_H

#include <time.h>

static inline double qg_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
