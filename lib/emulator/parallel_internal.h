// How many threads an operation on a tensor gets: no more than it has work for.
#ifndef PARALLEL_INTERNAL_H
#define PARALLEL_INTERNAL_H

#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
#endif

// wanted: 0 means all. Results do not depend on it.
static inline int thread_count(int wanted, int64_t elements) {
    enum { ELEMENTS_PER_THREAD = 4096 };
#ifdef _OPENMP
    int64_t useful = 1 + elements / ELEMENTS_PER_THREAD;
    int available = wanted > 0 ? wanted : omp_get_max_threads();
    return useful < available ? (int)useful : available;
#else
    (void)wanted, (void)elements;
    return 1;
#endif
}

// Of the calling thread in its team.
static inline int thread_index(void) {
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

// Threads of that team.
static inline int thread_team(void) {
#ifdef _OPENMP
    return omp_get_num_threads();
#else
    return 1;
#endif
}

#endif
