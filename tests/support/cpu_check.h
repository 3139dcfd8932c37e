// The CPU runtime against the emulator: the same bytes, and no byte outside the buffers.
#ifndef CPU_CHECK_H
#define CPU_CHECK_H

#include <qg_cpu.h>

// One quantization and its way back.
typedef struct cpu_case {
    qg_recipe recipe;
    qg_storage storage;
    qg_quantize_options options;
    int64_t m, k;
    const void *x; // of options.input_type
} cpu_case;

// The instruction sets that this build and processor have, NULL past the end.
const char *cpu_check_isa(size_t i);

// Runs the emulator once, then the CPU runtime with every instruction set, or the one named, and
// every thread count; fails with the case in words.
void cpu_check(const cpu_case *c, const char *isa, const int *threads, size_t thread_counts);

// A random case on random data of at most `most` elements, drawn from `state`; false if the parts
// do not make a recipe. room: `most` floats.
bool cpu_check_draw(uint64_t *state, int64_t most, float *room, cpu_case *out);

// x as `type`: the value's bits rounded toward zero to bf16, or taken as fp16.
void cpu_check_narrow(qg_format type, const float *x, int64_t count, uint16_t *out);

#endif
