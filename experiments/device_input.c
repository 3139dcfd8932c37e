// The tensors of a device check. See device_input.h.
#include <device_input.h>

#include <qg_codec.h>
#include <qg_data.h>
#include <qg_input.h>
#include <qg_memory.h>
#include <qg_philox.h>

#include <string.h>

const char *device_data_name(int data) {
    static const char *const names[] = {"normal", "seed_groups", "specials"};
    return names[data];
}

int device_type_bytes(qg_format type) { return type == QG_FORMAT_FP32 ? 4 : 2; }

float device_element(qg_format type, const void *raw, int64_t i) {
    if (type == QG_FORMAT_FP32)
        return ((const float *)raw)[i];
    uint16_t bits = ((const uint16_t *)raw)[i];
    return type == QG_FORMAT_BF16 ? qg_float_of_bf16(bits) : qg_float_of_fp16(bits);
}

static uint16_t fp16_of_float(float x) {
    static const qg_conversion conversion = {.rounding = {.mode = QG_ROUND_RNE},
                                             .overflow = QG_OVERFLOW_FORMAT};
    qg_format_info info = qg_format_describe(QG_FORMAT_FP16);
    return (uint16_t)qg_encode(&info, x, &conversion, 0);
}

void device_store(qg_format type, float x, void *raw, int64_t i) {
    if (type == QG_FORMAT_FP32)
        ((float *)raw)[i] = x;
    else
        ((uint16_t *)raw)[i] = type == QG_FORMAT_BF16 ? qg_bf16_of_float(x) : fp16_of_float(x);
}

// --------------------------------------------------------------------------------------- patterns

static float signed_by(uint32_t word, float magnitude) {
    return word >> 31 ? -magnitude : magnitude;
}

// Halfway between neighbouring codes of E4M3, from its subnormals up to 240 + 8.
static float tie_of(uint32_t word) {
    int exponent = (int)(word % 14) - 9; // of the code's last place
    float place = qg_float_pow2(exponent);
    uint32_t significand = exponent == -9 ? word / 14 % 16 : 8 + word / 14 % 8;
    return signed_by(word, ((float)significand + 0.5f) * place);
}

// Of 2^-10 .. 2^10.
static float spread_of(uint32_t word) {
    uint32_t exponent = 117 + word % 20;
    return qg_float_of_bits((word & 0x80000000u) | exponent << 23 | (word >> 8 & 0x7fffff));
}

static float group_element(int64_t group, int64_t within, uint32_t word) {
    switch (group % 8) {
    case 0: return 0.0f;
    case 1: return within == 17 ? 3.5e4f : signed_by(word, 1e-3f);
    case 2: return within == 0 ? 448.0f : tie_of(word);
    case 3: return signed_by(word, 448.0f);
    case 4: return signed_by(word, 1e6f);
    case 5: return within == 0 ? -56.0f : tie_of(word) * 0.125f;
    default: return spread_of(word);
    }
}

static float of_bits_below(uint32_t word, uint32_t limit, uint32_t floor) {
    return qg_float_of_bits((word & 0x80000000u) | (floor + (word & 0x7fffffff) % (limit - floor)));
}

static float special_element(uint32_t kind, int64_t within, uint32_t word) {
    const uint32_t infinite = 0x7f800000u;
    switch (kind % 8) {
    case 0: return within == 3 ? qg_float_of_bits(0x7fc00001u) : spread_of(word);
    case 1: return within == 5 ? signed_by(word, qg_float_of_bits(infinite)) : spread_of(word);
    case 2:
        return within == 1   ? qg_float_of_bits(0xffc12345u)
               : within == 2 ? qg_float_of_bits(0xff800000u)
                             : spread_of(word);
    case 3: return of_bits_below(word, 0x00800000u, 0);
    case 4: return of_bits_below(word, 0x05000000u, 0x00700000u);
    case 5: return of_bits_below(word, infinite, 0x7d000000u);
    case 6: return signed_by(word, 0.0f);
    default: return of_bits_below(word, infinite, 0);
    }
}

// The group of an element lies along its row, and rows begin with different groups.
static float element_of(int data, uint64_t seed, int64_t k, int64_t row, int64_t column) {
    uint32_t word = qg_philox_word(seed, QG_STREAM_DATA, (uint64_t)(row * k + column));
    if (data == DEVICE_DATA_GROUPS)
        return group_element(row + column / 128, column % 128, word);
    uint32_t kind = qg_philox_word(seed, QG_STREAM_STRUCTURE, (uint64_t)(row * k + column / 32));
    return special_element(kind, column % 32, word);
}

// ------------------------------------------------------------------------------------------- fill

static qg_status fill_normal(device_input *input, uint64_t seed) {
    qg_law *law;
    qg_status status = qg_law_parse("normal", &law);
    if (status != QG_OK)
        return status;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < input->m; row++)
        qg_law_generate(law, seed, 0, input->k, row, 1, input->wide + row * input->k);
    qg_law_free(law);
    return QG_OK;
}

static qg_status take_memory(device_input *input, int64_t count) {
    if (input->capacity >= count)
        return QG_OK;
    void *raw = NULL, *wide = NULL;
    device_input_free(input);
    qg_status status = qg_allocate(&raw, count, sizeof(float), "a tensor");
    if (status == QG_OK)
        status = qg_allocate(&wide, count, sizeof(float), "a widened tensor");
    input->raw = raw;
    input->wide = wide;
    input->capacity = status == QG_OK ? count : 0;
    return status;
}

qg_status device_input_fill(device_input *input, int data, qg_format type, uint64_t seed, int64_t m,
                            int64_t k) {
    qg_status status = take_memory(input, m * k);
    if (status != QG_OK)
        return status;
    input->type = type;
    input->m = m;
    input->k = k;
    if (data == DEVICE_DATA_NORMAL)
        status = fill_normal(input, seed);
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < m; row++)
        for (int64_t i = row * k; i < (row + 1) * k; i++) {
            if (data != DEVICE_DATA_NORMAL)
                input->wide[i] = element_of(data, seed, k, row, i - row * k);
            device_store(type, input->wide[i], input->raw, i);
            input->wide[i] = device_element(type, input->raw, i);
        }
    return status;
}

void device_input_free(device_input *input) {
    qg_release(input->raw);
    qg_release(input->wide);
    *input = (device_input){0};
}
