// Allocation happens in the borders only; numeric functions take the caller's buffers.
#ifndef QG_MEMORY_H
#define QG_MEMORY_H

#include <qg_status.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

// 64-byte aligned room for count elements of `size` bytes, zeroed; count 0 gives a valid pointer.
// QG_ERROR_OVERFLOW or QG_ERROR_MEMORY with a detail that names `what`; *out is then NULL.
qg_status qg_allocate(void **out, int64_t count, int64_t size, const char *what);
void qg_release(void *pointer); // NULL is fine

QG_EXTERN_C_END

#endif
