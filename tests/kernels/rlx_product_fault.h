// RLX's way to cuBLASLt, written from its description in words (defect 14): nothing is asked
// beforehand, and what was made is freed at the end alone, so that an early return keeps it.
// Wrong on purpose.
#ifndef RLX_PRODUCT_FAULT_H
#define RLX_PRODUCT_FAULT_H

#include <product_capability.h>
#include <product_library.h>

// What the function made and did not free.
typedef struct rlx_fault_objects {
    void *desc, *a, *b, *d, *preference;
} rlx_fault_objects;

static inline void rlx_fault_free(const lt_library *lt, rlx_fault_objects *o) {
    void **layouts[] = {&o->a, &o->b, &o->d};
    if (o->preference)
        (void)lt->preference_destroy(o->preference);
    for (int i = 0; i < 3; i++)
        if (*layouts[i])
            (void)lt->layout_destroy(*layouts[i]);
    if (o->desc)
        (void)lt->desc_destroy(o->desc);
    *o = (rlx_fault_objects){0};
}

static inline bool rlx_fault_describe(const lt_library *lt, const qg_cuda_product *p,
                                      rlx_fault_objects *o) {
    int32_t transposed = LT_OP_T, a = product_type(p->b.recipe.element);
    int32_t b = product_type(p->a.recipe.element);
    uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
    return !lt->desc_create(&o->desc, LT_COMPUTE_32F, LT_TYPE_FP32) &&
           !lt->desc_set(o->desc, LT_DESC_TRANSA, &transposed, sizeof transposed) &&
           !lt->desc_set(o->desc, LT_DESC_A_SCALE_POINTER, &p->b.scales, sizeof(void *)) &&
           !lt->desc_set(o->desc, LT_DESC_B_SCALE_POINTER, &p->a.scales, sizeof(void *)) &&
           !lt->layout_create(&o->a, a, k, n, p->k) && !lt->layout_create(&o->b, b, k, m, p->k) &&
           !lt->layout_create(&o->d, LT_TYPE_FP32, n, m, p->n) &&
           !lt->preference_create(&o->preference);
}

// Whether it multiplied. o: zeroed.
static inline bool rlx_fault_multiply(const lt_library *lt, const qg_cuda_product *p,
                                      rlx_fault_objects *o) {
    const float one = 1, zero = 0;
    lt_result result;
    int count = 0;
    if (!rlx_fault_describe(lt, p, o))
        return false;
    if (lt->heuristic(lt->handle, o->desc, o->a, o->b, o->d, o->d, o->preference, 1, &result,
                      &count) != 0)
        return false;
    if (count == 0 ||
        lt->matmul(lt->handle, o->desc, &one, p->b.codes, o->a, p->a.codes, o->b, &zero, p->out,
                   o->d, p->out, o->d, &result.algorithm, NULL, 0, NULL) != 0)
        return false;
    rlx_fault_free(lt, o);
    return true;
}

#endif
