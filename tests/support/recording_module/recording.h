// What the CUDA module of recording_module.c was asked for, and how it shall answer.
#ifndef RECORDING_H
#define RECORDING_H

#include <qg_cuda_module.h>

enum { RECORDING_BYTES = 4096 };

// The first bytes of a buffer.
typedef struct recorded_bytes {
    uint8_t bytes[RECORDING_BYTES];
    int64_t size; // of the whole buffer
} recorded_bytes;

typedef struct recording {
    // Answers. Calls that may fail are counted from 1; number `fail_at` fails.
    int fail_at;
    qg_status takes, product_status; // of product_takes and product; `reason` where not QG_OK
    char reason[QG_CUDA_TEXT];
    qg_scale_order order; // of product_order

    // Requests, the last of each kind.
    int calls, live, quantizations, dequantizations, multiplications, products, copies;
    int64_t most_bytes; // of an allocation
    qg_cuda_quantize quantize;
    recorded_bytes x, up;
    qg_cuda_dequantize dequantize[2];
    qg_cuda_multiply multiply;
    qg_cuda_product product;
    float product_bias;
    recorded_bytes codes[2], scales[2]; // of product
    qg_cuda_product asked;              // of product_takes
    int launches, repeats;
} recording;

// The symbol that gives it.
typedef recording *(*recording_function)(void);
#define RECORDING_SYMBOL "recording_module"

#endif
