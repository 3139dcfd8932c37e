// A row of the unit table against the independent model, for the two tests that do it.
#ifndef UNIT_MODEL_CHECK_H
#define UNIT_MODEL_CHECK_H

#include <require.h>
#include <run_suite.h>
#include <unit_cases.h>

#include <qg_format_name.h>
#include <qg_unit.h>

static inline qg_format unit_format_of(const char *name) {
    qg_format format = 0;
    ck_assert_msg(qg_format_parse(name, &format) == QG_OK, "%s", qg_detail());
    return format;
}

// The row that a row of the model describes, NULL if the table lacks it.
static inline const qg_unit_row *unit_row_of(const slow_unit *slow) {
    qg_unit unit;
    ck_assert_msg(qg_unit_parse(slow->unit, &unit) == QG_OK, "%s", qg_detail());
    qg_format operand = unit_format_of(slow->operands[0]);
    int32_t scale = slow->scale ? (int32_t)unit_format_of(slow->scale) : QG_UNIT_NO_SCALE;
    return qg_unit_row_find(unit.id, operand, operand, unit_format_of(slow->accumulator), scale);
}

static inline void compare_unit(const slow_unit *slow, int cases, uint64_t seed) {
    const qg_unit_row *row = unit_row_of(slow);
    ck_assert_msg(row != NULL, "no row for %s %s", slow->unit, slow->operands[0]);
    uint64_t state = seed;
    for (int i = 0; i < cases; i++) {
        unit_case c;
        unit_case_draw(slow, &state, &c);
        slow_dot dot = {c.a_type, c.b_type, c.k, c.a, c.b, c.sa, c.sb, c.scale_block, c.c};
        qg_unit_dot_input in = {.a_format = unit_format_of(c.a_type->name),
                                .b_format = unit_format_of(c.b_type->name),
                                .k = c.k,
                                .a = c.a,
                                .b = c.b,
                                .sa = c.sa,
                                .sb = c.sb,
                                .scale_block = c.scale_block,
                                .c = c.c};
        uint64_t got = 0, wanted = slow_unit_dot(slow, &dot);
        ck_assert_msg(qg_unit_dot(row, &in, &got) == QG_OK, "%s", qg_detail());
        REQUIRE(got == wanted, "%s %s x %s -> %s, case %d, k %d, c %llx: %llx, not %llx",
                slow->unit, c.a_type->name, c.b_type->name, slow->accumulator, i, c.k,
                (unsigned long long)c.c, (unsigned long long)got, (unsigned long long)wanted);
    }
}

#endif
