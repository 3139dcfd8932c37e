// The seam between the library and the CUDA module: a plain struct of functions behind one symbol.
//
// The module (kernels/) is loaded at run time and never unloaded; it needs the CUDA toolkit to be
// built, this header does not. Its functions take device pointers unless said otherwise, launch on
// the module's own stream and return without waiting, unless said otherwise. They return QG_OK or a
// qg_status with one line in `error`: nothing prints, every launch is checked. Not thread-safe.
// Any change to this header, or to a struct it passes, is a new QG_CUDA_ABI.
#ifndef QG_CUDA_MODULE_H
#define QG_CUDA_MODULE_H

#include <qg_recipe.h>
#include <qg_scale_order.h>
#include <qg_status.h>
#include <stddef.h>

QG_EXTERN_C_BEGIN

enum { QG_CUDA_ABI = 1, QG_CUDA_TEXT = 256 };

#define QG_CUDA_SYMBOL "quantgauge_cuda_module"

typedef struct qg_cuda_error {
    char text[QG_CUDA_TEXT];
} qg_cuda_error;

// Why the backend does not answer. X(ID, text of --backends cuda)
#define QG_CUDA_ABSENCE_TABLE(X)                                                                   \
    X(NONE, "")                                                                                    \
    X(NO_MODULE, "the CUDA module was not found")                                                  \
    X(WRONG_ABI, "the CUDA module is of another version")                                          \
    X(NO_DRIVER, "no NVIDIA driver is installed, or it is older than the CUDA runtime needs")      \
    X(STUB_DRIVER, "the driver library is the toolkit's stub")                                     \
    X(NO_DEVICE, "the driver finds no device")                                                     \
    X(NO_IMAGE, "the module holds no kernels for this device's architecture")                      \
    X(FAILED, "the CUDA runtime failed")

typedef enum qg_cuda_absence {
#define QG_CUDA_ABSENCE_ENUM(ID, text) QG_CUDA_ABSENT_##ID,
    QG_CUDA_ABSENCE_TABLE(QG_CUDA_ABSENCE_ENUM)
#undef QG_CUDA_ABSENCE_ENUM
        QG_CUDA_ABSENT_COUNT
} qg_cuda_absence;

typedef struct qg_cuda_device {
    char name[QG_CUDA_TEXT];
    int32_t architecture; // 90 for compute capability 9.0
    int32_t sm_count;
    int64_t l2_bytes, memory_bytes;
    int32_t driver, runtime;             // 13000 for 13.0; driver 0: none
    int64_t cublaslt;                    // cublasLtGetVersion; 0: not loaded
    char cublaslt_missing[QG_CUDA_TEXT]; // why, "" where it is loaded
} qg_cuda_device;

// One quantization. A recipe's rounding, policies and rule are those of its fields.
typedef struct qg_cuda_quantize {
    qg_recipe recipe;
    qg_format input_type; // fp32, bf16, fp16: of x and up
    int32_t kernel;       // QG_GROUP_KERNEL_*, where the layout is group:G; others have one kernel
    int32_t packed;       // codes of 4 and 6 bits as qg_storage.packed
    qg_scale_order order; // of the scales, padding written
    int64_t m, k;
    uint64_t seed; // of stochastic rounding
    uint32_t stream;
    float history_amax; // rule `delayed`: the amax of the history
    const void *x;      // (m, k), row-major
    const void *up;     // NULL; else x is the gate and what is quantized is qg_silu_times_up(x, up)
    uint8_t *codes, *scales;
    float *tensor_scale; // 1 of a two-level recipe; else NULL
    void *scratch;       // quantize_scratch bytes, 16-byte aligned
} qg_cuda_quantize;

typedef struct qg_cuda_dequantize {
    qg_recipe recipe;
    int32_t packed;
    qg_scale_order order;
    int64_t m, k;
    const uint8_t *codes, *scales;
    float tensor_scale; // a value, not a pointer
    qg_format out_type; // fp32 or bf16 (RNE of the binary32 value)
    void *q;            // (m, k)
} qg_cuda_dequantize;

// acc (m, n) of a (m, k) b (n, k)^T in binary32, both of binary32: for every output one chain of
// fma over ascending k from +0, the arithmetic of unit fp32_fma; then + bias[n] and RNE to out_type.
typedef struct qg_cuda_multiply {
    int64_t m, n, k;
    const float *a, *b, *bias; // bias may be NULL
    qg_format out_type;        // fp32, bf16, fp16
    void *out;
} qg_cuda_multiply;

typedef struct qg_cuda_operand {
    qg_recipe recipe;
    const uint8_t *codes; // unpacked but for FP4: packed, 16-byte aligned
    const void *scales;   // in the order that product_order names
    float tensor_scale;   // a value; 1 where there is none
} qg_cuda_operand;

// What the library ran, read back from its algorithm.
typedef struct qg_cuda_algorithm {
    int32_t id, tile, stages, splitk, reduction, inner_shape, cluster_shape, custom;
    uint64_t numerical; // CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS
    int64_t workspace_bytes;
    float waves;
} qg_cuda_algorithm;

// out (m, n) of out_type = a (m, k) b (n, k)^T through cuBLASLt: TN, no copies, by passing b as the
// library's A. FP8 outputs: out_scale multiplies before the conversion.
typedef struct qg_cuda_product {
    int64_t m, n, k;
    qg_cuda_operand a, b;
    qg_format out_type;     // fp32, bf16, fp16, e4m3, e5m2
    const float *bias;      // (n) binary32, or NULL
    const void *c;          // (m, n) of out_type (bf16 for FP8 outputs), added; or NULL
    const float *out_scale; // one; or NULL
    int32_t accumulates_fast;
    int32_t splitk_allowed; // 0 for reproducible results
    void *out;
    // 256-byte aligned. A bias with another out_type than fp32 takes 4 m n bytes of it, rounded up to
    // 256; the rest is the library's.
    void *workspace;
    int64_t workspace_bytes;
    qg_cuda_algorithm algorithm; // output
} qg_cuda_product;

typedef struct qg_cuda_module {
    int32_t abi;  // QG_CUDA_ABI; nothing else may be read where it differs
    int32_t size; // sizeof(qg_cuda_module)

    // Finds device 0, makes the stream and loads cuBLASLt if it is there (QG_CUBLASLT=PATH, then
    // libcublasLt.so.*). Called once, first. Waits.
    qg_cuda_absence (*open)(qg_cuda_device *device, qg_cuda_error *error);

    // Memory: 256-byte aligned; bytes >= 0. copy_in and copy_out take host pointers and wait.
    qg_status (*allocate)(int64_t bytes, void **out, qg_cuda_error *error);
    void (*release)(void *pointer);
    qg_status (*copy_in)(void *to, const void *from, int64_t bytes, qg_cuda_error *error);
    qg_status (*copy_out)(void *to, const void *from, int64_t bytes, qg_cuda_error *error);
    qg_status (*fill)(void *to, uint8_t value, int64_t bytes, qg_cuda_error *error);
    qg_status (*copy)(void *to, const void *from, int64_t bytes, qg_cuda_error *error);
    qg_status (*synchronize)(qg_cuda_error *error);

    // QG_ERROR_UNSUPPORTED: no kernel for the recipe. Names: of the kernel, "group_hopper".
    int64_t (*quantize_scratch)(const qg_cuda_quantize *q);
    const char *(*quantize_name)(const qg_cuda_quantize *q);
    qg_status (*quantize)(const qg_cuda_quantize *q, qg_cuda_error *error);
    qg_status (*dequantize)(const qg_cuda_dequantize *d, qg_cuda_error *error);
    qg_status (*multiply)(const qg_cuda_multiply *p, qg_cuda_error *error);

    // The order in which product reads the scales of an operand (is_b: of b), and whether the
    // library takes such a product on this device: QG_ERROR_UNSUPPORTED with a named reason where
    // not; nothing is launched then. product_takes reads no pointer.
    qg_scale_order (*product_order)(const qg_recipe *recipe);
    qg_status (*product_takes)(const qg_cuda_product *p, qg_cuda_error *error);
    qg_status (*product)(qg_cuda_product *p, qg_cuda_error *error);

    // Times `launches` (>= 1) calls of run(context, i), i ascending, recorded once into a graph that
    // is then replayed once and, between events, `repeats` (>= 1) times: seconds[r] per launch. run
    // returns what the functions above return, and calls none that wait or allocate. Waits.
    qg_status (*time)(qg_status (*run)(void *context, int i, qg_cuda_error *error), void *context,
                      int launches, int repeats, double *seconds, qg_cuda_error *error);
} qg_cuda_module;

// What the symbol QG_CUDA_SYMBOL is: the module's struct, never NULL.
typedef const qg_cuda_module *(*qg_cuda_module_function)(void);

QG_EXTERN_C_END

#endif
