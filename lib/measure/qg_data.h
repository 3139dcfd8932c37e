// Data laws: synthetic tensors that are bit-equal on every machine.
//
// Element (row, column) depends on law, seed, operand and row * k + column alone (Philox words of
// qg_philox.h), so tiles may be generated in any order. One word of the data stream makes one
// element: p = (word + 1/2) / 2^32, the law's quantile in binary64, one rounding to binary32.
// Structure (signs of `lognormal`, columns of `outliers`, places of `crest`) comes from stream 1.
// No libm result is involved. Source: "Data" of the definitions.
//
//   normal         N(0, 1)
//   laplace        variance 1
//   uniform[:A]    on [-A, A]; A = sqrt 3 unless given
//   student_t:NU   Student's t, not rescaled; relative error below 1e-10 for NU >= 1/2. Below
//                  NU = 1/4 its largest values exceed binary32: infinity
//   lognormal:S    +-e^(S z), z normal
//   outliers:X     N(0, 1), columns times X: those whose word of stream 1 (index: the column) is
//                  below 2^25, or else the one with the smallest word
//   crest:K[:G]    N(0, 1) in blocks of G = 32 along a row, but for one element of each, which
//                  becomes +-K sqrt(S / (G - K^2)), S the sum of squares of the others: its own
//                  sign; its place is floor(word * G / 2^32), word number row * blocks + block of
//                  stream 1. Larger others are clipped to it. A ragged last block counts its own
//                  elements as G, and stays normal when they are too few for K.
//   :abs           magnitudes. uniform:A:abs is on [0, A): rounding never gives A
//   :sigma=V       values times V, before rounding (uniform:A:sigma=V is on [-A V, A V])
#ifndef QG_DATA_H
#define QG_DATA_H

#include <qg_format.h>
#include <qg_status.h>
#include <stddef.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

typedef struct qg_law qg_law;

// Reads a law in one of the forms above, with :abs and :sigma=V last, in either order. Numbers are
// positive decimals. QG_ERROR_ARGUMENT with what is wrong: unknown name (with the nearest), a
// parameter missing or out of range (K < sqrt G, G whole), anything out of place. QG_ERROR_MEMORY.
// *out is NULL then. Caller frees with qg_law_free. Tabulating student_t takes about 5 ms.
qg_status qg_law_parse(const char *text, qg_law **out);
void qg_law_free(qg_law *law); // NULL is fine

// The canonical text, which parses to the same law: numbers in their shortest decimal form,
// parameters that were left out written out, then :abs, then :sigma=V unless V is 1.
// Valid as long as the law.
const char *qg_law_name(const qg_law *law);

// The i-th law's form ("uniform[:A]"), NULL past the end: for help and suggestions.
const char *qg_law_listed(size_t i);

// The densities for which theory applies: known standard deviation, mean 0, elements independent.
typedef enum qg_density {
    QG_DENSITY_NONE, // every other law, and any law with :abs
    QG_DENSITY_NORMAL,
    QG_DENSITY_LAPLACE,
    QG_DENSITY_UNIFORM
} qg_density;

// The law's density; *sigma is its standard deviation (meaningless for QG_DENSITY_NONE).
qg_density qg_law_density(const qg_law *law, double *sigma);

// x: (rows, k) row-major binary32, rows first_row .. first_row + rows - 1 of an (m, k) tensor,
// m * k < 2^63. operand 0 is a, 1 is b (streams + 4). One thread; call from as many as you like.
void qg_law_generate(const qg_law *law, uint64_t seed, int operand, int64_t k, int64_t first_row,
                     int64_t rows, float *x);

// Rounds (count) values in place to an input type (QG_FORMAT_FP32, _BF16, _FP16), RNE, overflow to
// infinity: the type of the data before quantization. QG_ERROR_ARGUMENT for another type.
qg_status qg_input_round(qg_format type, int64_t count, float *x);

QG_EXTERN_C_END

#endif
