// Products through cuBLASLt: what module.cu calls. Plain C: handles and streams are pointers, the
// library is reached through a table of functions, and no header of the toolkit is read.
#ifndef PRODUCT_H
#define PRODUCT_H

#include <qg_cuda_module.h>

QG_EXTERN_C_BEGIN

// Loads the library: QG_CUBLASLT=PATH alone, else libcublasLt.so.13, .12, .so. Sets
// device->cublaslt, or device->cublaslt_missing where it is not there: products are then
// unsupported, everything else works. architecture of `device` must be set. Never unloads.
void product_open(qg_cuda_device *device);

qg_scale_order product_order(const qg_recipe *recipe);
qg_status product_takes(const qg_cuda_product *p, qg_cuda_error *error);
qg_status product_run(qg_cuda_product *p, void *stream, qg_cuda_error *error);

QG_EXTERN_C_END

#endif
