// What Metrale published of its two FP8 activation quantizers: how many times as fast as the shared
// kernel the Hopper twin was, at 15 points. One H100 80GB (132 SMs), CUDA 13.0, bf16 input, groups
// of 128. Single figures where there are such, else the range of the published points of that kind.
#ifndef PUBLISHED_QUANTIZER_H
#define PUBLISHED_QUANTIZER_H

#include <stdint.h>

typedef struct published_point {
    int64_t k, m;
    double least, most; // time of the shared kernel over the twin's
} published_point;

enum { PUBLISHED_POINTS = 15 };

static const published_point PUBLISHED[PUBLISHED_POINTS] = {
    {5120,  16,   0.84, 0.84},
    {5120,  17,   0.95, 0.95},
    {5120,  25,   0.76, 0.76},
    {5120,  1168, 3.30, 3.59},
    {5120,  4576, 3.30, 3.59},
    {6144,  16,   0.82, 0.82},
    {6144,  17,   0.80, 0.80},
    {6144,  25,   0.87, 0.87},
    {6144,  1168, 3.30, 3.59},
    {6144,  4576, 3.30, 3.59},
    {17408, 16,   1.02, 1.08},
    {17408, 17,   1.02, 1.08},
    {17408, 25,   1.02, 1.08},
    {17408, 1168, 3.30, 3.59},
    {17408, 4576, 3.30, 3.59},
};

#endif
