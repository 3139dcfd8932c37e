// Tensors that a device check quantizes: the law `normal`, which run_sweep has, too, and two
// patterns of its own, all of them functions of a seed.
#ifndef DEVICE_INPUT_H
#define DEVICE_INPUT_H

#include <qg_format.h>
#include <qg_status.h>
#include <stdint.h>

enum {
    // N(0, 1): what the data law of that name gives.
    DEVICE_DATA_NORMAL,
    // Groups of 128, as in Metrale's test: zeros, 3.5e4 among 1e-3, exact ties of E4M3 under scale
    // 1 and under 2^-3, +-448, +-1e6, magnitudes over six decades.
    DEVICE_DATA_GROUPS,
    // Groups of 32 with a NaN, an infinity, both; binary32 subnormals; magnitudes near the ends of
    // binary32; zeros of both signs; any finite bits.
    DEVICE_DATA_SPECIALS,
    DEVICE_DATA_COUNT
};

const char *device_data_name(int data);

// A tensor of fp32, bf16 or fp16 elements: raw as a kernel reads it, and widened.
typedef struct device_input {
    qg_format type;
    int64_t m, k;
    void *raw;   // (m, k) of type
    float *wide; // (m, k)
    int64_t capacity;
} device_input;

int device_type_bytes(qg_format type);

// Fills a zeroed input, or one filled before, whose memory is then used again.
qg_status device_input_fill(device_input *input, int data, qg_format type, uint64_t seed, int64_t m,
                            int64_t k);
void device_input_free(device_input *input);

// Element i of a raw tensor, widened exactly; x rounded to the type.
float device_element(qg_format type, const void *raw, int64_t i);
void device_store(qg_format type, float x, void *raw, int64_t i);

#endif
