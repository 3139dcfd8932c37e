#include <unit_cases.h>

#include <block_data.h>

#include <math.h>
#include <stddef.h>
#include <string.h>

static uint64_t below(uint64_t *state, uint64_t n) { return block_data_random(state) % n; }

static uint64_t raw_code(const slow_type *t, uint64_t *state) {
    return block_data_random(state) & ((t->bits == 64 ? 0 : 1ull << t->bits) - 1);
}

static uint64_t sign_bit(const slow_type *t) { return 1ull << (t->bits - 1); }

// Exponent fields within `spread` of the middle; the fraction and the sign are any.
static uint64_t middling_code(const slow_type *t, int spread, uint64_t *state) {
    uint64_t code = raw_code(t, state);
    int fields = 1 << t->ebits, place = t->dropped + t->mbits;
    int field = t->bias + (int)below(state, (uint64_t)(2 * spread + 1)) - spread;
    if (field < 0 || field >= fields - 1)
        field = t->bias < fields - 1 ? t->bias : 1;
    uint64_t mask = (uint64_t)(fields - 1) << place;
    return (code & ~mask) | (uint64_t)field << place;
}

static uint64_t finite_code(const slow_type *t, int kind, uint64_t *state) {
    uint64_t code;
    do {
        code = kind % 2 ? middling_code(t, 1 + (int)below(state, 12), state) : raw_code(t, state);
    } while (!isfinite(slow_type_value(t, code)));
    return code;
}

static const slow_type *draw_type(const slow_unit *unit, uint64_t *state) {
    int count = 0;
    while (unit->operands[count])
        count++;
    return slow_type_find(unit->operands[below(state, (uint64_t)count)]);
}

// The largest exponent of the products, scales included, or -200.
static int largest_exponent(const unit_case *u, const slow_unit *unit) {
    int largest = -200;
    for (int i = 0; i < u->k; i++) {
        double product = slow_type_value(u->a_type, u->a[i]) * slow_type_value(u->b_type, u->b[i]);
        if (unit->scale) {
            const slow_type *scale = slow_type_find(unit->scale);
            product *= slow_type_value(scale, u->sa[i / u->scale_block]) *
                       slow_type_value(scale, u->sb[i / u->scale_block]);
        }
        if (isfinite(product) && product != 0.0 && ilogb(product) > largest)
            largest = ilogb(product);
    }
    return largest;
}

static uint64_t draw_c(const unit_case *u, const slow_unit *unit, uint64_t *state) {
    const slow_type *t = slow_type_find(unit->accumulator);
    uint64_t code = raw_code(t, state);
    switch (below(state, 8)) {
    case 0: return 0;
    case 1: return sign_bit(t);
    case 2: return code;                                            // any
    case 3: return code & (sign_bit(t) | ((1ull << t->mbits) - 1)); // subnormal
    default: break;
    }
    int field = t->bias + largest_exponent(u, unit) + 5 - (int)below(state, 36);
    int last = (1 << t->ebits) - 2;
    field = field < 0 ? 0 : field > last ? last : field;
    uint64_t mask = (uint64_t)(last + 1) << t->mbits;
    return (code & ~mask) | (uint64_t)field << t->mbits;
}

static void draw_scales(const slow_unit *unit, int kind, uint64_t *state, unit_case *u) {
    u->scale_block = unit->scale_block;
    if (unit->scale_block == 16 && below(state, 3) == 0 && !strcmp(unit->scale, "e8m0"))
        u->scale_block = 32;
    int power = !strcmp(unit->scale, "e8m0");
    for (int i = 0; i < 4; i++) {
        u->sa[i] = block_data_random(state) & 255;
        u->sb[i] = block_data_random(state) & 255;
        if (!power && kind != 0) { // no NaN, often near one another
            u->sa[i] = u->sa[i] % 127;
            u->sb[i] = kind == 3 ? (u->sa[0] + below(state, 9)) % 127 : u->sb[i] % 127;
        }
        if (power && kind != 0) {
            static const int sums[] = {254, 254, 130, 120, 110, 100, 380};
            int sum = sums[below(state, 7)] + (int)below(state, 17) - 8;
            int first = sum > 254 ? sum - 254 : 0, last = sum < 254 ? sum : 254;
            u->sa[i] = (uint64_t)(first + (int)below(state, (uint64_t)(last - first + 1)));
            u->sb[i] = (uint64_t)(sum - (int)u->sa[i]);
        }
    }
}

void unit_case_draw(const slow_unit *unit, uint64_t *state, unit_case *u) {
    int kind = (int)below(state, UNIT_CASE_KINDS);
    u->a_type = draw_type(unit, state);
    u->b_type = draw_type(unit, state);
    u->k = unit->k;
    if (unit->k_least < unit->k && below(state, 2))
        u->k = unit->k_least;
    else if (unit->k <= 32 && below(state, 4) == 0)
        u->k = 2 * unit->k;
    u->scale_block = 0;
    if (unit->scale)
        draw_scales(unit, kind, state, u);
    for (int i = 0; i < u->k; i++) {
        u->a[i] = kind == 0 ? raw_code(u->a_type, state) : finite_code(u->a_type, kind, state);
        u->b[i] = kind == 0 ? raw_code(u->b_type, state) : finite_code(u->b_type, kind, state);
        if (kind == 2 && below(state, 8) != 0)
            u->a[i] = below(state, 2) && strncmp(u->a_type->name + 2, "m", 1) ? 0 : u->a[i];
        if (kind >= 4 && below(state, 8) != 0)
            u->a[i] = 0;
        if (kind == 3 && i > 0 && below(state, 2)) { // cancels its neighbour
            u->a[i] = u->a[i - 1] ^ sign_bit(u->a_type);
            u->b[i] = u->b[i - 1];
        }
        if (kind == 5 && below(state, 2)) { // negative products
            u->a[i] |= u->a_type->specials == SLOW_FNUZ && u->a[i] == 0 ? 0 : sign_bit(u->a_type);
            u->b[i] &= ~sign_bit(u->b_type);
        }
    }
    u->c = draw_c(u, unit, state);
}
