// Names of formats and rounding modes: printing, reading, listing.
#ifndef QG_FORMAT_NAME_H
#define QG_FORMAT_NAME_H

#include <qg_codec.h>
#include <qg_status.h>
#include <stddef.h>

QG_EXTERN_C_BEGIN

enum { QG_NAME_SIZE = 48 }; // room for any canonical name, with its terminating zero

// Writes the canonical lower-case name, which qg_format_parse reads back as the same format.
void qg_format_name(qg_format format, char name[QG_NAME_SIZE]);

// Reads a canonical name, an alias (f16, e4m3fn, float8_e4m3fn, ...) or an all-finite minifloat
// f<N>e<X>m<Y>[b<B>]. A minifloat name without a bias that collides with a hardware format means
// the hardware format. QG_ERROR_ARGUMENT: unknown name, or a minifloat whose parts do not add up or
// whose values are not binary32 numbers.
qg_status qg_format_parse(const char *name, qg_format *out);

// The i-th canonical name of the table, NULL past the end: for lists and suggestions.
const char *qg_format_listed(size_t i);

// rne rna rtz rtp rtn rto stochastic[:A|B|C[:BITS]]; a stochastic name is printed in full.
void qg_rounding_name(qg_rounding rounding, char name[QG_NAME_SIZE]);
qg_status qg_rounding_parse(const char *name, qg_rounding *out);
const char *qg_rounding_listed(size_t i);

QG_EXTERN_C_END

#endif
