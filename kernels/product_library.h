// cuBLASLt as a table of functions, filled at run time. The declarations are our own: enumerators
// with their values, the result struct, handles as plain pointers, so that nothing here needs the
// toolkit's header or links its library; tests/kernels/test_product_declarations.c holds every
// value, size and offset against cublasLt.h where it is installed.
#ifndef PRODUCT_LIBRARY_H
#define PRODUCT_LIBRARY_H

#include <qg_cuda_module.h>
#include <stdbool.h>

QG_EXTERN_C_BEGIN

// X(ours, cublasLt.h's, value)
#define LT_CONSTANT_TABLE(X)                                                                       \
    X(LT_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS, 0)                                                 \
    X(LT_STATUS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED, 3)                                       \
    X(LT_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED, 15)                                    \
    X(LT_COMPUTE_32F, CUBLAS_COMPUTE_32F, 68)                                                      \
    X(LT_OP_N, CUBLAS_OP_N, 0)                                                                     \
    X(LT_OP_T, CUBLAS_OP_T, 1)                                                                     \
    X(LT_TYPE_FP32, CUDA_R_32F, 0)                                                                 \
    X(LT_TYPE_FP16, CUDA_R_16F, 2)                                                                 \
    X(LT_TYPE_BF16, CUDA_R_16BF, 14)                                                               \
    X(LT_TYPE_E4M3, CUDA_R_8F_E4M3, 28)                                                            \
    X(LT_TYPE_E5M2, CUDA_R_8F_E5M2, 29)                                                            \
    X(LT_TYPE_E2M1, CUDA_R_4F_E2M1, 33)                                                            \
    X(LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA, 3)                                              \
    X(LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB, 4)                                              \
    X(LT_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17)                           \
    X(LT_DESC_B_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18)                           \
    X(LT_DESC_D_SCALE_POINTER, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, 20)                           \
    X(LT_DESC_FAST_ACCUM, CUBLASLT_MATMUL_DESC_FAST_ACCUM, 25)                                     \
    X(LT_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 31)                                 \
    X(LT_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 32)                                 \
    X(LT_SCALE_SCALAR, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, 0)                                 \
    X(LT_SCALE_VEC16, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3, 1)                                 \
    X(LT_SCALE_VEC32, CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0, 2)                                 \
    X(LT_SCALE_OUTER_VEC, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, 3)                           \
    X(LT_SCALE_VEC128, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, 4)                                 \
    X(LT_SCALE_BLK128, CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, 5)                             \
    X(LT_PREF_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                              \
    X(LT_PREF_REDUCTION_MASK, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)                       \
    X(LT_PREF_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)                          \
    X(LT_PREF_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                          \
    X(LT_PREF_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)                          \
    X(LT_PREF_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)                          \
    X(LT_REDUCTION_NONE, CUBLASLT_REDUCTION_SCHEME_NONE, 0)                                        \
    X(LT_REDUCTION_ALL, CUBLASLT_REDUCTION_SCHEME_MASK, 7)                                         \
    X(LT_CONFIG_ID, CUBLASLT_ALGO_CONFIG_ID, 0)                                                    \
    X(LT_CONFIG_TILE, CUBLASLT_ALGO_CONFIG_TILE_ID, 1)                                             \
    X(LT_CONFIG_SPLITK, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2)                                        \
    X(LT_CONFIG_REDUCTION, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3)                               \
    X(LT_CONFIG_CUSTOM, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 5)                                     \
    X(LT_CONFIG_STAGES, CUBLASLT_ALGO_CONFIG_STAGES_ID, 6)                                         \
    X(LT_CONFIG_INNER_SHAPE, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 7)                               \
    X(LT_CONFIG_CLUSTER_SHAPE, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 8)                           \
    X(LT_CAP_NUMERICAL, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, 15)

enum {
#define LT_CONSTANT_ENUM(OURS, THEIRS, value) OURS = value,
    LT_CONSTANT_TABLE(LT_CONSTANT_ENUM)
#undef LT_CONSTANT_ENUM
};

typedef struct lt_algorithm {
    uint64_t data[8];
} lt_algorithm;

typedef struct lt_result {
    lt_algorithm algorithm;
    size_t workspace_bytes;
    int state; // a status; other fields mean something only where it is LT_STATUS_SUCCESS
    float waves;
    int reserved[4];
} lt_result;

// The functions: X(field, symbol, type of the result, parameters). Handles and descriptors are void
// *.
#define LT_FUNCTION_TABLE(X)                                                                       \
    X(version, "cublasLtGetVersion", size_t, (void))                                               \
    X(create, "cublasLtCreate", int, (void **handle))                                              \
    X(destroy, "cublasLtDestroy", int, (void *handle))                                             \
    X(desc_create, "cublasLtMatmulDescCreate", int, (void **desc, int compute, int scale_type))    \
    X(desc_destroy, "cublasLtMatmulDescDestroy", int, (void *desc))                                \
    X(desc_set, "cublasLtMatmulDescSetAttribute", int,                                             \
      (void *desc, int attribute, const void *value, size_t bytes))                                \
    X(layout_create, "cublasLtMatrixLayoutCreate", int,                                            \
      (void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                 \
    X(layout_destroy, "cublasLtMatrixLayoutDestroy", int, (void *layout))                          \
    X(preference_create, "cublasLtMatmulPreferenceCreate", int, (void **preference))               \
    X(preference_destroy, "cublasLtMatmulPreferenceDestroy", int, (void *preference))              \
    X(preference_set, "cublasLtMatmulPreferenceSetAttribute", int,                                 \
      (void *preference, int attribute, const void *value, size_t bytes))                          \
    X(heuristic, "cublasLtMatmulAlgoGetHeuristic", int,                                            \
      (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int most,   \
       lt_result *results, int *count))                                                            \
    X(config_get, "cublasLtMatmulAlgoConfigGetAttribute", int,                                     \
      (const lt_algorithm *algorithm, int attribute, void *value, size_t bytes, size_t *written))  \
    X(cap_get, "cublasLtMatmulAlgoCapGetAttribute", int,                                           \
      (const lt_algorithm *algorithm, int attribute, void *value, size_t bytes, size_t *written))  \
    X(matmul, "cublasLtMatmul", int,                                                               \
      (void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,  \
       void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,   \
       const lt_algorithm *algorithm, void *workspace, size_t workspace_bytes, void *stream))      \
    X(status_name, "cublasLtGetStatusName", const char *, (int status))

typedef struct lt_library {
#define LT_FUNCTION_FIELD(field, symbol, type, parameters) type(*field) parameters;
    LT_FUNCTION_TABLE(LT_FUNCTION_FIELD)
#undef LT_FUNCTION_FIELD
    void *handle;               // of cublasLtCreate
    int64_t loaded;             // the version, 120800 for 12.8.0; 0: not loaded
    char missing[QG_CUDA_TEXT]; // why; "" where it is loaded
} lt_library;

// The first version that knows scale modes.
enum { LT_VERSION_LEAST = 120800 };

// Finds the library and its functions; false with lt->missing. Nothing else of *lt is set.
bool lt_load(lt_library *lt);

// Loads the library, checks its version and creates the handle; lt->loaded stays 0 where
// lt->missing says why. QG_CUBLASLT=PATH alone is tried where it is set. What was opened is never
// closed.
void lt_open(lt_library *lt);

// Destroys the handle.
void lt_close(lt_library *lt);

// QG_OK, or a line that names the call and the status.
qg_status lt_check(const lt_library *lt, int status, const char *call, qg_cuda_error *error);

// One line in `error`; returns `status`.
qg_status product_fail(qg_cuda_error *error, qg_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

QG_EXTERN_C_END

#endif
