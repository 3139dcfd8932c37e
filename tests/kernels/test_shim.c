// The shim that runs CUDA sources on the CPU (cuda_shim.h): it gives right kernels their results in
// every order, and finds each fault of wrong ones.
#include <require.h>
#include <run_suite.h>
#include <shim_control.h>
#include <shim_kernels.h>

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 128, WORDS = 65536 };

// Device memory that the CPU may read, of WORDS words each.
static uint32_t *out, *in;

static void setup(void) {
    const char *const variables[] = {"QG_SHIM_ARCH", "QG_SHIM_SMS", "QG_SHIM_DEVICES",
                                     "QG_SHIM_PROBE_ERROR"};
    for (int i = 0; i < 4; i++)
        unsetenv(variables[i]);
    qg_shim_reset();
    qg_shim_set_red_zones(0); // guards are for faults here
    ck_assert_int_eq(cudaMalloc((void **)&out, WORDS * sizeof *out), cudaSuccess);
    ck_assert_int_eq(cudaMalloc((void **)&in, WORDS * sizeof *in), cudaSuccess);
    for (uint32_t i = 0; i < WORDS; i++)
        in[i] = 1000 + i;
}

// A test ends without faults that it did not expect.
static void teardown(void) {
    REQUIRE(qg_shim_fault_count() == 0, "fault: %s", qg_shim_fault(0));
    ck_assert_int_eq(cudaFree(out), cudaSuccess);
    ck_assert_int_eq(cudaFree(in), cudaSuccess);
    REQUIRE(qg_shim_fault_count() == 0, "fault: %s", qg_shim_fault(0));
    ck_assert_uint_eq(qg_shim_memory_used(), 0);
    ck_assert_uint_eq(qg_shim_memory_blocks(), 0);
}

static struct shim_size line(uint32_t x) { return (struct shim_size){x, 1, 1}; }

static cudaError_t launch(enum shim_kernel kernel, uint32_t grid, uint32_t block, size_t shared) {
    return shim_launch(kernel, line(grid), line(block), shared, NULL, out, in);
}

static void succeed(enum shim_kernel kernel, uint32_t grid, uint32_t block, size_t shared) {
    cudaError_t error = launch(kernel, grid, block, shared);
    REQUIRE(error == cudaSuccess, "%s: %s", cudaGetErrorName(error), qg_shim_fault(0));
}

// The only fault has this text in it.
static void expect_fault(const char *text) {
    ck_assert_uint_eq(qg_shim_fault_count(), 1);
    REQUIRE(strstr(qg_shim_fault(0), text), "\"%s\" is not in \"%s\"", text, qg_shim_fault(0));
    qg_shim_clear_faults();
    ck_assert_ptr_null(qg_shim_fault(0));
}

static void fail_in_every_order(enum shim_kernel kernel, uint32_t block, size_t shared,
                                const char *text) {
    for (int order = 0; order < 12; order++) {
        qg_shim_set_order(order < 2 ? (enum qg_shim_order)order : QG_SHIM_SHUFFLED,
                          (uint64_t)order);
        ck_assert_int_eq(launch(kernel, 1, block, shared), cudaErrorLaunchFailure);
        expect_fault(text);
        ck_assert_int_eq(cudaGetLastError(), cudaSuccess); // the launch's value was it
        succeed(SHIM_KERNEL_rotate, 1, THREADS, 0);        // the shim goes on
    }
}

// ---- Orders and poison

static int rotated_right(uint32_t words, uint32_t by) {
    int right = 0;
    for (uint32_t i = 0; i < words; i++)
        right += out[i] == in[(i + by) % words];
    return right;
}

// The least and the most threads with a right result over many orders.
static void over_orders(enum shim_kernel kernel, uint32_t by, int *least, int *most) {
    *least = THREADS, *most = 0;
    for (int order = 0; order < 40; order++) {
        qg_shim_set_order(order < 2 ? (enum qg_shim_order)order : QG_SHIM_SHUFFLED,
                          (uint64_t)order);
        succeed(kernel, 1, THREADS, 0);
        int right = rotated_right(THREADS, by);
        *least = right < *least ? right : *least;
        *most = right > *most ? right : *most;
    }
}

START_TEST(orders_leave_right_kernels) {
    int least, most;
    over_orders(SHIM_KERNEL_rotate, 1, &least, &most);
    ck_assert_int_eq(least, THREADS);
    over_orders(SHIM_KERNEL_warp_waits, 32, &least, &most);
    ck_assert_int_eq(least, THREADS);
}
END_TEST

START_TEST(orders_show_missing_barriers) {
    int least, most;
    over_orders(SHIM_KERNEL_rotate_unguarded, 1, &least, &most);
    ck_assert_int_lt(least, 2);
    ck_assert_int_eq(most, THREADS - 1);
    qg_shim_set_order(QG_SHIM_ASCENDING, 0);
    succeed(SHIM_KERNEL_rotate_unguarded, 1, THREADS, 0);
    ck_assert_int_eq(rotated_right(THREADS, 1), 1);
    // A warp that runs on through its shuffles before the others have read.
    succeed(SHIM_KERNEL_warp_overtakes, 1, THREADS, 0);
    ck_assert_int_eq(rotated_right(THREADS, 32), THREADS - 32);
    over_orders(SHIM_KERNEL_warp_overtakes, 32, &least, &most);
    ck_assert_int_lt(least, THREADS);
}
END_TEST

START_TEST(seeds_repeat) {
    uint32_t first[THREADS];
    int differ = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        qg_shim_set_order(QG_SHIM_SHUFFLED, seed);
        succeed(SHIM_KERNEL_rotate_unguarded, 1, THREADS, 0);
        if (seed == 0)
            memcpy(first, out, sizeof first);
        differ += memcmp(first, out, sizeof first) != 0;
        memset(out, 0, sizeof first);
    }
    ck_assert_int_gt(differ, 5);
    qg_shim_set_order(QG_SHIM_SHUFFLED, 0);
    succeed(SHIM_KERNEL_rotate_unguarded, 1, THREADS, 0);
    ck_assert_mem_eq(first, out, sizeof first);
}
END_TEST

static float float_at(const uint32_t *word) {
    float v;
    memcpy(&v, word, sizeof v);
    return v;
}

START_TEST(poison_shows_unwritten_shared) {
    in[0] = 128;
    in[1] = in[2] = 127; // the last of 128 floats is not written
    succeed(SHIM_KERNEL_maximum, 3, THREADS, 0);
    ck_assert_float_eq(float_at(out + 1), 1); // a NaN hides
    qg_shim_set_poison(QG_SHIM_POISON_INF);
    succeed(SHIM_KERNEL_maximum, 3, THREADS, 0);
    ck_assert_float_eq(float_at(out), 1);
    ck_assert_float_infinite(float_at(out + 1));
    ck_assert_float_infinite(float_at(out + 2));
    qg_shim_set_poison(QG_SHIM_POISON_ZERO);
    succeed(SHIM_KERNEL_maximum, 3, THREADS, 0);
    ck_assert_float_eq(float_at(out + 2), 1);
    in[1] = in[2] = 128;
    qg_shim_set_poison(QG_SHIM_POISON_INF);
    succeed(SHIM_KERNEL_maximum, 3, THREADS, 0);
    ck_assert_float_eq(float_at(out + 2), 1);
}
END_TEST

START_TEST(poison_fills_device_memory) {
    uint32_t *fresh;
    for (int kind = QG_SHIM_POISON_NAN; kind <= QG_SHIM_POISON_ZERO; kind++) {
        qg_shim_set_poison((enum qg_shim_poison)kind);
        ck_assert_int_eq(cudaMalloc((void **)&fresh, 1003), cudaSuccess);
        ck_assert_uint_eq((uintptr_t)fresh % 256, 0);
        uint32_t expected = kind == QG_SHIM_POISON_NAN   ? 0xffffffff
                            : kind == QG_SHIM_POISON_INF ? 0x7f800000
                                                         : 0;
        for (int i = 0; i < 250; i++)
            REQUIRE(fresh[i] == expected, "word %d is %08x", i, fresh[i]);
        ck_assert_int_eq(cudaFree(fresh), cudaSuccess);
    }
}
END_TEST

// ---- Faults

START_TEST(divergent_barriers) {
    fail_in_every_order(SHIM_KERNEL_half_barrier, THREADS, 0,
                        "kernel half_barrier, CTA (0, 0, 0), thread (0, 0, 0): divergent barrier");
    fail_in_every_order(SHIM_KERNEL_half_barrier, 2, 0, "thread (1, 0, 0) has ended");
    fail_in_every_order(SHIM_KERNEL_two_barriers, THREADS, 0,
                        "but thread (64, 0, 0) waits at that");
}
END_TEST

START_TEST(lanes_that_do_not_come) {
    fail_in_every_order(SHIM_KERNEL_lane_ended, 32, 0,
                        "lane 0 waits at __shfl_xor_sync(0xffffffff)");
    fail_in_every_order(SHIM_KERNEL_lane_ended, 32, 0, "but lane 9 has ended");
    fail_in_every_order(SHIM_KERNEL_lane_ended, 8, 0, "but lane 8 does not exist");
    fail_in_every_order(SHIM_KERNEL_other_kind, 32, 0, "but lane 16 waits at __ballot_sync");
    fail_in_every_order(SHIM_KERNEL_other_mask, 32, 0,
                        "but lane 16 waits at __shfl_xor_sync(0xffff8000)");
}
END_TEST

// The shuffle and the barrier wait for each other: both are told.
START_TEST(barrier_against_shuffle) {
    ck_assert_int_eq(launch(SHIM_KERNEL_barrier_or_shuffle, 1, 32, 0), cudaErrorLaunchFailure);
    ck_assert_uint_eq(qg_shim_fault_count(), 2);
    ck_assert_ptr_nonnull(strstr(qg_shim_fault(0), "but lane 5 waits at __syncthreads"));
    ck_assert_ptr_nonnull(strstr(qg_shim_fault(1), "thread (5, 0, 0): divergent barrier"));
    qg_shim_clear_faults();
}
END_TEST

START_TEST(wrong_masks) {
    fail_in_every_order(SHIM_KERNEL_not_in_mask, 32, 0, "thread (3, 0, 0): __shfl_sync of line ");
    fail_in_every_order(SHIM_KERNEL_not_in_mask, 32, 0, "lane 3 is not in its mask 0xfffffff7");
    fail_in_every_order(SHIM_KERNEL_odd_width, 32, 0, "width 12");
    ck_assert_int_eq(launch(SHIM_KERNEL_outside_mask, 1, 32, 0), cudaErrorLaunchFailure);
    ck_assert_uint_eq(qg_shim_fault_count(), 16);
    ck_assert_ptr_nonnull(strstr(qg_shim_fault(15), "thread (15, 0, 0): __shfl_xor_sync of line "));
    ck_assert_ptr_nonnull(strstr(qg_shim_fault(15), "reads lane 31, which is not in the mask"));
    qg_shim_clear_faults();
}
END_TEST

START_TEST(shared_guards) {
    in[0] = 1000;
    fail_in_every_order(SHIM_KERNEL_past_dynamic, THREADS, 1000,
                        "CTA (0, 0, 0): byte 1000 of bytes was written, which has 1000 bytes");
    succeed(SHIM_KERNEL_past_dynamic, 1, THREADS, 1001);
    in[0] = 5;
    fail_in_every_order(SHIM_KERNEL_past_static, THREADS, 0,
                        "byte 20 of small was written, which has 20 bytes");
    in[0] = 4;
    succeed(SHIM_KERNEL_past_static, 1, THREADS, 0);
    fail_in_every_order(SHIM_KERNEL_much_static, 1, 0, "64000 bytes of shared arrays with second");
}
END_TEST

START_TEST(device_guards) {
    in[0] = WORDS;
    fail_in_every_order(SHIM_KERNEL_write_at, 1, 0,
                        "kernel write_at: byte 262144 of device memory was written");
    in[0] = (uint32_t)-1;
    fail_in_every_order(SHIM_KERNEL_write_at, 1, 0, "byte -4 of device memory was written");
    in[0] = WORDS - 1;
    succeed(SHIM_KERNEL_write_at, 1, 1, 0);
    uint8_t *bytes;
    ck_assert_int_eq(cudaMalloc((void **)&bytes, 13), cudaSuccess);
    bytes[13] = 1;
    ck_assert_int_eq(cudaFree(bytes), cudaSuccess);
    expect_fault("cudaFree: byte 13 of device memory was written, which has 13 bytes");
}
END_TEST

START_TEST(fault_texts_end) {
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(launch(SHIM_KERNEL_half_barrier, 1, 2, 0), cudaErrorLaunchFailure);
    ck_assert_uint_eq(qg_shim_fault_count(), 300);
    ck_assert_ptr_nonnull(qg_shim_fault(255));
    ck_assert_ptr_null(qg_shim_fault(256));
    qg_shim_clear_faults();
}
END_TEST

// A fault ends the launch: later CTAs do not run.
START_TEST(fault_ends_launch) {
    ck_assert_int_eq(launch(SHIM_KERNEL_half_barrier, 100, 64, 0), cudaErrorLaunchFailure);
    expect_fault("CTA (0, 0, 0)");
    ck_assert_uint_eq(qg_shim_get_counts().ctas, 1);
}
END_TEST

// ---- Launches

static void refused(struct shim_size grid, struct shim_size block, size_t shared,
                    cudaError_t expected) {
    cudaError_t error = shim_launch(SHIM_KERNEL_mark, grid, block, shared, NULL, out, in);
    ck_assert_int_eq(error, expected);
    expect_fault("kernel mark: launch of grid");
}

START_TEST(launch_limits) {
    struct shim_size one = line(1);
    const struct shim_size bad_grids[] = {
        {0,           1,     1    },
        {1,           0,     1    },
        {1,           1,     0    },
        {1,           65536, 1    },
        {1,           1,     65536},
        {0x80000000u, 1,     1    }
    };
    const struct shim_size bad_blocks[] = {
        {0,     1,     1 },
        {1,     0,     1 },
        {1,     1,     0 },
        {1025,  1,     1 },
        {1,     1025,  1 },
        {1,     1,     65},
        {32,    33,    1 },
        {65536, 65536, 1 }
    };
    for (size_t i = 0; i < sizeof bad_grids / sizeof *bad_grids; i++)
        refused(bad_grids[i], one, 0, cudaErrorInvalidConfiguration);
    for (size_t i = 0; i < sizeof bad_blocks / sizeof *bad_blocks; i++)
        refused(one, bad_blocks[i], 0, cudaErrorInvalidConfiguration);
    refused(one, one, (227 << 10) + 1, cudaErrorInvalidConfiguration);
    refused(one, one, (48 << 10) + 1, cudaErrorInvalidValue);
    ck_assert_uint_eq(qg_shim_get_counts().launches, 0);
    ck_assert_int_eq(shim_allow_shared(SHIM_KERNEL_past_dynamic, 227 << 10), cudaSuccess);
    ck_assert_int_ne(shim_allow_shared(SHIM_KERNEL_past_dynamic, (227 << 10) + 1), cudaSuccess);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidValue);
    in[0] = (227 << 10) - 1;
    succeed(SHIM_KERNEL_past_dynamic, 1, 1024, 227 << 10);
    succeed(SHIM_KERNEL_rotate, 1, 1024, 0);
    ck_assert_int_eq(rotated_right(1024, 1), 1024);
}
END_TEST

START_TEST(chosen_ctas) {
    uint32_t *huge;
    const uint32_t most = 0x7fffffff;
    const struct qg_shim_cta list[] = {
        {most - 1, 0, 0},
        {12345,    0, 0},
        {0,        0, 0},
        {7,        1, 0},
        {most,     0, 0}
    };
    ck_assert_int_eq(cudaMalloc((void **)&huge, (size_t)most * 4), cudaSuccess);
    qg_shim_choose_list(list, 5);
    ck_assert_int_eq(shim_launch(SHIM_KERNEL_mark, line(most), line(THREADS), 0, NULL, huge, in),
                     cudaSuccess);
    ck_assert_uint_eq(qg_shim_get_counts().ctas, 3);
    ck_assert_uint_eq(huge[0] + huge[12345] + huge[most - 1], 3);
    qg_shim_choose_range((struct qg_shim_cta){most - 3, 0, 0},
                         (struct qg_shim_cta){UINT32_MAX, 0, 0});
    for (int order = QG_SHIM_ASCENDING; order <= QG_SHIM_SHUFFLED; order++) {
        qg_shim_set_order((enum qg_shim_order)order, 3);
        ck_assert_int_eq(
            shim_launch(SHIM_KERNEL_mark, line(most), line(THREADS), 0, NULL, huge, in),
            cudaSuccess);
    }
    ck_assert_uint_eq(huge[most - 4], 0);
    ck_assert_uint_eq(huge[most - 3] + huge[most - 2] + huge[most - 1], 10);
    qg_shim_choose_list(NULL, 0);
    succeed(SHIM_KERNEL_mark, most, THREADS, 0);
    ck_assert_uint_eq(qg_shim_get_counts().ctas, 12);
    ck_assert_int_eq(cudaFree(huge), cudaSuccess);
}
END_TEST

START_TEST(grids_in_three_dimensions) {
    const struct shim_size grid = {3, 4, 2}, block = {5, 3, 7};
    for (int order = QG_SHIM_ASCENDING; order <= QG_SHIM_SHUFFLED; order++) {
        qg_shim_set_order((enum qg_shim_order)order, 5);
        memset(out, 0, WORDS * sizeof *out);
        ck_assert_int_eq(shim_launch(SHIM_KERNEL_indices, grid, block, 0, NULL, out, in),
                         cudaSuccess);
        for (uint32_t i = 0; i < 24 * 105; i++) {
            uint32_t cta = i / 105, t = i % 105;
            uint32_t expected = cta % 3 + 10 * (cta / 3 % 4) + 100 * (cta / 12) + 1000 * (t % 5) +
                                10000 * (t / 5 % 3) + 100000 * (t / 15);
            REQUIRE(out[i] == expected, "thread %u: %u, not %u", i, out[i], expected);
        }
    }
    struct qg_shim_counts counts = qg_shim_get_counts();
    ck_assert_uint_eq(counts.launches, 3);
    ck_assert_uint_eq(counts.ctas, 72);
    ck_assert_uint_eq(counts.turns, 72 * 105);
    ck_assert_uint_eq(counts.barriers, 0);
    memset(out, 0, WORDS * sizeof *out);
    qg_shim_choose_range((struct qg_shim_cta){1, 2, 1}, (struct qg_shim_cta){1, 3, 1});
    ck_assert_int_eq(shim_launch(SHIM_KERNEL_indices, grid, block, 0, NULL, out, in), cudaSuccess);
    ck_assert_uint_eq(qg_shim_get_counts().ctas, 74);
    ck_assert_uint_eq(out[19 * 105], 121);
    ck_assert_uint_eq(out[18 * 105] + out[20 * 105], 0);
}
END_TEST

START_TEST(arguments_are_copies) {
    succeed(SHIM_KERNEL_copies, 1, THREADS, 0);
    for (uint32_t t = 0; t < THREADS; t++) {
        REQUIRE(out[t] == 44, "thread %u: %u", t, out[t]);
        REQUIRE(out[THREADS + t] == t, "thread %u: %u", t, out[THREADS + t]);
    }
}
END_TEST

START_TEST(counts_stops) {
    in[0] = 50;
    succeed(SHIM_KERNEL_many, 2, 64, 0);
    struct qg_shim_counts counts = qg_shim_get_counts();
    ck_assert_uint_eq(counts.barriers, 2 * 50);
    ck_assert_uint_eq(counts.warp_stops, 2 * 2 * 50);
    ck_assert_uint_eq(counts.turns, 2 * 64 * (1 + 100));
    qg_shim_clear_counts();
    ck_assert_uint_eq(qg_shim_get_counts().turns, 0);
}
END_TEST

static void *launch_from_thread(void *argument) {
    uint32_t *own = out + *(int *)argument * THREADS;
    int right = 0;
    for (int i = 0; i < 100; i++)
        right += shim_launch(SHIM_KERNEL_rotate, line(1), line(THREADS), 0, NULL, own, in) == 0;
    *(int *)argument = right;
    return NULL;
}

START_TEST(threads_launch_in_turn) {
    pthread_t threads[4];
    int arguments[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, launch_from_thread, &arguments[i]), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_int_eq(arguments[i], 100);
        ck_assert_mem_eq(out + (size_t)i * THREADS, in + 1, (THREADS - 1) * sizeof *out);
    }
    ck_assert_uint_eq(qg_shim_get_counts().launches, 400);
}
END_TEST

START_TEST(stacks_hold) {
    succeed(SHIM_KERNEL_deep, 2, 1024, 0);
    for (int t = 0; t < 1024; t++)
        REQUIRE(out[t] == 16, "thread %d: %u", t, out[t]);
}
END_TEST

// ---- Device functions

// What the PTX manual says that shfl reads, by its clamp and segment mask.
static uint32_t source_of(int kind, uint32_t lane, uint32_t b, uint32_t width) {
    uint32_t segment = (32 - width) & 31, clamp = kind == 1 ? 0 : 31;
    int32_t last = (int32_t)((lane & segment) | (clamp & ~segment));
    int32_t at = (int32_t)lane, operand = (int32_t)(b & 31), from;
    switch (kind) {
    case 0: return (lane & segment) | (b & 31 & ~segment);
    case 1: from = at - operand; return (uint32_t)(from >= last ? from : at);
    case 2: from = at + operand; break;
    default: from = at ^ operand; break;
    }
    return (uint32_t)(from <= last ? from : at);
}

START_TEST(shuffles_equal_the_model) {
    for (int order = QG_SHIM_ASCENDING; order <= QG_SHIM_SHUFFLED; order++) {
        qg_shim_set_order((enum qg_shim_order)order, 11);
        succeed(SHIM_KERNEL_shuffles, 1, 32, 0);
        const uint32_t *word = out;
        for (uint32_t width = 1; width <= 32; width *= 2)
            for (uint32_t b = 0; b < 40; b++)
                for (int kind = 0; kind < 4; kind++)
                    for (uint32_t lane = 0; lane < 32; lane++, word++)
                        REQUIRE(*word == 100 + source_of(kind, lane, b, width),
                                "kind %d, width %u, operand %u, lane %u: %u", kind, width, b, lane,
                                *word - 100);
    }
}
END_TEST

START_TEST(shuffles_of_other_types) {
    succeed(SHIM_KERNEL_floats, 1, 32, 0);
    for (uint32_t t = 0; t < 32; t++) {
        uint32_t next = (t + 1) % 32;
        ck_assert_float_eq(float_at(out + 4 * t), -0.5f * (float)next);
        ck_assert_uint_eq(out[4 * t + 1], 0 - next);
        ck_assert_uint_eq(out[4 * t + 2], 3 * next);
        ck_assert_uint_eq(out[4 * t + 3], next);
    }
    succeed(SHIM_KERNEL_half_warps, 1, 64, 0);
    for (uint32_t t = 0; t < 64; t++)
        ck_assert_uint_eq(out[t], t % 32 < 16 ? 4 * (t / 4 * 4) + 6 : 2 * (t / 2 * 2) + 1);
}
END_TEST

// The votes of the lanes of a mask, from their values.
static void vote(uint32_t *expected, uint32_t mask, const uint32_t *values) {
    const uint32_t start[10] = {0, 0, 1, 0, UINT32_MAX, 0, UINT32_MAX, 0, 0, 0};
    memcpy(expected, start, sizeof start);
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t v = values[lane];
        if (!(mask >> lane & 1))
            continue;
        expected[0] |= (uint32_t)((v & 2) != 0) << lane;
        expected[1] |= v == mask;
        expected[2] &= v != mask;
        expected[3] += v;
        expected[4] = v < expected[4] ? v : expected[4];
        expected[5] = v > expected[5] ? v : expected[5];
        expected[6] &= v;
        expected[7] |= v;
        expected[8] ^= v;
    }
}

START_TEST(votes_equal_the_model) {
    const uint32_t masks[] = {0xffffffff, 0x0000ffff, 0x80000001, 0x00000010, 0x5a5a1234};
    srand(1);
    for (int trial = 0; trial < 200; trial++) {
        uint32_t mask = masks[trial % 5], expected[10];
        in[0] = mask;
        for (int i = 1; i <= 32; i++)
            in[i] = trial % 3 == 0 ? mask : (uint32_t)rand() * 5u;
        qg_shim_set_order((enum qg_shim_order)(trial % 3), (uint64_t)trial);
        succeed(SHIM_KERNEL_votes, 1, 32, 0);
        vote(expected, mask, in + 1);
        for (uint32_t lane = 0; lane < 32; lane++)
            for (int i = 0; i < 9 && (mask >> lane & 1); i++)
                REQUIRE(out[10 * lane + (uint32_t)i] == expected[i],
                        "mask %08x, lane %u, vote %d: %u, not %u", mask, lane, i,
                        out[10 * lane + (uint32_t)i], expected[i]);
    }
}
END_TEST

START_TEST(atomics_count_all_threads) {
    memset(out, 0, 8 * sizeof *out);
    out[2] = 0x80000000;
    succeed(SHIM_KERNEL_atomics, 5, 100, 0);
    ck_assert_uint_eq(out[0], 5 * 4950);
    ck_assert_uint_eq(out[1], 99);
    ck_assert_int_eq((int32_t)out[2], -5);
    ck_assert_uint_eq(out[3], 0xffffffff);
    ck_assert_uint_eq(out[4], 5 * 4950);
    ck_assert_uint_eq(out[5], 500);
    ck_assert_float_eq(float_at(out + 6), 250);
    ck_assert_uint_eq(out[7], 100);
}
END_TEST

START_TEST(intrinsics_round_once) {
    float a = 1 + FLT_EPSILON, b = 1 - FLT_EPSILON / 2;
    memcpy(&in[0], &a, sizeof a);
    memcpy(&in[1], &b, sizeof b);
    succeed(SHIM_KERNEL_intrinsics, 1, 1, 0);
    ck_assert_float_eq(float_at(out), fmaf(a, b, -1));
    ck_assert_float_eq(float_at(out + 1), 0);
    ck_assert_float_eq(float_at(out + 2), 1 + 2 * FLT_EPSILON);
    ck_assert_uint_eq(out[3], 2);
    ck_assert_uint_eq(out[4], 1);
    ck_assert_uint_eq(out[5], 32);
    ck_assert_uint_eq(out[6], 0xff830704 & out[6]);
    ck_assert_uint_eq(out[7], (uint32_t)((uint64_t)in[0] * in[1] >> 32));
    ck_assert_uint_eq(out[8], in[1]);
    ck_assert_uint_eq(out[9], 0x88112233);
}
END_TEST

START_TEST(shared_arrays_are_distinct_and_aligned) {
    succeed(SHIM_KERNEL_many_arrays, 2, THREADS, 33);
    ck_assert_uint_eq(out[0], 0);
    for (uint32_t t = 0; t < THREADS; t++) {
        ck_assert_mem_eq(out, out + (size_t)4 * t, 16);
        ck_assert_uint_ge(out[1], 33);
        ck_assert_uint_ge(out[2], out[1] + 7);
        ck_assert_uint_eq(out[2] % 16, 0);
        ck_assert_uint_ge(out[3], out[2] + 48);
    }
}
END_TEST

// ---- The runtime

START_TEST(memory_and_copies) {
    uint32_t host[4] = {1, 2, 3, 4}, back[4] = {0};
    ck_assert_int_eq(cudaMemcpy(out, host, 16, cudaMemcpyHostToDevice), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(out + 4, out, 16, cudaMemcpyDeviceToDevice), cudaSuccess);
    ck_assert_int_eq(cudaMemset(out, 0x11, 4), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(back, out + 3, 16, cudaMemcpyDeviceToHost), cudaSuccess);
    ck_assert(back[0] == 4 && back[1] == 1 && back[3] == 3 && out[0] == 0x11111111);
    ck_assert_int_eq(cudaMemcpy(out, host, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpy(out + WORDS - 3, host, 16, cudaMemcpyHostToDevice),
                     cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemset(host, 0, 4), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemset(out + WORDS - 1, 0, 5), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFree(out + 1), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFree(NULL), cudaSuccess);
    ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
    void *more;
    qg_shim_set_memory_limit(qg_shim_memory_used() + 100);
    ck_assert_int_eq(cudaMalloc(&more, 101), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(more);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaMalloc(&more, 100), cudaSuccess);
    ck_assert_int_eq(cudaFree(more), cudaSuccess);
}
END_TEST

// As under nvcc, where a launch is followed by cudaGetLastError.
START_TEST(launches_tell_earlier_errors) {
    ck_assert_int_eq(cudaMemset(out + WORDS, 0, 1), cudaErrorInvalidValue);
    ck_assert_int_eq(launch(SHIM_KERNEL_rotate, 1, 32, 0), cudaErrorInvalidValue);
    ck_assert_int_eq(launch(SHIM_KERNEL_rotate, 1, 32, 0), cudaSuccess);
}
END_TEST

START_TEST(device_of_environment_and_calls) {
    int count, value;
    struct cudaDeviceProp properties;
    ck_assert_int_eq(cudaGetDeviceCount(&count), cudaSuccess);
    ck_assert_int_eq(count, 1);
    setenv("QG_SHIM_ARCH", "103", 1);
    setenv("QG_SHIM_SMS", "148", 1);
    setenv("QG_SHIM_DEVICES", "2", 1);
    ck_assert_int_eq(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
    ck_assert(properties.major == 10 && properties.minor == 3);
    ck_assert_int_eq(properties.multiProcessorCount, 148);
    ck_assert_int_eq(cudaGetDeviceProperties(&properties, 2), cudaErrorInvalidDevice);
    qg_shim_set_arch(120);
    ck_assert_int_eq(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0),
                     cudaSuccess);
    ck_assert_int_eq(value, 12);
    setenv("QG_SHIM_DEVICES", "0", 1);
    ck_assert_int_eq(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    ck_assert_int_eq(count, 0);
    setenv("QG_SHIM_PROBE_ERROR", "34", 1);
    ck_assert_int_eq(cudaGetDeviceCount(&count), cudaErrorStubLibrary);
    qg_shim_set_probe_error(cudaErrorInsufficientDriver);
    ck_assert_int_eq(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorInsufficientDriver);
    ck_assert_int_eq(launch(SHIM_KERNEL_rotate, 1, 32, 0), cudaErrorInsufficientDriver);
    ck_assert_str_eq(cudaGetErrorName(cudaErrorStubLibrary), "cudaErrorStubLibrary");
    qg_shim_set_probe_error(0);
    qg_shim_set_devices(1);
    qg_shim_set_launch_error(cudaErrorNoKernelImageForDevice);
    ck_assert_int_eq(launch(SHIM_KERNEL_rotate, 1, 32, 0), cudaErrorNoKernelImageForDevice);
    qg_shim_set_launch_error(0);
    succeed(SHIM_KERNEL_rotate, 1, 32, 0);
}
END_TEST

// Records into the stream: two additions with a copy between them, after a memset.
static cudaGraph_t capture(cudaStream_t stream) {
    cudaGraph_t graph;
    struct shim_size one = line(1), block = line(THREADS);
    size_t bytes = THREADS * sizeof *out;
    ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    cudaMemsetAsync(out, 0, bytes, stream);
    shim_launch(SHIM_KERNEL_add, one, block, 0, stream, out, in);
    cudaMemcpyAsync(out + THREADS, out, bytes, cudaMemcpyDeviceToDevice, stream);
    shim_launch(SHIM_KERNEL_add, one, block, 0, stream, out, in);
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    return graph;
}

START_TEST(graphs_replay) {
    cudaStream_t stream;
    cudaGraphExec_t exec;
    out[0] = 77;
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    cudaGraph_t graph = capture(stream);
    ck_assert_uint_eq(out[0], 77); // nothing has run
    ck_assert_uint_eq(qg_shim_get_counts().launches, 0);
    ck_assert_int_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
    for (uint32_t again = 0; again < 3; again++) {
        in[5] = 10 * again;
        ck_assert_int_eq(cudaGraphLaunch(exec, stream), cudaSuccess);
        ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
        ck_assert_uint_eq(out[5], 20 * again);
        ck_assert_uint_eq(out[THREADS + 5], 10 * again);
    }
    ck_assert_uint_eq(qg_shim_get_counts().launches, 6);
    ck_assert_int_eq(cudaGraphExecDestroy(exec), cudaSuccess);
    ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
}
END_TEST

// A launch that is recorded fails when it runs, and its limits are checked when it is given.
START_TEST(graphs_tell_faults) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ck_assert_int_eq(cudaStreamCreate(&stream), cudaSuccess);
    ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    ck_assert_int_eq(shim_launch(SHIM_KERNEL_half_barrier, line(1), line(64), 0, stream, out, in),
                     cudaSuccess);
    ck_assert_int_eq(shim_launch(SHIM_KERNEL_add, line(0), line(64), 0, stream, out, in),
                     cudaErrorInvalidConfiguration);
    qg_shim_clear_faults();
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    ck_assert_int_eq(cudaGraphLaunch(exec, stream), cudaErrorLaunchFailure);
    expect_fault("divergent barrier");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}
END_TEST

START_TEST(captures_forbid_waiting) {
    cudaStream_t stream;
    cudaGraph_t graph;
    void *memory;
    ck_assert_int_eq(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
                     cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq(cudaStreamCreate(&stream), cudaSuccess);
    for (int call = 0; call < 3; call++) {
        ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                         cudaSuccess);
        cudaError_t error = call == 0   ? cudaStreamSynchronize(stream)
                            : call == 1 ? cudaMalloc(&memory, 4)
                                        : cudaMemset(out, 0, 4);
        ck_assert_int_eq(error, cudaErrorStreamCaptureUnsupported);
        ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
        ck_assert_ptr_null(graph);
    }
    ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    ck_assert_int_eq(cudaMalloc(&memory, 4), cudaSuccess);
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
    ck_assert_int_eq(cudaFree(memory), cudaSuccess);
    ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
}
END_TEST

START_TEST(events_measure) {
    cudaEvent_t from, to;
    float milliseconds = -1;
    ck_assert_int_eq(cudaEventCreate(&from), cudaSuccess);
    ck_assert_int_eq(cudaEventCreate(&to), cudaSuccess);
    ck_assert_int_ne(cudaEventElapsedTime(&milliseconds, from, to), cudaSuccess);
    ck_assert_int_ne(cudaGetLastError(), cudaSuccess);
    ck_assert_int_eq(cudaEventRecord(from, NULL), cudaSuccess);
    succeed(SHIM_KERNEL_rotate, 100, THREADS, 0);
    ck_assert_int_eq(cudaEventRecord(to, NULL), cudaSuccess);
    ck_assert_int_eq(cudaEventSynchronize(to), cudaSuccess);
    ck_assert_int_eq(cudaEventElapsedTime(&milliseconds, from, to), cudaSuccess);
    ck_assert_float_gt(milliseconds, 0);
    ck_assert_int_eq(cudaEventDestroy(from), cudaSuccess);
    ck_assert_int_eq(cudaEventDestroy(to), cudaSuccess);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        // clang-format off
        orders_leave_right_kernels, orders_show_missing_barriers, seeds_repeat,
        poison_shows_unwritten_shared, poison_fills_device_memory, divergent_barriers,
        lanes_that_do_not_come, barrier_against_shuffle, wrong_masks, shared_guards, device_guards,
        fault_texts_end, fault_ends_launch, launch_limits, chosen_ctas, grids_in_three_dimensions,
        arguments_are_copies, counts_stops, threads_launch_in_turn, stacks_hold,
        shuffles_equal_the_model, shuffles_of_other_types, votes_equal_the_model,
        atomics_count_all_threads, intrinsics_round_once, shared_arrays_are_distinct_and_aligned,
        memory_and_copies, launches_tell_earlier_errors, device_of_environment_and_calls,
        graphs_replay, graphs_tell_faults, captures_forbid_waiting, events_measure,
        // clang-format on
    };
    Suite *suite = suite_create("shim");
    TCase *tcase = tcase_create("shim");
    tcase_set_timeout(tcase, 0);
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
