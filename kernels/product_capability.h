// What cuBLASLt multiplies, as a table that is asked before the call: without a device the library
// validates nothing, and what it refuses it refuses late and without a reason.
//
// One row per kind of product. The table says what its sources say; the library's own answer
// (NOT_SUPPORTED, no algorithm) still counts where the table is too generous.
#ifndef PRODUCT_CAPABILITY_H
#define PRODUCT_CAPABILITY_H

#include <product_library.h>

QG_EXTERN_C_BEGIN

// Sets of element formats.
enum { PRODUCT_FP8, PRODUCT_FP4 };

enum { PRODUCT_ARCHITECTURE_ANY = 9999 };

typedef struct product_kind {
    const char *name;
    int32_t elements;       // PRODUCT_FP8: E4M3 and E5M2 but not E5M2 twice; PRODUCT_FP4: E2M1
    int32_t a_mode, b_mode; // LT_SCALE_* of our a and b, not the library's A and B
    int32_t least_version;
    int32_t least_architecture, most_architecture; // both included
    int32_t m_multiple, n_multiple, k_multiple;
    int32_t gives_fp8;        // outputs E4M3, and E5M2 where an operand is E5M2
    int32_t accumulates_fast; // knows the attribute
    const char *source;
} product_kind;

// The device and the library that the product would run on.
typedef struct product_site {
    int32_t architecture;
    int64_t version;
} product_site;

// The i-th row, NULL past the end.
const product_kind *product_kind_at(size_t i);

// The scale mode of an operand's recipe, or -1.
int32_t product_scale_mode(const qg_recipe *recipe);

// The type of the library, or -1.
int32_t product_type(qg_format format);

// The row that takes the product, NULL with a reason. Reads no pointer.
const product_kind *product_kind_of(const qg_cuda_product *p, const product_site *site,
                                    qg_cuda_error *error);

QG_EXTERN_C_END

#endif
