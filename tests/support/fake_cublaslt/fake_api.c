// The functions of cuBLASLt that the module calls, and the levers of the tests.
#include "fake_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_algorithm {
    uint64_t index, splitk, mute, unused[5];
} fake_algorithm;

typedef struct fake_result {
    fake_algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} fake_result;

static fake_cublaslt_call last;
static int live, handles;
static char failure[40];
static int countdown; // of "object:N"; 0: off

const fake_cublaslt_call *fake_cublaslt_last(void);
int fake_cublaslt_live(void);
int fake_cublaslt_handles(void);
void fake_cublaslt_fail(const char *what);

const fake_cublaslt_call *fake_cublaslt_last(void) { return &last; }
int fake_cublaslt_live(void) { return live; }
int fake_cublaslt_handles(void) { return handles; }

void fake_cublaslt_fail(const char *what) {
    memset(&last, 0, sizeof last);
    snprintf(failure, sizeof failure, "%s", what ? what : "");
    countdown = strncmp(failure, "object:", 7) == 0 ? atoi(failure + 7) : 0;
}

static bool fails(const char *what) {
    const char *environment = getenv("FAKE_CUBLASLT");
    return strcmp(failure[0] || !environment ? failure : environment, what) == 0;
}

static bool object_fails(void) { return countdown > 0 && --countdown == 0; }

// ----------------------------------------------------------------------------------------- objects

size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void) { return fails("old_version") ? 120700 : 130100; }

const char *cublasLtGetStatusName(int status);
const char *cublasLtGetStatusName(int status) {
    switch (status) {
    case FAKE_OK: return "CUBLAS_STATUS_SUCCESS";
    case FAKE_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case FAKE_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case FAKE_INVALID: return "CUBLAS_STATUS_INVALID_VALUE";
    case FAKE_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case FAKE_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return NULL;
    }
}

int cublasLtCreate(void **handle);
int cublasLtCreate(void **handle) {
    static int any;
    if (fails("create_fails"))
        return FAKE_NOT_INITIALIZED;
    handles++;
    *handle = &any;
    return FAKE_OK;
}

int cublasLtDestroy(void *handle);
int cublasLtDestroy(void *handle) {
    if (!handle)
        return FAKE_INVALID;
    handles--;
    return FAKE_OK;
}

static int create(void **object, size_t bytes) {
    if (object_fails())
        return FAKE_ALLOC_FAILED;
    *object = calloc(1, bytes);
    if (!*object)
        return FAKE_ALLOC_FAILED;
    live++;
    return FAKE_OK;
}

static int destroy(void *object) {
    if (!object)
        return FAKE_INVALID;
    free(object);
    live--;
    return FAKE_OK;
}

int cublasLtMatmulDescCreate(void **desc, int compute, int scale_type);
int cublasLtMatmulDescCreate(void **desc, int compute, int scale_type) {
    int status = create(desc, sizeof(fake_desc));
    if (status == FAKE_OK) {
        ((fake_desc *)*desc)->compute = compute;
        ((fake_desc *)*desc)->scale_type = scale_type;
    }
    return status;
}

int cublasLtMatmulDescDestroy(void *desc);
int cublasLtMatmulDescDestroy(void *desc) { return destroy(desc); }

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                               int64_t leading);
int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                               int64_t leading) {
    int status = create(layout, sizeof(fake_layout));
    if (status == FAKE_OK)
        *(fake_layout *)*layout = (fake_layout){type, rows, columns, leading};
    return status;
}

int cublasLtMatrixLayoutDestroy(void *layout);
int cublasLtMatrixLayoutDestroy(void *layout) { return destroy(layout); }

int cublasLtMatmulPreferenceCreate(void **preference);
int cublasLtMatmulPreferenceCreate(void **preference) {
    int status = create(preference, sizeof(fake_preference));
    if (status == FAKE_OK)
        ((fake_preference *)*preference)->reduction_mask = 7;
    return status;
}

int cublasLtMatmulPreferenceDestroy(void *preference);
int cublasLtMatmulPreferenceDestroy(void *preference) { return destroy(preference); }

// -------------------------------------------------------------------------------------- attributes

// `size` is what the attribute takes; 0: no such attribute.
static int set(void *field, size_t size, const void *value, size_t bytes) {
    if (object_fails())
        return FAKE_ALLOC_FAILED;
    if (!value || size == 0 || bytes != size)
        return FAKE_INVALID;
    memcpy(field, value, bytes);
    return FAKE_OK;
}

int cublasLtMatmulDescSetAttribute(void *object, int attribute, const void *value, size_t bytes);
int cublasLtMatmulDescSetAttribute(void *object, int attribute, const void *value, size_t bytes) {
    fake_desc *d = object;
    switch (attribute) {
    case 3: return set(&d->trans_a, 4, value, bytes);
    case 4: return set(&d->trans_b, 4, value, bytes);
    case 17: return set(&d->a_scale, sizeof(void *), value, bytes);
    case 18: return set(&d->b_scale, sizeof(void *), value, bytes);
    case 19: return set(&d->c_scale, sizeof(void *), value, bytes);
    case 20: return set(&d->d_scale, sizeof(void *), value, bytes);
    case 25: d->sets_fast_accum = 1; return set(&d->fast_accum, 1, value, bytes);
    case 31: return set(&d->a_mode, 4, value, bytes);
    case 32: return set(&d->b_mode, 4, value, bytes);
    case 34: return set(&d->d_mode, 4, value, bytes);
    default: return FAKE_INVALID;
    }
}

int cublasLtMatmulPreferenceSetAttribute(void *object, int attribute, const void *value,
                                         size_t bytes);
int cublasLtMatmulPreferenceSetAttribute(void *object, int attribute, const void *value,
                                         size_t bytes) {
    fake_preference *p = object;
    switch (attribute) {
    case 1: return set(&p->workspace, 8, value, bytes);
    case 3: return set(&p->reduction_mask, 4, value, bytes);
    case 5:
    case 6:
    case 7:
    case 8: return set(&p->alignment[attribute - 5], 4, value, bytes);
    default: return FAKE_INVALID;
    }
}

// Attributes of an algorithm have values that tell it and the attribute apart.
int cublasLtMatmulAlgoConfigGetAttribute(const fake_algorithm *algorithm, int attribute,
                                         void *value, size_t bytes, size_t *written);
int cublasLtMatmulAlgoConfigGetAttribute(const fake_algorithm *algorithm, int attribute,
                                         void *value, size_t bytes, size_t *written) {
    const size_t size = attribute == 7 || attribute == 8 ? 2 : 4;
    if (attribute < 0 || attribute > 8 || bytes != size || algorithm->mute)
        return FAKE_INVALID;
    uint32_t wide = (uint32_t)(100 * attribute) + (uint32_t)algorithm->index + 1;
    if (attribute == 2)
        wide = (uint32_t)algorithm->splitk;
    if (attribute == 3)
        wide = algorithm->splitk > 1 ? 2 : 0;
    uint16_t narrow = (uint16_t)wide;
    memcpy(value, size == 2 ? (const void *)&narrow : (const void *)&wide, size);
    *written = size;
    return FAKE_OK;
}

int cublasLtMatmulAlgoCapGetAttribute(const fake_algorithm *algorithm, int attribute, void *value,
                                      size_t bytes, size_t *written);
int cublasLtMatmulAlgoCapGetAttribute(const fake_algorithm *algorithm, int attribute, void *value,
                                      size_t bytes, size_t *written) {
    const uint64_t flags = 0x0000001000020200u + algorithm->index;
    if (attribute != 15 || bytes != 8 || algorithm->mute)
        return FAKE_INVALID;
    memcpy(value, &flags, 8);
    *written = 8;
    return FAKE_OK;
}

// ----------------------------------------------------------------------------------------- product

static int refuse(const fake_problem *problem) {
    const char *why = fake_refusal(problem);
    snprintf(last.refusal, sizeof last.refusal, "%s", why ? why : "");
    return why ? FAKE_NOT_SUPPORTED : FAKE_OK;
}

static fake_result result_at(int i, uint64_t workspace) {
    fake_result r;
    memset(&r, 0, sizeof r);
    r.algorithm.index = (uint64_t)i;
    r.algorithm.splitk = fails("splitk2") || (fails("splitk_first") && i == 0) ? 2 : i == 2 ? 0 : 1;
    r.algorithm.mute = fails("mute");
    r.workspace = fails("workspace") ? workspace + 1 : i == 0 ? workspace : 0;
    r.state = fails("state") && i == 0 ? FAKE_NOT_SUPPORTED : FAKE_OK;
    r.waves = 0.5f + (float)i;
    return r;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d,
                                   void *preference, int most, fake_result *results, int *count);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d,
                                   void *preference, int most, fake_result *results, int *count) {
    const fake_problem problem = {desc, a, b, c, d};
    const fake_preference *p = preference;
    if (!handle || fails("heuristic_fails"))
        return FAKE_NOT_INITIALIZED;
    last.heuristics++;
    last.requested = most;
    last.reduction_mask = p->reduction_mask;
    last.workspace_preference = p->workspace;
    memcpy(last.alignment, p->alignment, sizeof last.alignment);
    if (most < 1)
        return FAKE_INVALID;
    if (fails("not_supported") || refuse(&problem) != FAKE_OK)
        return FAKE_NOT_SUPPORTED;
    *count = fails("no_result") ? 0 : most < 3 ? most : 3;
    for (int i = 0; i < *count; i++)
        results[i] = result_at(i, p->workspace);
    return FAKE_OK;
}

static void remember(const fake_problem *p, float alpha, float beta, const void *c) {
    last.fast_accum = p->desc->fast_accum;
    last.sets_fast_accum = p->desc->sets_fast_accum;
    last.a_type = p->a->type;
    last.b_type = p->b->type;
    last.c_type = p->c->type;
    last.d_type = p->d->type;
    last.alpha = alpha;
    last.beta = beta;
    last.c = c;
}

// Matrices on 16 bytes, the workspace on 256, and no less than was promised.
static bool misplaced(const void *a, const void *b, const void *c, const void *d,
                      const void *workspace) {
    return (uintptr_t)a % 16 || (uintptr_t)b % 16 || (uintptr_t)c % 16 || (uintptr_t)d % 16 ||
           (uintptr_t)workspace % 256;
}

int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                   const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                   void *d, void *d_layout, const fake_algorithm *algorithm, void *workspace,
                   size_t workspace_bytes, void *stream);
int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                   const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                   void *d, void *d_layout, const fake_algorithm *algorithm, void *workspace,
                   size_t workspace_bytes, void *stream) {
    const fake_problem problem = {desc, a_layout, b_layout, c_layout, d_layout};
    float x, y;
    if (!handle || !algorithm)
        return FAKE_INVALID;
    memcpy(&x, alpha, sizeof x);
    memcpy(&y, beta, sizeof y);
    last.matmuls++;
    last.stream = stream;
    last.workspace = workspace;
    last.workspace_bytes = workspace_bytes;
    last.algorithm = algorithm->index;
    remember(&problem, x, y, c);
    if (misplaced(a, b, c, d, workspace) || (y != 0 && !c))
        return FAKE_INVALID;
    if (fails("matmul_fails"))
        return FAKE_EXECUTION_FAILED;
    if (refuse(&problem) != FAKE_OK)
        return FAKE_NOT_SUPPORTED;
    fake_multiply(&problem, x, a, b, y, c, d);
    // What lies in the workspace is the library's to destroy, at any time.
    if (workspace_bytes)
        memset(workspace, 0xa5, workspace_bytes);
    return FAKE_OK;
}
