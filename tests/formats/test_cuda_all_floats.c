// All 2^32 floats through NVIDIA's host conversions and ours, every conversion of cuda_oracle.h:
// prints the differences and the time of each, and fails on any difference.
// ctest-labels: exhaustive
// ctest-timeout: 7200
#ifdef QG_HAVE_CUDA_HEADERS
#include <cuda_oracle.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { CHUNKS = 4096 };

typedef int64_t chunk_function(uint32_t first, uint32_t *example);

// Differences among the 2^20 floats whose bits begin at `first`, and one of them. A function per
// conversion, so that the compiler sees its constants.
#define DEFINE_CHUNK(id, FORMAT_, MODE_, OVERFLOW_, shape, a, b)                                   \
    static int64_t id##_chunk(uint32_t first, uint32_t *example) {                                 \
        int64_t differences = 0;                                                                   \
        for (uint32_t i = 0; i < 1u << 20; i++) {                                                  \
            float x = qg_float_of_bits(first + i);                                                 \
            uint8_t theirs = (uint8_t)ORACLE_##shape(float, x, a, b);                              \
            uint8_t ours = oracle_ours(QG_FORMAT_##FORMAT_, QG_ROUND_##MODE_,                      \
                                       QG_OVERFLOW_##OVERFLOW_, (double)x);                        \
            if (ours != theirs) {                                                                  \
                differences++;                                                                     \
                *example = first + i;                                                              \
            }                                                                                      \
        }                                                                                          \
        return differences;                                                                        \
    }
ORACLE_ELEMENTS(DEFINE_CHUNK)
ORACLE_SCALES(DEFINE_CHUNK)

#define ROW(id, FORMAT_, MODE_, OVERFLOW_, shape, a, b) {#id, id##_chunk},
static const struct {
    const char *name;
    chunk_function *chunk;
} conversions[] = {ORACLE_ELEMENTS(ROW) ORACLE_SCALES(ROW)};

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t count_differences(chunk_function *chunk, uint32_t *example) {
    int64_t differences = 0;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) reduction(+ : differences)
#endif
    for (uint32_t i = 0; i < CHUNKS; i++) {
        uint32_t one;
        int64_t count = chunk(i << 20, &one);
        if (count) {
#ifdef _OPENMP
#pragma omp critical
#endif
            *example = one;
        }
        differences += count;
    }
    return differences;
}

int main(void) {
    int64_t total = 0;
    for (size_t i = 0; i < sizeof conversions / sizeof conversions[0]; i++) {
        uint32_t example = 0;
        double start = now();
        int64_t differences = count_differences(conversions[i].chunk, &example);
        printf("%-14s %" PRId64 " differences, %.1f s", conversions[i].name, differences,
               now() - start);
        if (differences)
            printf(", for one at %08" PRIx32, example);
        printf("\n");
        fflush(stdout);
        total += differences;
    }
    printf("%" PRId64 " differences in all\n", total);
    return total != 0;
}

#else

int main(void) { return 77; } // skipped

#endif
