// The stages of a device check, in their order. Each looks at the clock and says what it left.
// A status other than QG_OK means that the device or the memory failed: the check ends.
#ifndef DEVICE_STAGE_H
#define DEVICE_STAGE_H

#include <device_run.h>

// Facts of the device for the head of the file and of standard output.
void device_stage_facts(device_check *c);
// Every kernel against the emulator.
qg_status device_stage_bytes(device_check *c);
qg_status device_stage_conversions(device_check *c);
qg_status device_stage_dequantize(device_check *c);
qg_status device_stage_multiply(device_check *c);
// Known-bad results, each of which must be caught.
qg_status device_stage_controls(device_check *c);
// The shapes of Metrale's test: both kernels against each other and the CPU runtime.
qg_status device_stage_seed(device_check *c);
// What the tensor cores of an architecture are modelled as: "hopper_wgmma+promote:128".
const char *device_expected_unit(int architecture, int fast);
// What accumulates inside cuBLASLt, and products bit for bit.
qg_status device_stage_probe(device_check *c);
qg_status device_stage_gemm(device_check *c);
// Runs `program` on small shapes under compute-sanitizer, `sanitizer`, for `seconds` at most.
qg_status device_stage_sanitizer(device_check *c, const char *sanitizer, const char *program,
                                 double seconds);
qg_status device_stage_timing(device_check *c);

#endif
