// XXH3-64: known answers, and streaming in any pieces equals one call.
#include <qg_digest.h>
#include <run_suite.h>

START_TEST(known_answers) {
    ck_assert_uint_eq(qg_digest_bytes("", 0), 0x2d06800538d394c2u);
    ck_assert_uint_eq(qg_digest_bytes("abc", 3), 0x78af5f94892f3950u);
}
END_TEST

START_TEST(pieces_do_not_matter) {
    unsigned char bytes[3000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 151 + i / 256);
    qg_digest *digest;
    ck_assert_int_eq(qg_digest_create(&digest), QG_OK);
    for (size_t size = 0; size <= sizeof bytes; size += 250)
        for (size_t piece = 1; piece <= 1024; piece *= 4) {
            qg_digest_reset(digest);
            for (size_t at = 0; at < size; at += piece)
                qg_digest_add(digest, bytes + at, size - at < piece ? size - at : piece);
            ck_assert_uint_eq(qg_digest_value(digest), qg_digest_bytes(bytes, size));
            ck_assert_uint_eq(qg_digest_value(digest), qg_digest_bytes(bytes, size));
        }
    qg_digest_free(digest);
    qg_digest_free(NULL);
}
END_TEST

START_TEST(a_digest_starts_empty) {
    qg_digest *digest;
    ck_assert_int_eq(qg_digest_create(&digest), QG_OK);
    ck_assert_uint_eq(qg_digest_value(digest), qg_digest_bytes("", 0));
    qg_digest_free(digest);
}
END_TEST

START_TEST(every_bit_counts) {
    unsigned char bytes[40] = {0};
    uint64_t zero = qg_digest_bytes(bytes, sizeof bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] = (unsigned char)(1 << bit % 8);
        ck_assert_uint_ne(qg_digest_bytes(bytes, sizeof bytes), zero);
        bytes[bit / 8] = 0;
    }
    ck_assert_uint_ne(qg_digest_bytes(bytes, sizeof bytes - 1), zero);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {known_answers, pieces_do_not_matter, a_digest_starts_empty,
                                  every_bit_counts};
    return RUN_SUITE("digest", tests);
}
