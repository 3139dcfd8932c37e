// The recipes that a device check tries: every preset, and others that reach what no preset does.
#ifndef DEVICE_RECIPES_H
#define DEVICE_RECIPES_H

#include <qg_recipe_name.h>

typedef struct device_recipe {
    const char *format, *layout, *rule, *rounding; // NULL: the format's own
} device_recipe;

// The i-th, presets first; false past the end. QG_OK or why it is no recipe through *status.
bool device_recipe_listed(size_t i, device_recipe *out);
qg_status device_recipe_make(const device_recipe *spec, qg_recipe *out);

#endif
