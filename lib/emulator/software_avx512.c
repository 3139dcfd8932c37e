// The sums of the software units for AVX-512. See software_text_internal.h.
#include <software_text_internal.h>

void qg_software_kernel_avx512(software_tile *tile) { add_tile(tile); }
