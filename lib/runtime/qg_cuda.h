// The CUDA backend: finds, checks and loads the module, and performs quantize, dequantize and
// multiply through it. Without a module, a driver or a device everything else works.
//
// Where the module is looked for: QG_CUDA_MODULE=PATH (that alone), else where the build and the
// installation put it, relative to the program or to libquantgauge.so. QG_REQUIRE_CUDA=1 makes
// absence a failure where programs ask. What is opened is lost in a forked process.
#ifndef QG_CUDA_H
#define QG_CUDA_H

#include <qg_backend.h>
#include <qg_cuda_module.h>
#include <qg_kernel_choice.h>

QG_EXTERN_C_BEGIN

// Loads the module on the first call; later calls return the same. NULL: absent.
// device, absence, reason may be NULL. reason: one line that says what to do, "" where it is there.
// Never unloads. Costs up to half a second where there is a module; threads may call it.
const qg_cuda_module *qg_cuda_open(const qg_cuda_device **device, qg_cuda_absence *absence,
                                   const char **reason);

// "the driver finds no device": a phrase that is the same on every machine; "" for NONE.
const char *qg_cuda_absence_text(qg_cuda_absence absence);

// The lever and the routing table of later quantizations; NULL: none. `route` must stay.
void qg_cuda_use_lever(qg_kernel_lever lever);
void qg_cuda_use_route(const qg_route *route);

// NULL, or the reason.
const char *qg_cuda_unavailable(void);

// As qg_backend.h; host pointers. One call runs at a time. Errors also: QG_ERROR_ENVIRONMENT where
// the backend does not answer or a kernel fails, QG_ERROR_MEMORY of the device. *impl: the kernel,
// "group_hopper"; of products "cublaslt: algo ...", valid until the thread's next product. Products that cuBLASLt does not take are dequantized and
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

qg_status qg_cuda_backend_silu_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                                        const qg_storage *storage, int64_t m, int64_t k,
                                        const void *gate, const void *up, uint8_t *codes,
                                        uint8_t *scales, float *tensor_scale, const char **impl);

// How long the device takes for a quantization that it repeats on the same buffers, and for a copy;
// what travels to the device and back is not counted.
typedef struct qg_cuda_timing {
    int launches, repeats; // as qg_cuda_module.time; both at least 1
    double *seconds;       // (repeats): of one quantization
    int64_t copy_bytes;    // read and written; 0: no copy
    double *copy_seconds;  // (repeats): of one copy
} qg_cuda_timing;

// qg_cuda_backend_quantize, timed.
qg_status qg_cuda_time_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                                const qg_storage *storage, int64_t m, int64_t k, const void *x,
                                uint8_t *codes, uint8_t *scales, float *tensor_scale,
                                const char **impl, const qg_cuda_timing *timing);

QG_EXTERN_C_END

#endif
