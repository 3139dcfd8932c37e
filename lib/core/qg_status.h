// What every fallible function returns, and the one line of detail behind it.
// The library neither prints nor exits: programs turn a status and its detail into a message.
#ifndef QG_STATUS_H
#define QG_STATUS_H

#include <qg_hd.h>

QG_EXTERN_C_BEGIN

typedef enum qg_status {
    QG_OK = 0,
    QG_ERROR_ARGUMENT,    // a value the caller can correct: names, sizes, combinations
    QG_ERROR_OVERFLOW,    // a product of sizes does not fit 63 bits
    QG_ERROR_MEMORY,      // an allocation failed
    QG_ERROR_UNSUPPORTED, // well formed, but this build or this combination cannot do it
    QG_ERROR_IO,          // the operating system refused: open, read, write, rename, disk full
    QG_ERROR_DATA,        // a file's content is malformed or lies about itself
    QG_ERROR_ENVIRONMENT  // floating-point environment or processor not as required
} qg_status;

// A short phrase for the status, never NULL.
const char *qg_status_text(qg_status status);

// The detail of this thread's last failing call: one line, without a newline; "" if there is none.
// Valid until this thread's next failing call.
const char *qg_detail(void);

// Records a formatted detail for this thread and returns `status`, so that a function can say
// `return qg_fail(QG_ERROR_ARGUMENT, "k is 0: a tensor needs at least one column")`.
// Details longer than 511 bytes are cut.
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
qg_status qg_fail(qg_status status, const char *format, ...);

QG_EXTERN_C_END

#endif
