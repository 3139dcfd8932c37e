// The sums of the software units for AVX2. See software_text_internal.h.
#include <software_text_internal.h>

void qg_software_kernel_avx2(software_tile *tile) { add_tile(tile); }
