// Operands worth testing, for check_vectors generate: level 1 crosses tables of interesting ones,
// level 2 draws random ones (Philox: the same seed gives the same vectors everywhere).
#ifndef VECTOR_OPERANDS_H
#define VECTOR_OPERANDS_H

#include <qgvec.h>

// Called for every vector; only the input fields of `c` are set. A failure ends the generation.
typedef qg_status (*qg_vector_sink)(void *context, qg_vector_case *c);

// QG_ERROR_MEMORY, or what the sink returned.
qg_status qg_vector_operands_level1(const qg_vector_header *header, qg_vector_sink sink,
                                    void *context);
qg_status qg_vector_operands_level2(const qg_vector_header *header, uint64_t seed, int64_t count,
                                    qg_vector_sink sink, void *context);

#endif
