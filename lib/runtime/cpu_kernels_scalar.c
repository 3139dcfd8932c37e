// The kernels in plain C: what every processor runs, and what the vector variants must equal.
#include <cpu_kernels_internal.h>
#include <qg_pack.h>

#include <string.h>

// ------------------------------------------------------------------------------------------ amax

static void amax_of(int type, const void *x, int64_t count, int64_t columns, uint32_t *amax) {
    for (int64_t first = 0; first < count; first += columns, amax++) {
        int64_t end = first + columns < count ? first + columns : count;
        uint32_t largest = *amax;
        for (int64_t i = first; i < end; i++) {
            uint32_t magnitude = qg_bits_of_float(cpu_element(type, x, i)) & 0x7fffffffu;
            largest = magnitude > largest ? magnitude : largest;
        }
        *amax = largest;
    }
}

static void amax_fp32(const void *x, int64_t count, int64_t columns, uint32_t *amax) {
    amax_of(INPUT_FP32, x, count, columns, amax);
}

static void amax_bf16(const void *x, int64_t count, int64_t columns, uint32_t *amax) {
    amax_of(INPUT_BF16, x, count, columns, amax);
}

static void amax_fp16(const void *x, int64_t count, int64_t columns, uint32_t *amax) {
    amax_of(INPUT_FP16, x, count, columns, amax);
}

// ----------------------------------------------------------------------------------------- scales

static bool scales(const qg_ordinary_scales *s, const uint32_t *amax, int64_t n, uint8_t *stored,
                   float *operand) {
    int bytes = qg_ordinary_scale_bytes(s);
    bool are_ordinary = true;
    for (int64_t i = 0; i < n; i++) {
        if (!qg_is_ordinary(s, amax[i])) {
            are_ordinary = false;
            continue;
        }
        uint32_t bits = qg_ordinary_scale(s, amax[i], &operand[i]);
        for (int b = 0; b < bytes; b++)
            stored[bytes * i + b] = (uint8_t)(bits >> (8 * b));
    }
    return are_ordinary;
}

// --------------------------------------------------------------------------------------- encoding

static void apply_of(int type, const void *x, int64_t count, int64_t columns, const float *operand,
                     int how, bool is_directed, float *v) {
    for (int64_t first = 0; first < count; first += columns, operand++) {
        int64_t end = first + columns < count ? first + columns : count;
        bool is_exact = is_directed && qg_float_is_power_of_two(*operand);
        for (int64_t i = first; i < end; i++)
            v[i] = cpu_applied(cpu_element(type, x, i), *operand, how, is_exact);
    }
}

static void apply_fp32(const void *x, int64_t count, int64_t columns, const float *operand, int how,
                       bool is_directed, float *v) {
    apply_of(INPUT_FP32, x, count, columns, operand, how, is_directed, v);
}

static void apply_bf16(const void *x, int64_t count, int64_t columns, const float *operand, int how,
                       bool is_directed, float *v) {
    apply_of(INPUT_BF16, x, count, columns, operand, how, is_directed, v);
}

static void apply_fp16(const void *x, int64_t count, int64_t columns, const float *operand, int how,
                       bool is_directed, float *v) {
    apply_of(INPUT_FP16, x, count, columns, operand, how, is_directed, v);
}

static void encode(const cpu_cast *c, const float *v, const uint32_t *words, int64_t count,
                   uint8_t *codes) {
    bool needs_words = c->encoder.mode >= QG_ROUND_STOCHASTIC_A;
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = needs_words ? words[i] : 0;
        codes[i] = (uint8_t)qg_encode32(&c->encoder, qg_bits_of_float(v[i]), word);
    }
}

// --------------------------------------------------------------------------------------- decoding

static void decode(const cpu_decode *d, const uint8_t *codes, int64_t count, int64_t columns,
                   const float *x, int64_t ahead, float *q) {
    (void)ahead;
    for (int64_t first = 0; first < count; first += columns, x++) {
        int64_t end = first + columns < count ? first + columns : count;
        for (int64_t i = first; i < end; i++) {
            float value = d->values[codes[i]] * *x;
            q[i] = value == value ? value : qg_float_of_bits(0x7fffffffu);
        }
    }
}

// ----------------------------------------------------------------------------------------- memory

static void stream(void *to, const void *from, int64_t bytes) { memcpy(to, from, (size_t)bytes); }

static void stream_end(void) {}

void cpu_kernels_scalar(cpu_kernels *k) {
    *k = (cpu_kernels){
        .name = "scalar",
        .isa = QG_ISA_SCALAR,
        .amax = {amax_fp32,  amax_bf16,  amax_fp16 },
        .scales = scales,
        .apply = {apply_fp32, apply_bf16, apply_fp16},
        .random = cpu_random,
        .encode = encode,
        .decode = decode,
        .pack4 = qg_pack4,
        .pack6 = qg_pack6,
        .unpack4 = qg_unpack4,
        .unpack6 = qg_unpack6,
        .stream = stream,
        .stream_end = stream_end,
    };
}
