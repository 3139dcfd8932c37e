// The branch-free encoder against qg_encode: all bf16 and fp16 values, boundaries and random floats,
// for every format that it takes and every conversion.
#include <block_data.h>
#include <qg_encode32.h>
#include <qg_format_name.h>
#include <require.h>
#include <run_suite.h>

#include <stdlib.h>

static uint64_t state = 3;

static const qg_rounding ROUNDINGS[] = {
    {QG_ROUND_RNE,          0 },
    {QG_ROUND_RNA,          0 },
    {QG_ROUND_RTZ,          0 },
    {QG_ROUND_RTP,          0 },
    {QG_ROUND_RTN,          0 },
    {QG_ROUND_RTO,          0 },
    {QG_ROUND_STOCHASTIC_A, 1 },
    {QG_ROUND_STOCHASTIC_A, 16},
    {QG_ROUND_STOCHASTIC_A, 32},
    {QG_ROUND_STOCHASTIC_B, 1 },
    {QG_ROUND_STOCHASTIC_B, 31},
    {QG_ROUND_STOCHASTIC_B, 32},
    {QG_ROUND_STOCHASTIC_C, 2 },
    {QG_ROUND_STOCHASTIC_C, 23},
    {QG_ROUND_STOCHASTIC_C, 31},
    {QG_ROUND_STOCHASTIC_C, 32},
};
enum { ROUNDING_COUNT = sizeof ROUNDINGS / sizeof ROUNDINGS[0] };

typedef struct check {
    const char *name;
    qg_format_info info;
    qg_conversion conversion;
    qg_encoder32 encoder;
} check;

static void check_value(const check *c, uint32_t bits, uint32_t word) {
    uint64_t want = qg_encode(&c->info, qg_float_of_bits(bits), &c->conversion, word);
    uint32_t got = qg_encode32(&c->encoder, bits, word);
    REQUIRE(got == want, "%s mode %d:%d overflow %d nan %d: %08x, word %08x: %02x, not %02x",
            c->name, c->conversion.rounding.mode, c->conversion.rounding.bits,
            c->conversion.overflow, c->conversion.nan, bits, word, got, (unsigned)want);
}

static uint32_t random_word(void) {
    uint32_t word = (uint32_t)block_data_random(&state);
    return word % 5 == 0 ? 0u : word % 5 == 1 ? 0xffffffffu : word;
}

static void check_narrow_inputs(const check *c) {
    for (uint32_t i = 0; i < 1u << 16; i++)
        check_value(c, i << 16, random_word());
    qg_format_info fp16 = qg_format_describe(QG_FORMAT_FP16);
    for (uint32_t i = 0; i < 1u << 16; i++)
        check_value(c, qg_bits_of_float((float)qg_decode(&fp16, i)), random_word());
}

// Around every value and every middle between neighbours.
static void check_boundaries(const check *c) {
    for (uint64_t code = 0; code < 256; code++) {
        double value = qg_decode(&c->info, code), next = qg_decode(&c->info, code + 1);
        if (value != value)
            continue;
        double middle = next == next ? value + (next - value) / 2 : value;
        for (int32_t step = -3; step <= 3; step++) {
            check_value(c, qg_bits_of_float((float)value) + (uint32_t)step, random_word());
            check_value(c, qg_bits_of_float((float)middle) + (uint32_t)step, random_word());
        }
    }
}

static void check_random(const check *c, int count) {
    int first = (int)c->encoder.grid - 40;
    for (int i = 0; i < count; i++) {
        uint64_t r = block_data_random(&state);
        uint32_t bits = (uint32_t)r, field = (uint32_t)(first + (int)(r >> 32) % 64) & 255;
        if (r >> 60 != 0)
            bits = (bits & 0x807fffffu) | field << 23;
        check_value(c, bits, random_word());
    }
}

static void check_format(const char *name, int random_count) {
    qg_format format;
    check c = {.name = name};
    ck_assert_int_eq(qg_format_parse(name, &format), QG_OK);
    c.info = qg_format_describe(format);
    if (!qg_encoder32_takes(&c.info))
        return;
    for (int r = 0; r < ROUNDING_COUNT; r++)
        for (uint8_t policy = 0; policy < 4; policy++) {
            c.conversion = (qg_conversion){ROUNDINGS[r], policy & 1, policy >> 1};
            c.encoder = qg_encoder32_of(&c.info, &c.conversion);
            check_boundaries(&c);
            check_random(&c, policy == 0 ? random_count : random_count / 16);
            if (policy == 0)
                check_narrow_inputs(&c);
        }
}

START_TEST(frequent_formats_agree) {
    static const char *const names[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "int8", "int4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        check_format(names[i], 1 << 17);
}
END_TEST

START_TEST(all_formats_agree) {
    static const char *const minifloats[] = {"f8e7m0", "f8e1m6", "f8e6m1b40",
                                             "f3e1m1", "f2e1m0", "f8e2m5b-20"};
    for (size_t i = 0; qg_format_listed(i); i++)
        check_format(qg_format_listed(i), 1 << 12);
    for (size_t i = 0; i < sizeof minifloats / sizeof minifloats[0]; i++)
        check_format(minifloats[i], 1 << 12);
}
END_TEST

START_TEST(wide_formats_are_refused) {
    static const qg_format wide[] = {QG_FORMAT_E8M0, QG_FORMAT_BF16, QG_FORMAT_TF32,
                                     QG_FORMAT_BINARY8P1UE};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        qg_format_info info = qg_format_describe(wide[i]);
        ck_assert_int_eq(qg_encoder32_takes(&info), 0);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {frequent_formats_agree, all_formats_agree, wide_formats_are_refused};
    return RUN_SUITE("encode32", tests);
}
