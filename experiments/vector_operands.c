// Operands worth testing. See vector_operands.h. The tables are in the manner of TestFloat's: every
// place where a conversion or a scale rule changes its mind, and the numbers next to it.
#include <vector_operands_internal.h>

#include <qg_block_scale.h>
#include <qg_memory.h>

#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void emit(generator *g) { qg_vector_emit(g); }

static uint32_t random_word(generator *g) { return qg_vector_random_word(g); }

// ------------------------------------------------------------------------------ sets of numbers

// A growing set of words, sorted and made unique in the end.
typedef struct set {
    uint64_t *values;
    size_t count, room;
    bool failed;
} set;

static void add(set *s, uint64_t value) {
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 1024;
        uint64_t *values = realloc(s->values, room * sizeof *values);
        if (!values) {
            s->failed = true;
            return;
        }
        s->values = values;
        s->room = room;
    }
    s->values[s->count++] = value;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void make_unique(set *s) {
    size_t kept = 0;
    if (s->count > 1)
        qsort(s->values, s->count, sizeof *s->values, by_value);
    for (size_t i = 0; i < s->count; i++)
        if (i == 0 || s->values[i] != s->values[i - 1])
            s->values[kept++] = s->values[i];
    s->count = kept;
}

// A magnitude and its neighbours, in both signs.
static void add_around(set *s, double magnitude) {
    if (!(magnitude < 0x1.ffffffp127))
        return;
    uint32_t bits = qg_bits_of_float((float)magnitude);
    for (int step = -1; step <= 1; step++) {
        uint32_t near = bits + (uint32_t)step;
        if (near > 0x7f800000u) // below zero
            continue;
        add(s, near);
        add(s, near | 0x80000000u);
    }
}

// ------------------------------------------------------------------------------- binary32 words

static const uint32_t float_words[] = {
    0x00000000, 0x00000001, 0x00000002, 0x00400000, 0x007fffff, 0x00800000, 0x00800001, 0x3f7fffff,
    0x3f800000, 0x3f800001, 0x40000000, 0x40490fdb, 0x4effffff, 0x4f000000, 0x7f000000, 0x7f7ffffe,
    0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fc00001, 0x7fffffff};

// Magnitude codes of interest: all of a small format, the ends of every binade of a wide one.
static void add_magnitudes(set *s, const qg_format_info *info) {
    if (info->max_code < 4096) {
        for (uint64_t code = 0; code <= info->max_code; code++)
            add(s, code);
        return;
    }
    uint64_t binade = 1ull << info->mbits;
    for (uint64_t first = 0; first <= info->max_code; first += binade) {
        // The binades of fp64 that binary32 reaches, all of the others.
        int exponent = (int)(first >> info->mbits) - info->bias;
        if (exponent < -152 || exponent > 129)
            continue;
        add(s, first);
        add(s, first + 1);
        add(s, first + binade / 2);
        add(s, first + binade - 1);
    }
    add(s, info->max_code);
    make_unique(s);
}

// Values, midpoints between neighbouring values, and what lies next to each.
static void add_format_values(set *s, const qg_format_info *info) {
    set codes = {0};
    add_magnitudes(&codes, info);
    for (size_t i = 0; i < codes.count; i++) {
        uint64_t code = codes.values[i];
        if (code > info->max_code)
            continue;
        double value = info->kind == QG_KIND_INT ? (double)code * qg_double_pow2(-info->bias)
                                                 : qg_decode_magnitude(info, code);
        double next = info->kind == QG_KIND_INT ? value + qg_double_pow2(-info->bias)
                      : code < info->max_code   ? qg_decode_magnitude(info, code + 1)
                                                : 0.0;
        if (next == 0.0) // beyond the largest: as far as the last step went
            next = code > 0 ? 2.0 * value - qg_decode_magnitude(info, code - 1) : 2.0 * value;
        add_around(s, value);
        add_around(s, value + (next - value) / 2);
        add_around(s, next);
    }
    double smallest = qg_format_min_positive(info), largest = qg_format_max(info);
    add_around(s, smallest / 2);
    add_around(s, smallest / 4);
    add_around(s, 2 * largest);
    add_around(s, qg_double_pow2(qg_format_emax(info) + 1));
    s->failed = s->failed || codes.failed;
    free(codes.values);
}

static void encode_level1(generator *g) {
    static const uint32_t words[] = {0,          1,          0x0000ffff, 0x00010000,
                                     0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000,
                                     0xc0000000, 0xfffeffff, 0xffff0000, 0xffffffff};
    bool stochastic = qg_rounding_is_stochastic(g->h->conversion.rounding);
    qg_format_info info = qg_format_describe(g->h->format);
    set s = {0};
    for (size_t i = 0; i < LENGTH(float_words); i++) {
        add(&s, float_words[i]);
        add(&s, float_words[i] | 0x80000000u);
    }
    add_format_values(&s, &info);
    make_unique(&s);
    if (s.failed)
        g->status = qg_fail(QG_ERROR_MEMORY, "no memory for the operands");
    for (size_t i = 0; i < s.count; i++) {
        g->c.values[0][0] = s.values[i];
        for (size_t w = 0; w < (stochastic ? LENGTH(words) : 1); w++) {
            if (stochastic)
                g->c.values[1][0] = words[w];
            emit(g);
        }
    }
    free(s.values);
}

// Half of the words are any binary32, half lie where the format's numbers are.
static void encode_level2(generator *g, int64_t count) {
    qg_format_info info = qg_format_describe(g->h->format);
    int low = qg_double_exponent(qg_format_min_positive(&info)) - 3;
    int high = qg_format_emax(&info) + 3;
    low = low < -149 ? -149 : low;
    high = high > 127 ? 127 : high;
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = random_word(g), choice = random_word(g), r = random_word(g);
        if (choice & 1) {
            int exponent = low + (int)((choice >> 1) % (uint32_t)(high - low + 1));
            uint32_t field = exponent < -126 ? 0 : (uint32_t)(exponent + 127);
            uint32_t fraction = word & 0x7fffffu;
            if (field == 0)
                fraction = (fraction >> (-127 - exponent)) | 1u << (149 + exponent);
            word = (word & 0x80000000u) | field << 23 | fraction;
        }
        g->c.values[0][0] = word;
        if (g->h->field_count == 3)
            g->c.values[1][0] = r;
        emit(g);
    }
}

// ------------------------------------------------------------------------------------------- codes

static void decode_level1(generator *g) {
    qg_format_info info = qg_format_describe(g->h->format);
    if (info.bits <= 16) {
        for (uint64_t code = 0; code < 1ull << info.bits; code++) {
            g->c.values[0][0] = code;
            emit(g);
        }
        return;
    }
    set s = {0};
    uint64_t sign = qg_format_sign_bit(&info);
    add_magnitudes(&s, &info);
    for (size_t i = 0, plain = s.count; i < plain; i++)
        add(&s, s.values[i] | sign);
    for (uint64_t beyond = 0; beyond < 3; beyond++) { // infinity and NaNs
        add(&s, info.inf_code + beyond);
        add(&s, (info.inf_code + beyond) | sign);
    }
    add(&s, sign | (sign - 1));
    make_unique(&s);
    if (s.failed)
        g->status = qg_fail(QG_ERROR_MEMORY, "no memory for the operands");
    for (size_t i = 0; i < s.count; i++) {
        g->c.values[0][0] = s.values[i] << info.shift;
        emit(g);
    }
    free(s.values);
}

static void decode_level2(generator *g, int64_t count) {
    qg_format_info info = qg_format_describe(g->h->format);
    for (int64_t i = 0; i < count; i++) {
        uint64_t code = (uint64_t)random_word(g) << 32 | random_word(g);
        g->c.values[0][0] = code >> (64 - info.bits) >> info.shift << info.shift;
        emit(g);
    }
}

// ------------------------------------------------------------------------------------------ blocks

// Fractions of an amax at which some rule changes its exponent.
static size_t amax_fractions(const qg_element *e, uint32_t fractions[16]) {
    uint32_t of_max = qg_float_fraction(e->max);
    uint32_t even = e->mbits < 23 ? (1u << 23) - (1u << (22 - e->mbits)) : 0;
    const uint32_t list[] = {0,      1,          0x7fffff,   0x400000, 0x3fffff, 0x400001,
                             of_max, of_max + 1, of_max - 1, even,     even + 1, even - 1};
    size_t count = 0;
    for (size_t i = 0; i < LENGTH(list); i++)
        if (list[i] < 1u << 23)
            fractions[count++] = list[i];
    return count;
}

static uint32_t float_of(int exponent, uint32_t fraction) {
    if (exponent > 127)
        return 0x7f7fffffu;
    if (exponent >= -126)
        return (uint32_t)(exponent + 127) << 23 | fraction;
    return exponent < -149 ? 1u : (fraction | 1u << 23) >> (-126 - exponent);
}

// Elements that do not exceed `amax`: random fractions, up to `spread` binades below it.
static void fill_below(generator *g, uint32_t amax, uint32_t spread) {
    int64_t count = g->h->fields[0].count;
    int top = amax ? qg_float_exponent(qg_float_of_bits(amax)) : 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = random_word(g);
        int exponent = top - (int)(word % spread);
        uint32_t bits = exponent < -149 ? 0 : float_of(exponent, word >> 9 & 0x7fffffu);
        g->c.values[0][i] = (bits > amax ? amax : bits) | (word & 0x80000000u);
    }
}

static bool is_stochastic(const generator *g) {
    return qg_rounding_is_stochastic(g->h->recipe.conversion.rounding);
}

static float block_amax(const generator *g) {
    float amax = 0.0f;
    for (int64_t i = 0; i < g->h->fields[0].count; i++)
        amax =
            qg_amax_step(QG_AMAX_OVER_FINITE, amax, qg_float_of_bits((uint32_t)g->c.values[0][i]));
    return amax;
}

// The block that is filled, with random words where it needs them, once per tensor amax.
static void emit_block(generator *g, bool all_amaxes) {
    static const float special[] = {0.0f, 0x1p-149f, 0x1p-126f, 1.0f, 2688.0f, 1536.0f, 0x1p126f};
    int amax = 1;
    if (is_stochastic(g)) {
        for (int64_t i = 0; i < g->h->fields[1].count; i++)
            g->c.values[1][i] = random_word(g);
        amax = 2;
    }
    if (!qg_rule_has_tensor_scale(g->h->recipe.rule)) {
        emit(g);
        return;
    }
    uint64_t *tensor = g->c.values[amax];
    float own = block_amax(g);
    *tensor = qg_bits_of_float(own);
    emit(g);
    *tensor = qg_bits_of_float(own < 0x1p120f ? 5.3f * own : own);
    emit(g);
    for (size_t i = 0; all_amaxes && i < LENGTH(special); i++) {
        *tensor = qg_bits_of_float(special[i]);
        emit(g);
    }
    if (all_amaxes) {
        *tensor = 0x7f7fffffu;
        emit(g);
        *tensor = 0x7f800000u;
        emit(g);
    }
}

static void fill(generator *g, uint32_t word) {
    for (int64_t i = 0; i < g->h->fields[0].count; i++)
        g->c.values[0][i] = word;
}

// The amaxes at which the rule changes its mind, in the binades where formats end.
static void emit_amaxes(generator *g) {
    static const int exponents[] = {-149, -148, -140, -133, -127, -126, -125, -119,
                                    -118, -40,  -10,  -1,   0,    1,    7,    8,
                                    9,    15,   16,   100,  119,  120,  126,  127};
    qg_element e = qg_element_of(g->h->recipe.element);
    uint32_t fractions[16];
    size_t count = amax_fractions(&e, fractions);
    int64_t n = g->h->fields[0].count;
    for (size_t i = 0; i < LENGTH(exponents); i++)
        for (size_t j = 0; j < count; j++) {
            uint32_t amax = float_of(exponents[i], fractions[j]);
            fill_below(g, amax, 1 + random_word(g) % 12);
            g->c.values[0][random_word(g) % (uint64_t)n] = amax | (random_word(g) & 0x80000000u);
            emit_block(g, false);
        }
}

// Zeros, NaN and infinity alone, at every place (of a large block: at 32 of them), and together.
static void emit_edges(generator *g) {
    static const uint32_t whole[] = {0,          0x80000000, 0x00000001, 0x007fffff, 0x3f800000,
                                     0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000};
    static const uint32_t single[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x00000001};
    enum { PLACES = 32 };
    int64_t n = g->h->fields[0].count, places = n < PLACES ? n : PLACES;
    for (size_t i = 0; i < LENGTH(whole); i++) {
        fill(g, whole[i]);
        emit_block(g, true);
    }
    for (size_t i = 0; i < LENGTH(single); i++)
        for (int64_t place = 0; place < places; place++) {
            bool zeros = i == 3; // the smallest number among zeros
            fill_below(g, zeros ? 0 : 0x40600000, 8);
            g->c.values[0][n <= PLACES ? place : place * (n - 1) / (PLACES - 1)] = single[i];
            emit_block(g, false);
        }
    fill_below(g, 0x3f800000, 8);
    g->c.values[0][0] = 0x7fc00000;
    g->c.values[0][n - 1] = 0x7f800000;
    emit_block(g, true);
}

static void quantize_level2(generator *g, int64_t count) {
    static const uint32_t single[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x7f7fffff, 0x80000000};
    int64_t n = g->h->fields[0].count;
    for (int64_t i = 0; i < count; i++) {
        uint32_t choice = random_word(g);
        int exponent = choice & 1 ? (int)(choice >> 8) % 277 - 149 : (int)(choice >> 8) % 16 - 8;
        uint32_t amax = float_of(exponent, random_word(g) >> 9);
        fill_below(g, amax, 1 + random_word(g) % 16);
        if (choice >> 1 & 1)
            g->c.values[0][random_word(g) % (uint64_t)n] = amax;
        if ((choice >> 2 & 31) == 0)
            g->c.values[0][random_word(g) % (uint64_t)n] = single[random_word(g) % LENGTH(single)];
        if (is_stochastic(g))
            for (int64_t j = 0; j < n; j++)
                g->c.values[1][j] = random_word(g);
        if (qg_rule_has_tensor_scale(g->h->recipe.rule)) {
            float own = block_amax(g), factor = 1.0f + (float)(random_word(g) >> 20) * 0x1p-6f;
            float tensor = own < 0x1p120f ? own * factor : own;
            g->c.values[is_stochastic(g) ? 2 : 1][0] = qg_bits_of_float(tensor);
        }
        emit(g);
    }
}

// --------------------------------------------------------------------------------------- levels

static qg_status begin(generator *g, const qg_vector_header *header, uint64_t seed,
                       qg_vector_sink sink, void *context) {
    *g = (generator){.h = header, .sink = sink, .context = context, .seed = seed};
    return qg_vector_case_create(header, &g->c);
}

static qg_status end(generator *g) {
    qg_vector_case_free(&g->c);
    return g->status;
}

qg_status qg_vector_operands_level1(const qg_vector_header *header, qg_vector_sink sink,
                                    void *context) {
    generator g;
    qg_status status = begin(&g, header, 0, sink, context);
    if (status != QG_OK)
        return status;
    switch (header->kind) {
    case QG_VECTOR_ENCODE: encode_level1(&g); break;
    case QG_VECTOR_DECODE: decode_level1(&g); break;
    case QG_VECTOR_DOT: qg_vector_dot_level1(&g); break;
    default: emit_edges(&g); emit_amaxes(&g);
    }
    return end(&g);
}

qg_status qg_vector_operands_level2(const qg_vector_header *header, uint64_t seed, int64_t count,
                                    qg_vector_sink sink, void *context) {
    generator g;
    qg_status status = begin(&g, header, seed, sink, context);
    if (status != QG_OK)
        return status;
    switch (header->kind) {
    case QG_VECTOR_ENCODE: encode_level2(&g, count); break;
    case QG_VECTOR_DECODE: decode_level2(&g, count); break;
    case QG_VECTOR_DOT: qg_vector_dot_level2(&g, count); break;
    default: quantize_level2(&g, count);
    }
    return end(&g);
}
