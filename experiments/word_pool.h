// Texts kept once: equal texts have equal pointers, valid as long as the pool.
#ifndef WORD_POOL_H
#define WORD_POOL_H

#include <qg_status.h>

typedef struct qg_word_pool qg_word_pool;

qg_status qg_word_pool_create(qg_word_pool **out);
void qg_word_pool_free(qg_word_pool *pool); // NULL is fine
// QG_ERROR_MEMORY.
qg_status qg_word_pool_keep(qg_word_pool *pool, const char *text, const char **out);

#endif
