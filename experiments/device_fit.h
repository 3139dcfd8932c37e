// Which unit a product is of: the black-box probe and the search over the emulator's units.
//
// Each row of a holds 2^-6 but for +2^8 at i and -2^8 at j. While the large term is live, an
// accumulator of few bits loses the small ones: the sum counts those that survived, and with many
// pairs (i, j) the tree of the summation falls out of one product. Power 8: b is all ones. Power 16:
// b has 2^8 at i and j and 1 to 15/8 times 2^-6 elsewhere, so that +-2^16 stands beside 2^-12 on the
// diagonal, and the binary32 sums of promotion and split-K lose bits, too.
#ifndef DEVICE_FIT_H
#define DEVICE_FIT_H

#include <device_product.h>

// K of the published table; and one of which no promotion interval is a part of a split, so that every
// tree of the search gives other bits.
enum { DEVICE_PAIRS_MOST = 48, DEVICE_TABLE_K = 1024, DEVICE_PROBE_LENGTH = 1280 };

typedef struct device_pair {
    int64_t i, j;
} device_pair;

typedef struct device_signature {
    int power; // 8 or 16
    int pairs;
    device_pair pair[DEVICE_PAIRS_MOST];
    device_product product; // E4M3 under scale 1, binary32 outputs
} device_signature;

// k: one of the above. pairs: a multiple of 16 up to DEVICE_PAIRS_MOST; the first six are those of the published table.
// Free with device_signature_free.
qg_status device_signature_open(int power, int pairs, int64_t k, device_signature *out);
void device_signature_free(device_signature *s);

// The survivors of a pair in the output (m, n) of the signature's product; power 16: in units of
// 2^-12, no whole number.
double device_signature_survivors(const device_signature *s, int pair, const float *out);
int64_t device_signature_outputs(const device_signature *s);

typedef struct device_fit {
    char unit[DEVICE_UNIT_NAME];
    int64_t differences; // outputs of all signatures that it does not explain
    int exact;           // units that explain all of them; `unit` is the first
} device_fit;

// measured[s]: the outputs of signature s. Promotions and splits of the units with a model of FP8
// are tried, plain ones first.
qg_status device_fit_units(const device_signature *signatures, int count,
                           const float *const *measured, device_fit *fit);

#endif
