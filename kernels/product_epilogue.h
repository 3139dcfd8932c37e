// What follows a product whose epilogue the library has not: + c, + bias of binary32, the
// conversion.
#ifndef PRODUCT_EPILOGUE_H
#define PRODUCT_EPILOGUE_H

#include <qg_cuda_module.h>

QG_EXTERN_C_BEGIN

// out[i] = RNE(fl(fl(fl(product[i] + c[i]) + bias[i % n]) * out_scale)); FP8 outputs saturate.
typedef struct product_epilogue {
    int64_t count, n;
    const float *product;   // (count); may be out
    const void *c;          // of out_type, bf16 where that is FP8; NULL: none
    const float *bias;      // (n)
    const float *out_scale; // one; NULL: 1
    qg_format out_type;
    void *out;
} product_epilogue;

qg_status launch_product_epilogue(const product_epilogue *args, void *stream, qg_cuda_error *error);

QG_EXTERN_C_END

#endif
