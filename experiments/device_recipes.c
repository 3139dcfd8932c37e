// See device_recipes.h.
#include <device_recipes.h>

bool device_recipe_listed(size_t i, device_recipe *out) {
    static const device_recipe composed[] = {
        {"e4m3",     "per_tensor",    "amax",         NULL            },
        {"e4m3",     "per_tensor",    "amax_rcp",     NULL            },
        {"e5m2",     "per_tensor",    "fixed:0x1p-3", NULL            },
        {"e4m3",     "per_row",       "amax",         NULL            },
        {"e5m2",     "per_row",       "amax_rcp",     NULL            },
        {"e4m3",     "per_row",       "amax_mul",     NULL            },
        {"int8",     "per_row",       "amax",         NULL            },
        {"e4m3",     "per_row",       "rceil",        NULL            },
        {"e4m3",     "group:128",     "amax",         NULL            },
        {"e5m2",     "group:64",      "amax_mul",     NULL            },
        {"e4m3",     "group:128",     "amax_pow2",    NULL            },
        {"e4m3",     "group:48",      "rceil",        NULL            },
        {"e4m3",     "group:1",       "amax",         NULL            },
        {"e2m1",     "group:1000",    "amax",         NULL            },
        {"f8e4m3b7", "group:128",     "amax",         NULL            },
        {"int4",     "group:32",      "amax",         NULL            },
        {"e4m3fnuz", "per_tensor",    "amax",         NULL            },
        {"e4m3",     "block:128x128", "rceil",        NULL            },
        {"e2m3",     "block:16x8",    "amax",         NULL            },
        {"e4m3",     "block:3x200",   "amax",         NULL            },
        {"mxfp8",    NULL,            "best",         NULL            },
        {"mxfp8",    NULL,            "rceil_div",    NULL            },
        {"mxfp4",    NULL,            "even",         NULL            },
        {"mxfp4",    NULL,            "nearest",      NULL            },
        {"mxfp4",    NULL,            NULL,           "stochastic"    },
        {"mxfp8",    NULL,            NULL,           "stochastic:C:8"},
        {"mxfp8",    NULL,            NULL,           "rtz"           },
        {"e4m3",     "group:128",     "amax",         "rtp"           },
    };
    size_t presets = 0;
    while (qg_recipe_listed(presets))
        presets++;
    if (i < presets)
        *out = (device_recipe){.format = qg_recipe_listed(i)};
    else if (i - presets < sizeof composed / sizeof composed[0])
        *out = composed[i - presets];
    else
        return false;
    return true;
}

qg_status device_recipe_make(const device_recipe *spec, qg_recipe *out) {
    qg_layout layout;
    int rule;
    float fixed;
    qg_status status = qg_recipe_find(spec->format, out);
    if (status == QG_OK && spec->layout) {
        status = qg_layout_parse(spec->layout, &layout);
        if (status == QG_OK)
            status = qg_recipe_set_layout(out, layout);
    }
    if (status == QG_OK && spec->rule) {
        status = qg_rule_parse(spec->rule, &rule, &fixed);
        if (status == QG_OK)
            status = qg_recipe_set_rule(out, rule, fixed);
    }
    if (status == QG_OK && spec->rounding)
        status = qg_rounding_parse(spec->rounding, &out->conversion.rounding);
    return status;
}
