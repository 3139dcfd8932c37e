// Operands of dot products worth testing: special values against each other, scales, sums that
// cancel, and terms far apart. See vector_operands.h.
#include <vector_operands_internal.h>

#include <vector_dot.h>

#include <string.h>

enum { MOST_CODES = 32 };

typedef struct code_list {
    uint64_t codes[MOST_CODES];
    int count;
} code_list;

// One operand: where its codes and scales are, and codes of its format.
typedef struct operand {
    uint64_t *codes, *scales; // scales: NULL for units without
    qg_format_info info;
    code_list list;
    uint64_t zero, one, minus_one, largest, minus_largest, smallest;
} operand;

typedef struct dot {
    generator *g;
    int64_t k, scales; // scales: per operand
    operand a, b;
    uint64_t *c;
    qg_format_info accumulator, scale;
    code_list c_list, scale_list;
    uint64_t c_zero, c_one, c_minus_one, scale_one;
    uint64_t turn; // of the places that take a product
} dot;

// ------------------------------------------------------------------------------------------ codes

static void add(code_list *list, uint64_t code) {
    for (int i = 0; i < list->count; i++)
        if (list->codes[i] == code)
            return;
    if (list->count < MOST_CODES)
        list->codes[list->count++] = code;
}

static void add_signed(code_list *list, const qg_format_info *info, uint64_t magnitude) {
    add(list, magnitude << info->shift);
    add(list, (magnitude | qg_format_sign_bit(info)) << info->shift);
}

static uint64_t encoded(const qg_format_info *info, double x) {
    qg_conversion conversion = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX
    };
    return qg_encode(info, x, &conversion, 0);
}

// Zero, the ends of the subnormals and of the normals, one and what follows it, infinity, a quiet
// and a signalling NaN, in both signs (where -0 is a NaN it is there as well).
static void list_elements(const qg_format_info *info, code_list *list) {
    uint64_t normal = 1ull << info->mbits, one = (uint64_t)info->bias << info->mbits;
    uint64_t ones = (1ull << (info->ebits + info->mbits)) - 1;
    const uint64_t magnitudes[] = {0, 1, normal - 1, normal, one, one + 1, info->max_code};
    for (size_t i = 0; i < sizeof magnitudes / sizeof magnitudes[0]; i++)
        add_signed(list, info, magnitudes[i]);
    if (info->inf_code != QG_NO_INF) {
        add_signed(list, info, info->inf_code);
        add(list, (info->inf_code + 1) << info->shift);
    }
    if (info->nan == QG_NAN_ONES)
        add_signed(list, info, ones);
}

static void list_accumulators(const qg_format_info *info, code_list *list) {
    uint64_t one = (uint64_t)info->bias << info->mbits;
    add_signed(list, info, 0);
    add_signed(list, info, one);
    add_signed(list, info, 1);
    add_signed(list, info, info->max_code);
    add_signed(list, info, info->inf_code);
    add(list, qg_encode_nan_code(info, 0));
}

static void list_scales(const qg_format_info *info, code_list *list) {
    static const uint64_t e8m0[] = {0, 1, 126, 127, 128, 254, 255};
    static const uint64_t ue4m3[] = {0, 1, 0x07, 0x08, 0x38, 0x7e, 0x7f};
    for (size_t i = 0; i < sizeof e8m0 / sizeof e8m0[0]; i++)
        add(list, info->zero ? ue4m3[i] : e8m0[i]);
}

static operand operand_of(generator *g, qg_format format, int codes, int scales) {
    operand o = {
        g->c.values[codes],
        scales >= 0 ? g->c.values[scales] : NULL,
        qg_format_describe(format),
        {{0}, 0},
        0,
        0,
        0,
        0,
        0,
        0
    };
    list_elements(&o.info, &o.list);
    o.one = encoded(&o.info, 1.0);
    o.minus_one = encoded(&o.info, -1.0);
    o.largest = qg_encode_max(&o.info, 0);
    o.minus_largest = qg_encode_max(&o.info, 1);
    o.smallest = 1ull << o.info.shift;
    return o;
}

static dot dot_of(generator *g) {
    const qg_vector_header *h = g->h;
    qg_vector_dot_fields f = qg_vector_dot_fields_of(h);
    dot d = {.g = g, .k = h->k, .c = g->c.values[f.c]};
    d.a = operand_of(g, h->a, f.a, f.sa);
    d.b = operand_of(g, h->b, f.b, f.sb);
    d.accumulator = qg_format_describe(h->c);
    list_accumulators(&d.accumulator, &d.c_list);
    d.c_one = encoded(&d.accumulator, 1.0);
    d.c_minus_one = encoded(&d.accumulator, -1.0);
    if (f.sa < 0)
        return d;
    d.scales = h->fields[f.sa].count;
    d.scale = qg_format_describe((qg_format)h->scale);
    list_scales(&d.scale, &d.scale_list);
    d.scale_one = encoded(&d.scale, 1.0);
    return d;
}

// ---------------------------------------------------------------------------------------- level 1

static void fill(uint64_t *codes, int64_t count, uint64_t code) {
    for (int64_t i = 0; i < count; i++)
        codes[i] = code;
}

static void set_scales(dot *d, uint64_t sa, uint64_t sb) {
    if (!d->scales)
        return;
    fill(d->a.scales, d->scales, sa);
    fill(d->b.scales, d->scales, sb);
}

static void set_all(dot *d, uint64_t a, uint64_t b) {
    fill(d->a.codes, d->k, a);
    fill(d->b.codes, d->k, b);
}

static void set_product(dot *d, int64_t place, uint64_t a, uint64_t b) {
    d->a.codes[place] = a;
    d->b.codes[place] = b;
}

static void emit(dot *d, uint64_t c) {
    *d->c = c;
    qg_vector_emit(d->g);
}

static int64_t next_place(dot *d) { return (int64_t)(d->turn++ % (uint64_t)d->k); }

// Each special value times each, alone with each C, and in all places.
static void emit_specials(dot *d) {
    for (int i = 0; i < d->a.list.count; i++)
        for (int j = 0; j < d->b.list.count; j++) {
            uint64_t a = d->a.list.codes[i], b = d->b.list.codes[j];
            for (int c = 0; c < d->c_list.count; c++) {
                set_all(d, d->a.zero, d->b.zero);
                set_product(d, next_place(d), a, b);
                emit(d, d->c_list.codes[c]);
            }
            set_all(d, a, b);
            emit(d, d->c_zero);
        }
}

// Finite elements of both signs, the same in every run.
static void set_mixture(dot *d) {
    for (int64_t i = 0; i < d->k; i++)
        set_product(d, i, i % 3 == 1 ? d->a.minus_one : d->a.one,
                    i % 4 == 2 ? d->b.smallest : d->b.one);
}

// Each scale with each: in all blocks, and in one block among ones.
static void emit_scales(dot *d) {
    for (int i = 0; i < d->scale_list.count; i++)
        for (int j = 0; j < d->scale_list.count; j++)
            for (int mixture = 0; mixture < 2; mixture++) {
                uint64_t sa = d->scale_list.codes[i], sb = d->scale_list.codes[j];
                int64_t block = (int64_t)(d->turn++ % (uint64_t)d->scales);
                set_all(d, d->a.one, d->b.one);
                if (mixture)
                    set_mixture(d);
                set_scales(d, sa, sb);
                emit(d, d->c_zero);
                emit(d, d->c_one);
                set_scales(d, d->scale_one, d->scale_one);
                d->a.scales[block] = sa;
                d->b.scales[block] = sb;
                emit(d, d->c_zero);
            }
    set_scales(d, d->scale_one, d->scale_one);
}

// x * y and -x * y at two places, what is left at a third one and in C.
static void emit_cancelled(dot *d, const int64_t places[3], bool largest, int rest) {
    uint64_t a = largest ? d->a.largest : d->a.one;
    uint64_t minus_a = largest ? d->a.minus_largest : d->a.minus_one;
    uint64_t b = largest ? d->b.largest : d->b.one;
    uint64_t tiny = 1ull << d->accumulator.shift;
    uint64_t minus_tiny = tiny | qg_format_sign_bit(&d->accumulator);
    set_all(d, d->a.zero, d->b.zero);
    if (rest > 0)
        set_product(d, places[2], d->a.smallest, rest == 1 ? d->b.smallest : d->b.one);
    set_product(d, places[0], a, b);
    if (places[1] != places[0])
        set_product(d, places[1], minus_a, b);
    emit(d, d->c_zero);
    emit(d, d->c_one);
    emit(d, d->c_minus_one);
    emit(d, tiny);
    emit(d, minus_tiny);
}

static void emit_cancellations(dot *d) {
    const int64_t last = d->k - 1, half = d->k / 2;
    const int64_t places[][3] = {
        {0,    last,     half},
        {0,    half,     last},
        {last, 0,        half},
        {half, last,     0   },
        {0,    1 % d->k, last},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        for (int largest = 0; largest < 2; largest++)
            for (int rest = 0; rest < 3; rest++)
                emit_cancelled(d, places[i], largest, rest);
}

// C = +-2^j against products of 1 and of the smallest element: where bits of either fall off.
static void emit_distances(dot *d) {
    const qg_format_info *c = &d->accumulator;
    int reach = c->mbits + 18;
    int low = 1 - c->bias - c->mbits, high = qg_format_emax(c);
    low = low < -reach ? -reach : low;
    high = high > reach ? reach : high;
    for (int exponent = low; exponent <= high; exponent++)
        for (int what = 0; what < 3; what++) {
            set_all(d, what == 2 ? d->a.one : d->a.zero, what == 2 ? d->b.one : d->b.zero);
            set_product(d, next_place(d), what == 1 ? d->a.smallest : d->a.one, d->b.one);
            emit(d, encoded(c, qg_double_pow2(exponent)));
            emit(d, encoded(c, -qg_double_pow2(exponent)));
        }
}

// 2^j * 1 next to +-1 * 1, over the exponents of a.
static void emit_ladder(dot *d) {
    enum { STEPS = 64 };
    const qg_format_info *a = &d->a.info;
    int low = 1 - a->bias - a->mbits, high = qg_format_emax(a);
    int step = (high - low) / STEPS + 1;
    for (int exponent = low; exponent <= high; exponent += step)
        for (int minus = 0; minus < 2; minus++) {
            int64_t place = next_place(d);
            set_all(d, d->a.zero, d->b.zero);
            set_product(d, place, minus ? d->a.minus_one : d->a.one, d->b.one);
            set_product(d, (place + d->k / 2) % d->k, encoded(a, qg_double_pow2(exponent)),
                        d->b.one);
            emit(d, d->c_zero);
            emit(d, d->c_one);
        }
}

void qg_vector_dot_level1(generator *g) {
    dot d = dot_of(g);
    set_scales(&d, d.scale_one, d.scale_one);
    emit_specials(&d);
    emit_cancellations(&d);
    emit_distances(&d);
    emit_ladder(&d);
    if (d.scales)
        emit_scales(&d);
}

// ---------------------------------------------------------------------------------------- level 2

static uint64_t random_bits(generator *g, int bits) {
    uint64_t word = qg_vector_random_word(g);
    if (bits > 32)
        word = word << 32 | qg_vector_random_word(g);
    return word & (~0ull >> (64 - bits));
}

static uint64_t random_finite(generator *g, const qg_format_info *info) {
    uint64_t magnitude = random_bits(g, info->ebits + info->mbits);
    uint64_t negative = qg_vector_random_word(g) & 1;
    magnitude = magnitude > info->max_code ? magnitude % (info->max_code + 1) : magnitude;
    return qg_encode_signed(info, magnitude, info->sign && negative);
}

// Up to `spread` binades around 1, with all of the fraction random.
static uint64_t random_moderate(generator *g, const qg_format_info *info, int spread) {
    int exponent = (int)(qg_vector_random_word(g) % (uint32_t)(2 * spread)) - spread;
    double fraction = (double)(random_bits(g, 52) | 1ull << 52) * 0x1p-52;
    bool negative = info->sign && qg_vector_random_word(g) & 1;
    double x = fraction * qg_double_pow2(exponent);
    return encoded(info, negative ? -x : x);
}

enum { RAW, FINITE, MODERATE, CLOSE, CLASSES };

static uint64_t random_code(generator *g, const qg_format_info *info, int class) {
    switch (class) {
    case RAW: return random_bits(g, info->bits);
    case FINITE: return random_finite(g, info);
    case MODERATE: return random_moderate(g, info, 6);
    default: return random_moderate(g, info, 1);
    }
}

static void fill_random(generator *g, uint64_t *codes, int64_t count, const qg_format_info *info,
                        int class) {
    for (int64_t i = 0; i < count; i++)
        codes[i] = random_code(g, info, class);
}

void qg_vector_dot_level2(generator *g, int64_t count) {
    dot d = dot_of(g);
    for (int64_t i = 0; i < count; i++) {
        int class = (int)(qg_vector_random_word(g) % CLASSES);
        fill_random(g, d.a.codes, d.k, &d.a.info, class);
        fill_random(g, d.b.codes, d.k, &d.b.info, class);
        if (d.scales) {
            fill_random(g, d.a.scales, d.scales, &d.scale, class);
            fill_random(g, d.b.scales, d.scales, &d.scale, class);
        }
        emit(&d, random_code(g, &d.accumulator, class));
    }
}
