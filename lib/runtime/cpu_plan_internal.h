// What a recipe becomes for the kernels of the CPU: constants, and which of its parts have a
// kernel.
#ifndef CPU_PLAN_INTERNAL_H
#define CPU_PLAN_INTERNAL_H

#include <cpu_kernels_internal.h>
#include <qg_backend.h>
#include <qg_block_scale.h>

typedef struct cpu_plan {
    qg_scaler scaler;
    int type;            // INPUT_*
    int how;             // APPLY_*
    bool is_direct;      // has kernels; otherwise the emulator's code runs
    bool needs_elements; // the rule reads every element of a block
    bool is_constant;    // one scale whatever the amax
    cpu_cast cast;
    qg_ordinary_scales scales;
    // Under the scale of an ordinary amax bounded kernels may be used; with APPLY_POWER.
    bool is_bounded, is_power;
} cpu_plan;

// tensor_amax: as qg_scaler_of. The tensor's amax may be unknown (0) to ask what would run.
cpu_plan cpu_plan_of(const qg_recipe *recipe, qg_format input_type, float tensor_amax);

// The operand of the plan's kernels for a scale. False: none does what the scale says, and the
// group must be encoded element by element. all_finite: the block holds no infinity.
bool cpu_operand_of(const cpu_plan *plan, const qg_block_scale *scale, bool all_finite,
                    float *operand);

// False: a value is no binary32 number of at most 16 significant leading bits.
bool cpu_decode_of(qg_format element, cpu_decode *out);

#endif
