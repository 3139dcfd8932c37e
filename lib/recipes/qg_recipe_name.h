// The recipe table by name, and making recipes from parts.
#ifndef QG_RECIPE_NAME_H
#define QG_RECIPE_NAME_H

#include <qg_format_name.h>
#include <qg_layout_name.h>
#include <qg_recipe.h>
#include <qg_status.h>
#include <stdbool.h>

QG_EXTERN_C_BEGIN

// The i-th recipe's name, NULL past the end; the i-th rule's name, likewise.
const char *qg_recipe_listed(size_t i);
const char *qg_rule_listed(size_t i);

// The recipe of a table row ("mxfp8"), or of an element format ("e4m3": per_tensor, amax).
// QG_ERROR_ARGUMENT with the nearest names for an unknown one, or why a format is no element format
// (e8m0 has no zero, fp64 exceeds binary32).
qg_status qg_recipe_find(const char *name, qg_recipe *out);

// A recipe with its parts replaced: NAME[/LAYOUT[/RULE[/ROUNDING]]], an empty part keeps the
// recipe's own: "mxfp8", "e4m3/group:128", "mxfp4//rceil/stochastic:A:16".
// QG_ERROR_ARGUMENT as qg_recipe_find, the parsers of the parts, and the setters below.
qg_status qg_recipe_parse(const char *text, qg_recipe *out);

// Whether `name` is a row of the recipe table (an element format is not).
bool qg_recipe_is_preset(const char *name);

// Replaces one field. A rule of another scale format brings that format's policies (definitions,
// "Policies of element formats"); one of the same scale format keeps the recipe's own.
// QG_ERROR_ARGUMENT when the recipe cannot have it: a ue4m3 rule without a group layout, another
// layout or rule on a recipe with pair shifts or two planes, `delayed` on anything but per_tensor.
qg_status qg_recipe_set_layout(qg_recipe *recipe, qg_layout layout);
qg_status qg_recipe_set_rule(qg_recipe *recipe, int rule, float fixed_scale);

// "floor", "fixed:0x1p-3" ...; fixed_scale is set for fixed:X and 0 otherwise.
void qg_rule_name(int rule, float fixed_scale, char name[QG_NAME_SIZE]);
qg_status qg_rule_parse(const char *text, int *rule, float *fixed_scale);

// Checks that the fields fit together (as the setters do), for recipes made by hand.
qg_status qg_recipe_check(const qg_recipe *recipe);

QG_EXTERN_C_END

#endif
