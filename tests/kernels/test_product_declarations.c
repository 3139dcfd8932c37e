// Our own declarations of cuBLASLt against cublasLt.h: every enumerator, size and offset, and the
// number and kind of every parameter, when this is compiled, where the toolkit's headers are.
#include <product_library.h>
#include <run_suite.h>

#include <stdlib.h>

#ifdef QG_HAVE_CUDA_HEADERS
#include <cublasLt.h>

#define SAME_VALUE(OURS, THEIRS, value)                                                            \
    _Static_assert((int)THEIRS == (value) && (int)OURS == (value), #THEIRS);
LT_CONSTANT_TABLE(SAME_VALUE)

_Static_assert(sizeof(lt_algorithm) == sizeof(cublasLtMatmulAlgo_t), "algorithm");
_Static_assert(sizeof(lt_result) == sizeof(cublasLtMatmulHeuristicResult_t), "result");
#define SAME_OFFSET(ours, theirs)                                                                  \
    _Static_assert(offsetof(lt_result, ours) == offsetof(cublasLtMatmulHeuristicResult_t, theirs), \
                   #theirs)
SAME_OFFSET(algorithm, algo);
SAME_OFFSET(workspace_bytes, workspaceSize);
SAME_OFFSET(state, state);
SAME_OFFSET(waves, wavesCount);
_Static_assert(sizeof(cublasStatus_t) == sizeof(int), "statuses are passed as int");
_Static_assert(sizeof(cublasComputeType_t) == sizeof(int), "types are passed as int");
_Static_assert(sizeof(cudaDataType_t) == sizeof(int), "types are passed as int");
_Static_assert(sizeof(cublasLtMatmulDescAttributes_t) == sizeof(int), "attributes, as int");
_Static_assert(CUBLAS_VERSION >= LT_VERSION_LEAST, "how versions are counted");

// Their prototypes with arguments of our parameters' kinds, unevaluated: a parameter too many or
// too few, a pointer for a number or the reverse does not compile.
#define RETURNS_STATUS(call) _Static_assert(sizeof(call) == sizeof(int), #call)
#define OBJECT(TYPE)         ((TYPE)(void *)0)
#define DESC                 OBJECT(cublasLtMatmulDesc_t)
#define LAYOUT               OBJECT(cublasLtMatrixLayout_t)
#define HANDLE               OBJECT(cublasLtHandle_t)
#define PREFERENCE           OBJECT(cublasLtMatmulPreference_t)
#define ALGORITHM            OBJECT(const cublasLtMatmulAlgo_t *)
#define VALUE                ((const void *)0)

_Static_assert(sizeof(cublasLtGetVersion()) == sizeof(size_t), "version");
_Static_assert(sizeof(cublasLtGetStatusName(CUBLAS_STATUS_SUCCESS)[0]) == 1, "name");
RETURNS_STATUS(cublasLtCreate(OBJECT(cublasLtHandle_t *)));
RETURNS_STATUS(cublasLtDestroy(HANDLE));
RETURNS_STATUS(cublasLtMatmulDescCreate(OBJECT(cublasLtMatmulDesc_t *), CUBLAS_COMPUTE_32F,
                                        CUDA_R_32F));
RETURNS_STATUS(cublasLtMatmulDescDestroy(DESC));
RETURNS_STATUS(cublasLtMatmulDescSetAttribute(DESC, CUBLASLT_MATMUL_DESC_TRANSA, VALUE, (size_t)4));
RETURNS_STATUS(cublasLtMatrixLayoutCreate(OBJECT(cublasLtMatrixLayout_t *), CUDA_R_32F, (uint64_t)1,
                                          (uint64_t)1, (int64_t)1));
RETURNS_STATUS(cublasLtMatrixLayoutDestroy(LAYOUT));
RETURNS_STATUS(cublasLtMatmulPreferenceCreate(OBJECT(cublasLtMatmulPreference_t *)));
RETURNS_STATUS(cublasLtMatmulPreferenceDestroy(PREFERENCE));
RETURNS_STATUS(cublasLtMatmulPreferenceSetAttribute(PREFERENCE,
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, VALUE,
                                                    (size_t)8));
RETURNS_STATUS(cublasLtMatmulAlgoGetHeuristic(HANDLE, DESC, LAYOUT, LAYOUT, LAYOUT, LAYOUT,
                                              PREFERENCE, 8,
                                              OBJECT(cublasLtMatmulHeuristicResult_t *),
                                              OBJECT(int *)));
RETURNS_STATUS(cublasLtMatmulAlgoConfigGetAttribute(ALGORITHM, CUBLASLT_ALGO_CONFIG_ID,
                                                    OBJECT(void *), (size_t)4, OBJECT(size_t *)));
RETURNS_STATUS(cublasLtMatmulAlgoCapGetAttribute(ALGORITHM, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS,
                                                 OBJECT(void *), (size_t)8, OBJECT(size_t *)));
RETURNS_STATUS(cublasLtMatmul(HANDLE, DESC, VALUE, VALUE, LAYOUT, VALUE, LAYOUT, VALUE, VALUE,
                              LAYOUT, OBJECT(void *), LAYOUT, ALGORITHM, OBJECT(void *), (size_t)0,
                              OBJECT(cudaStream_t)));

#endif

// What compiled is proved; what is left is the count, so that the tables cannot lose rows unseen.
START_TEST(declarations_equal_the_header) {
#define COUNT(...) +1
    ck_assert_int_eq(0 LT_CONSTANT_TABLE(COUNT), 43);
    ck_assert_int_eq(0 LT_FUNCTION_TABLE(COUNT), 16);
}
END_TEST

// ------------------------------------------------------------------------------ the library itself

typedef struct attribute {
    int id;
    size_t bytes;
} attribute;

static const attribute desc_attributes[] = {
    {LT_DESC_TRANSA,          4             },
    {LT_DESC_TRANSB,          4             },
    {LT_DESC_A_SCALE_MODE,    4             },
    {LT_DESC_B_SCALE_MODE,    4             },
    {LT_DESC_FAST_ACCUM,      1             },
    {LT_DESC_A_SCALE_POINTER, sizeof(void *)},
    {LT_DESC_B_SCALE_POINTER, sizeof(void *)},
    {LT_DESC_D_SCALE_POINTER, sizeof(void *)},
};

static const attribute preference_attributes[] = {
    {LT_PREF_WORKSPACE,      8},
    {LT_PREF_REDUCTION_MASK, 4},
    {LT_PREF_ALIGNMENT_A,    4},
    {LT_PREF_ALIGNMENT_B,    4},
    {LT_PREF_ALIGNMENT_C,    4},
    {LT_PREF_ALIGNMENT_D,    4},
};

static const attribute config_attributes[] = {
    {LT_CONFIG_ID,            4},
    {LT_CONFIG_TILE,          4},
    {LT_CONFIG_SPLITK,        4},
    {LT_CONFIG_REDUCTION,     4},
    {LT_CONFIG_CUSTOM,        4},
    {LT_CONFIG_STAGES,        4},
    {LT_CONFIG_INNER_SHAPE,   2},
    {LT_CONFIG_CLUSTER_SHAPE, 2},
};

// The size is taken and another one refused: so the numbers and sizes are the library's.
static void check_attributes(int (*set)(void *, int, const void *, size_t), void *object,
                             const attribute *attributes, size_t count) {
    const uint64_t value[2] = {0, 0};
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(set(object, attributes[i].id, value, attributes[i].bytes), 0);
        ck_assert_int_ne(set(object, attributes[i].id, value, attributes[i].bytes - 1), 0);
    }
}

#define CHECK_ATTRIBUTES(SET, OBJECT, ATTRIBUTES)                                                  \
    check_attributes(SET, OBJECT, ATTRIBUTES, sizeof(ATTRIBUTES) / sizeof((ATTRIBUTES)[0]))

// Descriptors can be built without a device, so no handle is made. Where there is no library there
// is nothing to compare.
START_TEST(installed_library_takes_our_attributes) {
    static lt_library lt;
    const lt_algorithm zero = {{0}};
    void *desc = NULL, *layout = NULL, *preference = NULL;
    unsetenv("QG_CUBLASLT");
    if (!lt_load(&lt))
        return;
    ck_assert_uint_ge(lt.version(), 1);
    ck_assert_int_eq(lt.desc_create(&desc, LT_COMPUTE_32F, LT_TYPE_FP32), 0);
    ck_assert_int_eq(lt.layout_create(&layout, LT_TYPE_E4M3, 32, 16, 32), 0);
    ck_assert_int_eq(lt.preference_create(&preference), 0);
    CHECK_ATTRIBUTES(lt.desc_set, desc, desc_attributes);
    CHECK_ATTRIBUTES(lt.preference_set, preference, preference_attributes);
    for (size_t i = 0; i < sizeof config_attributes / sizeof config_attributes[0]; i++) {
        uint64_t value = 0;
        size_t written = 0;
        ck_assert_int_eq(lt.config_get(&zero, config_attributes[i].id, &value,
                                       config_attributes[i].bytes, &written),
                         0);
        ck_assert_uint_eq(written, config_attributes[i].bytes);
    }
    ck_assert_str_eq(lt.status_name(LT_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
    ck_assert_int_eq(lt.preference_destroy(preference), 0);
    ck_assert_int_eq(lt.layout_destroy(layout), 0);
    ck_assert_int_eq(lt.desc_destroy(desc), 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        declarations_equal_the_header,
        installed_library_takes_our_attributes,
    };
    return RUN_SUITE("product_declarations", tests);
}
