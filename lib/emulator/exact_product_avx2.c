// The code of qg_exact_product for AVX2. See exact_product_text_internal.h.
#include <exact_product_text_internal.h>

void qg_exact_kernel_avx2(exact_tile *tile) { add_tile(tile); }

exact_range qg_exact_range_avx2(int64_t k, const float *x) { return range_of(k, x); }
