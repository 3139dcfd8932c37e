// The code of qg_exact_product for AVX-512. See exact_product_text_internal.h.
#include <exact_product_text_internal.h>

void qg_exact_kernel_avx512(exact_tile *tile) { add_tile(tile); }

exact_range qg_exact_range_avx512(int64_t k, const float *x) { return range_of(k, x); }
