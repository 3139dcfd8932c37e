// Packed FP4 and FP6 under guard bytes, for odd counts and every position.
#include <qg_pack.h>
#include <run_suite.h>

#include <string.h>

enum { MOST = 70, GUARD = 16, POISON = 0xA5 };

typedef void pack_function(const uint8_t *, int64_t, uint8_t *);

// Element i of the packed bytes, from the definition: bits `width` * i of a little-endian string.
static unsigned element(const uint8_t *packed, int width, int64_t i) {
    unsigned value = 0;
    for (int bit = 0; bit < width; bit++) {
        int64_t at = width * i + bit;
        value |= (unsigned)(packed[at / 8] >> at % 8 & 1) << bit;
    }
    return value;
}

static void check_guard(const uint8_t *bytes, const char *where) {
    for (int i = 0; i < GUARD; i++)
        ck_assert_msg(bytes[i] == POISON, "guard %s overwritten", where);
}

static void check_count(int width, int64_t count, pack_function *pack, pack_function *unpack) {
    uint8_t codes[MOST], room[GUARD + MOST + GUARD], back[GUARD + MOST + GUARD];
    uint8_t *packed = room + GUARD, *unpacked = back + GUARD;
    uint8_t mask = (uint8_t)((1 << width) - 1);
    for (int64_t i = 0; i < MOST; i++)
        codes[i] = (uint8_t)(0xC0 | (i * 37 + 11)); // bits above the code must be dropped
    memset(room, POISON, sizeof room);
    memset(back, POISON, sizeof back);
    int64_t bytes = qg_packed_bytes(width, count);
    pack(codes, count, packed);
    check_guard(room, "before packed");
    check_guard(packed + bytes, "after packed");
    for (int64_t i = 0; i < 8 * bytes / width; i++)
        ck_assert_uint_eq(element(packed, width, i), i < count ? codes[i] & mask : 0);
    unpack(packed, count, unpacked);
    check_guard(back, "before codes");
    check_guard(unpacked + count, "after codes");
    for (int64_t i = 0; i < count; i++)
        ck_assert_uint_eq(unpacked[i], codes[i] & mask);
}

START_TEST(counts_and_guards) {
    for (int64_t count = 0; count <= MOST - 4; count++) {
        check_count(4, count, qg_pack4, qg_unpack4);
        check_count(6, count, qg_pack6, qg_unpack6);
    }
}
END_TEST

START_TEST(bytes_needed) {
    static const int64_t want[][3] = {
        {0,               0,               0         },
        {1,               1,               3         },
        {2,               1,               3         },
        {3,               2,               3         },
        {4,               2,               3         },
        {5,               3,               6         },
        {8,               4,               6         },
        {9,               5,               9         },
        {(1ll << 31) + 1, (1ll << 30) + 1, 1610612739}
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        ck_assert_int_eq(qg_packed_bytes(4, want[i][0]), want[i][1]);
        ck_assert_int_eq(qg_packed_bytes(6, want[i][0]), want[i][2]);
        ck_assert_int_eq(qg_packed_bytes(8, want[i][0]), want[i][0]);
        ck_assert_int_eq(qg_packed_bytes(16, want[i][0]), 2 * want[i][0]);
        ck_assert_int_eq(qg_packed_bytes(32, want[i][0]), 4 * want[i][0]);
        ck_assert_int_eq(qg_packed_bytes(64, want[i][0]), 8 * want[i][0]);
    }
}
END_TEST

START_TEST(documented_order) {
    const uint8_t codes[] = {0x1, 0x2, 0x3};
    uint8_t packed[3];
    qg_pack4(codes, 3, packed);
    ck_assert_uint_eq(packed[0], 0x21);
    ck_assert_uint_eq(packed[1], 0x03);
    const uint8_t six[] = {0x3F, 0x00, 0x3F, 0x01};
    qg_pack6(six, 4, packed);
    ck_assert_uint_eq(packed[0], 0x3F);
    ck_assert_uint_eq(packed[1], 0xF0);
    ck_assert_uint_eq(packed[2], 0x07);
}
END_TEST

START_TEST(every_value_in_every_position) {
    for (unsigned value = 0; value < 64; value++)
        for (int at = 0; at < 4; at++) {
            uint8_t codes[4] = {0}, packed[3], back[4];
            codes[at] = (uint8_t)value;
            qg_pack6(codes, 4, packed);
            qg_unpack6(packed, 4, back);
            ck_assert_mem_eq(codes, back, 4);
            codes[at] &= 15;
            qg_pack4(codes, 4, packed);
            qg_unpack4(packed, 4, back);
            ck_assert_mem_eq(codes, back, 4);
        }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {counts_and_guards, bytes_needed, documented_order,
                                  every_value_in_every_position};
    return RUN_SUITE("pack", tests);
}
