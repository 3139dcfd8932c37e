// The code of qg_exact_product in plain C. See exact_product_text_internal.h.
#include <exact_product_text_internal.h>

void qg_exact_kernel_scalar(exact_tile *tile) { add_tile(tile); }

exact_range qg_exact_range_scalar(int64_t k, const float *x) { return range_of(k, x); }
