// The CUDA backend: finds, checks and loads the module, and performs quantize, dequantize and
// multiply through it. Without a module, a driver or a device everything else works.
//
// Where the module is looked for: QG_CUDA_MODULE=PATH (that alone), then ../lib/quantgauge beside
// the program, then the build tree. QG_REQUIRE_CUDA=1 makes absence a failure where programs ask.
#ifndef QG_CUDA_H
#define QG_CUDA_H

#include <qg_backend.h>
#include <qg_cuda_module.h>
#include <qg_kernel_choice.h>

QG_EXTERN_C_BEGIN

// Loads the module on the first call; later calls return the same. NULL: absent.
// reason: one line, "" where it is there; may be NULL. Never unloads.
const qg_cuda_module *qg_cuda_open(const qg_cuda_device **device, qg_cuda_absence *absence,
                                   const char **reason);

// The lever and the routing table of later quantizations; NULL: none. `route` must stay.
void qg_cuda_use_lever(qg_kernel_lever lever);
void qg_cuda_use_route(const qg_route *route);

const char *qg_cuda_unavailable(void);

// As qg_backend.h; host pointers. Products that cuBLASLt does not take are dequantized and
// multiplied by the module's own kernel: *impl then begins with "fp32_fma:".
qg_status qg_cuda_backend_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                                   const qg_storage *storage, int64_t m, int64_t k, const void *x,
                                   uint8_t *codes, uint8_t *scales, float *tensor_scale,
                                   const char **impl);
qg_status qg_cuda_backend_dequantize(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                                     int64_t k, const uint8_t *codes, const uint8_t *scales,
                                     float tensor_scale, int threads, float *q, const char **impl);
qg_status qg_cuda_backend_scaled_matmul(const qg_unit *unit, const qg_matmul_options *options,
                                        int64_t m, int64_t n, int64_t k, const qg_matmul_operand *a,
                                        const qg_matmul_operand *b, void *out, const char **impl);

QG_EXTERN_C_END

#endif
