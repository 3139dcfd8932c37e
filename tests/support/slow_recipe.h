// An independent model of whole quantizations for tests: one block after another, from the tables
// of the definitions, by search and exact arithmetic where lib/recipes counts bits. It shares
// nothing with lib/recipes and lib/emulator: own table, own rules, own rounding to binary32.
#ifndef SLOW_RECIPE_H
#define SLOW_RECIPE_H

#include <slow_model.h>

enum { SLOW_FORMULA = -1 }; // an edge without a policy of its own: the formula decides
enum { SLOW_NAN_ENCODED = -1, SLOW_NAN_LARGEST = -2 };
enum { SLOW_AMAX_ALL, SLOW_AMAX_NOT_NAN, SLOW_AMAX_FINITE };
enum { SLOW_PLAIN, SLOW_PAIRS, SLOW_PAIRS_WITHOUT_SHIFT, SLOW_TWO_PLANES };

typedef struct slow_recipe {
    const char *name, *element, *rule;
    int rows, columns;      // of a block; 0: all of them
    int amax;               // what the amax is over
    int64_t zero, nan, inf; // stored scale of a block with such an amax, or SLOW_FORMULA
    int nan_code;           // code of a NaN element, or SLOW_NAN_*
    float eps_amax, eps_scale, least_block;
    int input_max; // an infinite F/amax becomes the input type's largest value, else FLT_MAX
    int structure;
    float fixed;
    slow_conversion conversion;
} slow_recipe;

typedef struct slow_input {
    int64_t m, k;
    const float *x;
    const uint32_t *words; // a random word per element, or NULL
    float input_max;       // largest finite value of the input type
    float history_amax;    // rule delayed
} slow_input;

// The row of a recipe of the definitions; its name is NULL if there is none. RNE, saturating.
slow_recipe slow_recipe_find(const char *name);

// An element format with a rule and a layout, and the policies of the rule's scale format.
slow_recipe slow_recipe_generic(const char *element, const char *rule, int rows, int columns);

int slow_scale_bytes(const slow_recipe *recipe);

// codes: (planes, m, k); scales: slow_scale_bytes per block; q: (m, k), may be NULL.
void slow_quantize(const slow_recipe *recipe, const slow_input *in, uint64_t *codes,
                   uint8_t *scales, float *tensor_scale, float *q);

// The correctly rounded binary32 quotient, by integers.
float slow_divide(float a, float b);

#endif
