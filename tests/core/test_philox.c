// Known answers of Philox4x32-10 (those of Random123), and the mapping from elements to words.
#include <qg_philox.h>
#include <run_suite.h>

static void check_block(qg_philox_block counter, uint32_t key0, uint32_t key1,
                        const uint32_t want[4]) {
    qg_philox_block got = qg_philox(counter, key0, key1);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(got.word[i], want[i]);
}

START_TEST(known_answers) {
    check_block(
        (qg_philox_block){
            {0, 0, 0, 0}
    },
        0, 0, (const uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_block(
        (qg_philox_block){
            {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}
    },
        0xffffffff, 0xffffffff, (const uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_block(
        (qg_philox_block){
            {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}
    },
        0xa4093822, 0x299f31d0, (const uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}
END_TEST

START_TEST(words_follow_the_documented_counter) {
    uint64_t seed = 0x123456789abcdef0, index = 0x0fedcba987654321;
    uint64_t quad = index / 4;
    qg_philox_block counter = {
        {(uint32_t)quad, (uint32_t)(quad >> 32), QG_STREAM_ROUNDING, 0}
    };
    qg_philox_block want = qg_philox(counter, 0x9abcdef0, 0x12345678);
    ck_assert_uint_eq(qg_philox_word(seed, QG_STREAM_ROUNDING, index), want.word[1]);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_uint_eq(qg_philox_word(seed, QG_STREAM_ROUNDING, quad * 4 + i), want.word[i]);
}
END_TEST

START_TEST(streams_seeds_and_high_indices_differ) {
    uint32_t base = qg_philox_word(1, QG_STREAM_DATA, 5);
    ck_assert_uint_ne(base, qg_philox_word(1, QG_STREAM_STRUCTURE, 5));
    ck_assert_uint_ne(base, qg_philox_word(1, QG_STREAM_DATA + QG_STREAM_OPERAND_B, 5));
    ck_assert_uint_ne(base, qg_philox_word(2, QG_STREAM_DATA, 5));
    ck_assert_uint_ne(base, qg_philox_word(1 + (1ull << 32), QG_STREAM_DATA, 5));
    ck_assert_uint_ne(base, qg_philox_word(1, QG_STREAM_DATA, 5 + (1ull << 34)));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {known_answers, words_follow_the_documented_counter,
                                  streams_seeds_and_high_indices_differ};
    return RUN_SUITE("philox", tests);
}
