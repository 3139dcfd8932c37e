// Products and sums of sizes at the edge of 63 bits, and allocation at the border.
#include <qg_memory.h>
#include <qg_size.h>
#include <run_suite.h>

#include <stdio.h>
#include <string.h>

typedef struct pair_case {
    int64_t a, b;
    bool fits;
    int64_t result;
} pair_case;

static const int64_t most = INT64_MAX;

START_TEST(multiply) {
    const pair_case cases[] = {
        {0,               0,            true,  0                  },
        {0,               most,         true,  0                  },
        {most,            0,            true,  0                  },
        {1,               most,         true,  most               },
        {most,            1,            true,  most               },
        {2,               most,         false, 0                  },
        {3037000499,      3037000499,   true,  9223372030926249001},
        {3037000500,      3037000500,   false, 0                  },
        {1ll << 31,       1ll << 31,    true,  1ll << 62          },
        {1ll << 32,       1ll << 31,    false, 0                  },
        {7,               most / 7,     true,  most               }, // 2^63 - 1 is a multiple of 7
        {7,               most / 7 + 1, false, 0                  },
        {(1ll << 31) + 1, 128,          true,  274877907072       },
        {-1,              1,            false, 0                  },
        {1,               -1,           false, 0                  },
        {0,               -1,           false, 0                  },
        {INT64_MIN,       -1,           false, 0                  },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t out = -77;
        ck_assert_int_eq(qg_size_multiply(cases[i].a, cases[i].b, &out), cases[i].fits);
        ck_assert_int_eq(out, cases[i].fits ? cases[i].result : -77);
    }
}
END_TEST

START_TEST(add) {
    const pair_case cases[] = {
        {0,        0,        true,  0       },
        {0,        most,     true,  most    },
        {most,     0,        true,  most    },
        {most,     1,        false, 0       },
        {1,        most,     false, 0       },
        {most / 2, most / 2, true,  most - 1},
        {most,     most,     false, 0       },
        {-1,       1,        false, 0       },
        {1,        -1,       false, 0       },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t out = -77;
        ck_assert_int_eq(qg_size_add(cases[i].a, cases[i].b, &out), cases[i].fits);
        ck_assert_int_eq(out, cases[i].fits ? cases[i].result : -77);
    }
}
END_TEST

START_TEST(allocation_is_aligned_and_zeroed) {
    for (int64_t count = 0; count < 200; count += 33) {
        void *room;
        ck_assert_int_eq(qg_allocate(&room, count, 3, "rows"), QG_OK);
        ck_assert_ptr_nonnull(room);
        ck_assert_uint_eq((uintptr_t)room % 64, 0);
        for (int64_t i = 0; i < 3 * count; i++)
            ck_assert_uint_eq(((unsigned char *)room)[i], 0);
        memset(room, 0xff, (size_t)(3 * count)); // so that the next one may get used memory
        qg_release(room);
    }
    qg_release(NULL);
}
END_TEST

START_TEST(impossible_allocations_are_refused) {
    static const int64_t bad[][2] = {
        {-1,        4 },
        {4,         -1},
        {1ll << 62, 4 },
        {INT64_MAX, 1 }
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        void *room = &room;
        ck_assert_int_eq(qg_allocate(&room, bad[i][0], bad[i][1], "scales"), QG_ERROR_OVERFLOW);
        ck_assert_ptr_null(room);
        ck_assert_ptr_nonnull(strstr(qg_detail(), "scales"));
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {multiply, add, allocation_is_aligned_and_zeroed,
                                  impossible_allocations_are_refused};
    return RUN_SUITE("size", tests);
}
