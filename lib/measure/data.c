// The laws' values. See qg_data.h; names and parsing are law.c's. Implements "Data" of the
// definitions: one Philox word per element, binary64 arithmetic, one rounding to binary32.
//
// Elements are made in batches: words, probabilities, normal z, law, each a loop over a small array
// that compilers can vectorise. Every element sees the same operations whatever batch it falls
// into, so tiling does not matter. A word gives p = (word + 1/2) / 2^32, which truncates the normal
// at |z| = 6.34: its variance falls short of 1 by less than 1e-9.
#include <elementary_internal.h>
#include <law_internal.h>

#include <qg_philox.h>
#include <string.h>

enum { BATCH = 512, LANES = 8, LANE_WORDS = 4 * LANES };

// Signs as bits: without branches, loops stay vectorisable.
static uint64_t sign_of(double x) { return qg_bits_of_double(x) & 1ull << 63; }
static double with_sign(double x, uint64_t sign) {
    return qg_double_of_bits((qg_bits_of_double(x) & ~(1ull << 63)) | sign);
}

// A run of a stream's words: those of elements first .. first + count - 1, count <= BATCH.
typedef struct word_run {
    uint32_t room[BATCH + 2 * LANE_WORDS];
} word_run;

// LANES consecutive quads: the rounds of qg_philox, side by side. test_laws.c holds it to
// qg_philox_word.
static void philox_lanes(uint64_t seed, uint32_t stream, uint64_t quad, uint32_t *words) {
    uint32_t w0[LANES], w1[LANES], w2[LANES], w3[LANES];
    uint32_t key_low = (uint32_t)seed, key_high = (uint32_t)(seed >> 32);
    for (int i = 0; i < LANES; i++) {
        w0[i] = (uint32_t)(quad + (uint64_t)i);
        w1[i] = (uint32_t)((quad + (uint64_t)i) >> 32);
        w2[i] = stream;
        w3[i] = 0;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < LANES; i++) {
            uint64_t product0 = (uint64_t)0xD2511F53u * w0[i];
            uint64_t product1 = (uint64_t)0xCD9E8D57u * w2[i];
            w0[i] = (uint32_t)(product1 >> 32) ^ w1[i] ^ key_low;
            w2[i] = (uint32_t)(product0 >> 32) ^ w3[i] ^ key_high;
            w1[i] = (uint32_t)product1;
            w3[i] = (uint32_t)product0;
        }
        key_low += 0x9E3779B9u;
        key_high += 0xBB67AE85u;
    }
    for (int i = 0; i < LANES; i++) {
        words[4 * i] = w0[i];
        words[4 * i + 1] = w1[i];
        words[4 * i + 2] = w2[i];
        words[4 * i + 3] = w3[i];
    }
}

static const uint32_t *make_words(uint64_t seed, uint32_t stream, int64_t first, int count,
                                  word_run *run) {
    int skipped = (int)(first % 4);
    for (int done = 0; done < skipped + count; done += LANE_WORDS)
        philox_lanes(seed, stream, (uint64_t)(first / 4 + done / 4), run->room + done);
    return run->room + skipped;
}

// Where random numbers come from: the streams of one operand.
typedef struct source {
    uint64_t seed;
    uint32_t data, structure;
} source;

static void make_probabilities(const source *from, int64_t first, int count, double *p) {
    word_run run;
    const uint32_t *word = make_words(from->seed, from->data, first, count, &run);
    for (int i = 0; i < count; i++)
        p[i] = ((double)word[i] + 0.5) * 0x1p-32;
}

// qg_normal_quantile of (count) probabilities in place, same bits: the central formula for all,
// then the tail formula for the 15 % that need it, gathered. Probabilities of 32-bit words do not
// reach AS 241's far tail.
static void make_quantiles(int count, double *p) {
    double tail[BATCH];
    int place[BATCH], tails = 0;
    for (int i = 0; i < count; i++) {
        double magnitude = with_sign(p[i] - 0.5, 0); // exact, as is 1/2 less it
        place[tails] = i;
        tail[tails] = 0.5 - magnitude;
        tails += magnitude > 0.425;
    }
    for (int i = 0; i < count; i++)
        p[i] = quantile_central(p[i] - 0.5);
    for (int i = 0; i < tails; i++)
        tail[i] = -log_inline(tail[i]);
    for (int i = 0; i < tails; i++) // apart: sqrt may set errno, which keeps a loop scalar
        tail[i] = sqrt(tail[i]);
    for (int i = 0; i < tails; i++)
        tail[i] = quantile_tail(tail[i]);
    for (int i = 0; i < tails; i++)
        p[place[i]] = with_sign(tail[i], sign_of(p[place[i]]));
}

static void make_normal(const source *from, int64_t first, int count, double *z) {
    make_probabilities(from, first, count, z);
    make_quantiles(count, z);
}

// ------------------------------------------------------------------------- laws element by element

static void make_laplace(int count, double *p) {
    const double b = 0.70710678118654757; // 1 / sqrt 2: variance 1
    for (int i = 0; i < count; i++) {
        double q = p[i] - 0.5; // exact, as is the tail probability 1/2 - |q|
        double magnitude = -b * log_inline(1 - 2 * with_sign(q, 0));
        p[i] = with_sign(magnitude, sign_of(q));
    }
}

static void make_uniform(double a, int count, double *p) {
    for (int i = 0; i < count; i++)
        p[i] = a * (2 * p[i] - 1);
}

static void make_student(const t_knot *knots, int count, double *z) {
    double log_ratio[BATCH];
    for (int i = 0; i < count; i++)
        log_ratio[i] = student_log_ratio(knots, with_sign(z[i], 0));
    for (int i = 0; i < count; i++)
        z[i] = z[i] * exp_inline(log_ratio[i]);
}

static void make_lognormal(double s, const source *from, int64_t first, int count, double *z) {
    word_run run;
    const uint32_t *word = make_words(from->seed, from->structure, first, count, &run);
    for (int i = 0; i < count; i++)
        z[i] = with_sign(exp_inline(s * z[i]), (uint64_t)word[i] >> 31 << 63);
}

static void store(const qg_law *law, int count, const double *value, float *x) {
    uint64_t mask = law->absolute ? ~(1ull << 63) : ~0ull;
    for (int i = 0; i < count; i++) {
        float rounded = (float)(qg_double_of_bits(qg_bits_of_double(value[i]) & mask) * law->sigma);
        x[i] = rounded > law->largest ? law->largest : rounded;
    }
}

// (count) elements from index `first` of the flattened tensor.
static void generate_elements(const qg_law *law, const source *from, int64_t first, int64_t count,
                              float *x) {
    double value[BATCH];
    for (int64_t done = 0; done < count; done += BATCH) {
        int n = count - done < BATCH ? (int)(count - done) : BATCH;
        make_probabilities(from, first + done, n, value);
        if (law->kind != LAW_LAPLACE && law->kind != LAW_UNIFORM)
            make_quantiles(n, value);
        switch (law->kind) {
        case LAW_LAPLACE: make_laplace(n, value); break;
        case LAW_UNIFORM: make_uniform(law->parameter[0], n, value); break;
        case LAW_STUDENT_T: make_student(law->t, n, value); break;
        case LAW_LOGNORMAL: make_lognormal(law->parameter[0], from, first + done, n, value); break;
        default: break;
        }
        store(law, n, value, x + done);
    }
}

// --------------------------------------------------------------------------------- outlier columns

enum { OUTLIER_BELOW = 1 << 25 }; // 2^32 / 128: the words that select a column

// The column that stands in when stream 1 selects none of k: the one with the smallest word. -1 if
// any is selected.
static int64_t stand_in_column(const source *from, int64_t k) {
    int64_t smallest = 0;
    uint32_t smallest_word = UINT32_MAX;
    for (int64_t column = 0; column < k; column += BATCH) {
        word_run run;
        int n = k - column < BATCH ? (int)(k - column) : BATCH;
        const uint32_t *word = make_words(from->seed, from->structure, column, n, &run);
        for (int i = 0; i < n; i++) {
            if (word[i] < OUTLIER_BELOW)
                return -1;
            if (word[i] < smallest_word) {
                smallest_word = word[i];
                smallest = column + i;
            }
        }
    }
    return smallest;
}

// One row; `first` is the index of its first element.
static void generate_outlier_row(const qg_law *law, const source *from, int64_t first, int64_t k,
                                 int64_t stand_in, float *x) {
    double value[BATCH];
    word_run run;
    for (int64_t column = 0; column < k; column += BATCH) {
        int n = k - column < BATCH ? (int)(k - column) : BATCH;
        make_normal(from, first + column, n, value);
        const uint32_t *word = make_words(from->seed, from->structure, column, n, &run);
        for (int i = 0; i < n; i++)
            value[i] *= word[i] < OUTLIER_BELOW ? law->parameter[0] : 1;
        if (stand_in >= column && stand_in < column + n)
            value[stand_in - column] *= law->parameter[0];
        store(law, n, value, x + column);
    }
}

// ------------------------------------------------------------------------- blocks of given crest

// The peak of a block of normals: its place, and the magnitude that no element exceeds.
typedef struct crest_peak {
    int64_t place;
    double magnitude;
} crest_peak;

// Stream 1's word `block` selects the place. A ragged last block counts with its own size; where
// that is too small to reach the crest factor, it stays normal.
static crest_peak find_peak(const qg_law *law, const source *from, int64_t block, int64_t first,
                            int64_t size) {
    double crest = law->parameter[0], squares = 0, z[BATCH];
    crest_peak peak = {-1, qg_double_of_bits(0x7ff0000000000000ull)};
    if (crest * crest >= (double)size)
        return peak;
    uint64_t word = qg_philox_word(from->seed, from->structure, (uint64_t)block);
    peak.place = (int64_t)(word * (uint64_t)size >> 32);
    for (int64_t done = 0; done < size; done += BATCH) {
        int n = size - done < BATCH ? (int)(size - done) : BATCH;
        make_normal(from, first + done, n, z);
        for (int i = 0; i < n; i++)
            squares += done + i == peak.place ? 0 : z[i] * z[i];
    }
    peak.magnitude = crest * sqrt(squares / ((double)size - crest * crest));
    return peak;
}

static void generate_crest_block(const qg_law *law, const source *from, int64_t block,
                                 int64_t first, int64_t size, float *x) {
    crest_peak peak = find_peak(law, from, block, first, size);
    double z[BATCH];
    for (int64_t done = 0; done < size; done += BATCH) {
        int n = size - done < BATCH ? (int)(size - done) : BATCH;
        make_normal(from, first + done, n, z);
        for (int i = 0; i < n; i++) {
            if (with_sign(z[i], 0) > peak.magnitude || done + i == peak.place)
                z[i] = with_sign(peak.magnitude, sign_of(z[i]));
        }
        store(law, n, z, x + done);
    }
}

static void generate_crest_row(const qg_law *law, const source *from, int64_t row, int64_t k,
                               float *x) {
    int64_t g = (int64_t)law->parameter[1], blocks = k / g + (k % g != 0);
    for (int64_t block = 0; block < blocks; block++) {
        int64_t column = block * g, size = k - column < g ? k - column : g;
        generate_crest_block(law, from, row * blocks + block, row * k + column, size, x + column);
    }
}

// ----------------------------------------------------------------------------------------- borders

void qg_law_generate(const qg_law *law, uint64_t seed, int operand, int64_t k, int64_t first_row,
                     int64_t rows, float *x) {
    uint32_t shift = operand ? QG_STREAM_OPERAND_B : 0;
    source from = {seed, QG_STREAM_DATA + shift, QG_STREAM_STRUCTURE + shift};
    if (law->kind == LAW_OUTLIERS) {
        int64_t stand_in = stand_in_column(&from, k);
        for (int64_t row = 0; row < rows; row++)
            generate_outlier_row(law, &from, (first_row + row) * k, k, stand_in, x + row * k);
    } else if (law->kind == LAW_CREST) {
        for (int64_t row = 0; row < rows; row++)
            generate_crest_row(law, &from, first_row + row, k, x + row * k);
    } else {
        generate_elements(law, &from, first_row * k, rows * k, x);
    }
}

static void round_to_bf16(int64_t count, float *x) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = qg_bits_of_float(x[i]);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
        uint32_t quiet_nan = (bits | 0x00400000u) & 0xffff0000u;
        x[i] = qg_float_of_bits((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
    }
}

static uint32_t fp16_magnitude(uint32_t magnitude) {
    if (magnitude > 0x7f800000u) // NaN
        return (magnitude | 0x00400000u) & ~0x1fffu;
    if (magnitude < 0x38800000u) { // below 2^-14 the grid is 2^-24, that of numbers near 1/2
        float shifted = qg_float_of_bits(magnitude) + 0.5f;
        return qg_bits_of_float(shifted - 0.5f);
    }
    magnitude = (magnitude + 0xfff + (magnitude >> 13 & 1)) & ~0x1fffu;
    return magnitude >= 0x47800000u ? 0x7f800000u : magnitude; // 65536 and above
}

static void round_to_fp16(int64_t count, float *x) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = qg_bits_of_float(x[i]);
        x[i] = qg_float_of_bits(fp16_magnitude(bits & 0x7fffffffu) | (bits & 0x80000000u));
    }
}

qg_status qg_input_round(qg_format type, int64_t count, float *x) {
    switch (type) {
    case QG_FORMAT_FP32: return QG_OK;
    case QG_FORMAT_BF16: round_to_bf16(count, x); return QG_OK;
    case QG_FORMAT_FP16: round_to_fp16(count, x); return QG_OK;
    default: return qg_fail(QG_ERROR_ARGUMENT, "input types are fp32, bf16 and fp16");
    }
}
