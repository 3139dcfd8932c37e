// Digests: XXH3-64 (libxxhash) over bytes, streamed. What they identify: design of the result file.
#ifndef QG_DIGEST_H
#define QG_DIGEST_H

#include <qg_status.h>
#include <stddef.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

typedef struct qg_digest qg_digest;

uint64_t qg_digest_bytes(const void *bytes, size_t size);

qg_status qg_digest_create(qg_digest **out);
void qg_digest_reset(qg_digest *digest);
void qg_digest_add(qg_digest *digest, const void *bytes, size_t size);
uint64_t qg_digest_value(const qg_digest *digest);
void qg_digest_free(qg_digest *digest); // NULL is fine

QG_EXTERN_C_END

#endif
