// Names of formats and rounding modes. See qg_format_name.h.
// Canonical names come from the format table; aliases are read and never printed. Reading ignores
// case.
#include <qg_format_name.h>
#include <qg_nearest.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const format_names[] = {
#define NAME_OF(ID, name, ...) name,
    QG_FORMAT_TABLE(NAME_OF)
#undef NAME_OF
};

typedef struct format_alias {
    const char *name;
    qg_format format;
} format_alias;

// Frameworks' names, and the minifloat names that mean a hardware format. float8_e4m3 is
// ml_dtypes' type with infinities, not E4M3.
// clang-format off
static const format_alias format_aliases[] = {
    {"e4m3fn", QG_FORMAT_E4M3},
    {"f8e4m3", QG_FORMAT_E4M3},
    {"f8e4m3fn", QG_FORMAT_E4M3},
    {"fp8_e4m3", QG_FORMAT_E4M3},
    {"fp8_e4m3fn", QG_FORMAT_E4M3},
    {"float8_e4m3fn", QG_FORMAT_E4M3},
    {"f8e5m2", QG_FORMAT_E5M2},
    {"fp8_e5m2", QG_FORMAT_E5M2},
    {"float8_e5m2", QG_FORMAT_E5M2},
    {"f8e4m3fnuz", QG_FORMAT_E4M3FNUZ},
    {"fp8_e4m3fnuz", QG_FORMAT_E4M3FNUZ},
    {"float8_e4m3fnuz", QG_FORMAT_E4M3FNUZ},
    {"f8e5m2fnuz", QG_FORMAT_E5M2FNUZ},
    {"fp8_e5m2fnuz", QG_FORMAT_E5M2FNUZ},
    {"float8_e5m2fnuz", QG_FORMAT_E5M2FNUZ},
    {"e4m3b11", QG_FORMAT_E4M3B11FNUZ},
    {"f8e4m3b11fnuz", QG_FORMAT_E4M3B11FNUZ},
    {"fp8_e4m3b11fnuz", QG_FORMAT_E4M3B11FNUZ},
    {"float8_e4m3b11", QG_FORMAT_E4M3B11FNUZ},
    {"float8_e4m3b11fnuz", QG_FORMAT_E4M3B11FNUZ},
    {"float8_e4m3", QG_FORMAT_E4M3_IEEE},
    {"fp8_e3m4", QG_FORMAT_E3M4},
    {"float8_e3m4", QG_FORMAT_E3M4},
    {"e2m3fn", QG_FORMAT_E2M3},
    {"f6e2m3", QG_FORMAT_E2M3},
    {"f6e2m3fn", QG_FORMAT_E2M3},
    {"fp6_e2m3", QG_FORMAT_E2M3},
    {"fp6_e2m3fn", QG_FORMAT_E2M3},
    {"float6_e2m3fn", QG_FORMAT_E2M3},
    {"e3m2fn", QG_FORMAT_E3M2},
    {"f6e3m2", QG_FORMAT_E3M2},
    {"f6e3m2fn", QG_FORMAT_E3M2},
    {"fp6_e3m2", QG_FORMAT_E3M2},
    {"fp6_e3m2fn", QG_FORMAT_E3M2},
    {"float6_e3m2fn", QG_FORMAT_E3M2},
    {"e2m1fn", QG_FORMAT_E2M1},
    {"f4e2m1", QG_FORMAT_E2M1},
    {"f4e2m1fn", QG_FORMAT_E2M1},
    {"fp4_e2m1", QG_FORMAT_E2M1},
    {"fp4_e2m1fn", QG_FORMAT_E2M1},
    {"float4_e2m1fn", QG_FORMAT_E2M1},
    {"float4_e2m1fn_x2", QG_FORMAT_E2M1},
    {"e8m0fnu", QG_FORMAT_E8M0},
    {"ue8m0", QG_FORMAT_E8M0},
    {"f8e8m0fnu", QG_FORMAT_E8M0},
    {"fp8_e8m0", QG_FORMAT_E8M0},
    {"fp8_e8m0fnu", QG_FORMAT_E8M0},
    {"float8_e8m0fnu", QG_FORMAT_E8M0},
    {"fp8_ue4m3", QG_FORMAT_UE4M3},
    {"fp8_ue5m3", QG_FORMAT_UE5M3},
    {"i8", QG_FORMAT_INT8},
    {"s8", QG_FORMAT_INT8},
    {"i4", QG_FORMAT_INT4},
    {"s4", QG_FORMAT_INT4},
    {"bfloat16", QG_FORMAT_BF16},
    {"f16", QG_FORMAT_FP16},
    {"half", QG_FORMAT_FP16},
    {"float16", QG_FORMAT_FP16},
    {"tfloat32", QG_FORMAT_TF32},
    {"f32", QG_FORMAT_FP32},
    {"float", QG_FORMAT_FP32},
    {"single", QG_FORMAT_FP32},
    {"float32", QG_FORMAT_FP32},
    {"f64", QG_FORMAT_FP64},
    {"double", QG_FORMAT_FP64},
    {"float64", QG_FORMAT_FP64},
};
// clang-format on

enum { ALIAS_COUNT = sizeof format_aliases / sizeof format_aliases[0] };

const char *qg_format_listed(size_t i) { return i < QG_FORMAT_COUNT ? format_names[i] : NULL; }

// Canonical names, then aliases.
static const char *readable_name(size_t i) {
    if (i < QG_FORMAT_COUNT)
        return format_names[i];
    i -= QG_FORMAT_COUNT;
    return i < ALIAS_COUNT ? format_aliases[i].name : NULL;
}

static bool lookup(const char *word, qg_format *out) {
    for (size_t i = 0; readable_name(i); i++)
        if (strcmp(word, readable_name(i)) == 0) {
            *out = i < QG_FORMAT_COUNT ? (qg_format)i : format_aliases[i - QG_FORMAT_COUNT].format;
            return true;
        }
    return false;
}

// Lower case, cut at the size of `word`: no name is that long.
static void lower_case(const char *name, char word[QG_NAME_SIZE]) {
    size_t i = 0;
    for (; name[i] && i < QG_NAME_SIZE - 1; i++)
        word[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    word[i] = 0;
}

// ------------------------------------------------------------------------------------ minifloats

static int default_bias(int ebits) { return (1 << (ebits - 1)) - 1; }

static void print_minifloat(char name[QG_NAME_SIZE], int ebits, int mbits, int bias) {
    snprintf(name, QG_NAME_SIZE, "f%de%dm%d", 1 + ebits + mbits, ebits, mbits);
    qg_format hardware;
    if (bias != default_bias(ebits) || lookup(name, &hardware)) {
        size_t length = strlen(name);
        snprintf(name + length, QG_NAME_SIZE - length, "b%d", bias);
    }
}

// Reads a key letter and a number of at most four digits, and moves on.
static bool read_part(const char **text, char key, bool may_be_negative, int *out) {
    if (**text != key)
        return false;
    ++*text;
    bool negative = may_be_negative && **text == '-';
    *text += negative;
    int digits = 0;
    *out = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        if (++digits > 4)
            return false;
        *out = *out * 10 + (**text - '0');
    }
    if (negative)
        *out = -*out;
    return digits > 0;
}

// Largest value (2 - 2^-m) 2^(2^X - 1 - B) below 2^128, smallest 2^(1 - B - m) at least 2^-149.
static qg_status check_minifloat(const char *name, int bits, int ebits, int mbits, int bias) {
    if (ebits == 0)
        return qg_fail(QG_ERROR_ARGUMENT, "format '%s': a minifloat needs an exponent bit", name);
    if (bits != 1 + ebits + mbits)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "format '%s': a sign, %d exponent and %d mantissa bits are %d bits, not %d",
                       name, ebits, mbits, 1 + ebits + mbits, bits);
    if (bits > 8)
        return qg_fail(QG_ERROR_ARGUMENT, "format '%s': a minifloat has at most 8 bits", name);
    int lowest = (1 << ebits) - 128, highest = 150 - mbits;
    if (bias < lowest || bias > highest)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "format '%s': bias %d gives values that binary32 cannot hold; it must be in "
                       "%d .. %d",
                       name, bias, lowest, highest);
    return QG_OK;
}

// Whether the word has the form of a minifloat; then *status and *out are its outcome.
static bool parse_minifloat(const char *name, const char *word, qg_format *out, qg_status *status) {
    int bits, ebits, mbits, bias = 0;
    if (!read_part(&word, 'f', false, &bits) || !read_part(&word, 'e', false, &ebits) ||
        !read_part(&word, 'm', false, &mbits))
        return false;
    bool has_bias = *word != 0;
    if (has_bias && (!read_part(&word, 'b', true, &bias) || *word))
        return false;
    if (!has_bias && ebits >= 1 && ebits <= 8)
        bias = default_bias(ebits);
    *status = check_minifloat(name, bits, ebits, mbits, bias);
    if (*status == QG_OK)
        *out = qg_format_minifloat(ebits, mbits, bias);
    return true;
}

// --------------------------------------------------------------------------------------- formats

void qg_format_name(qg_format format, char name[QG_NAME_SIZE]) {
    if (qg_format_is_minifloat(format)) {
        qg_format_info info = qg_format_describe(format);
        print_minifloat(name, info.ebits, info.mbits, info.bias);
    } else {
        snprintf(name, QG_NAME_SIZE, "%s",
                 format < QG_FORMAT_COUNT ? format_names[format] : "unknown");
    }
}

static qg_status unknown_format(const char *name) {
    const char *nearest = qg_nearest(name, readable_name);
    qg_format format;
    if (!nearest || !lookup(nearest, &format))
        return qg_fail(QG_ERROR_ARGUMENT, "unknown format '%s'", name);
    return qg_fail(QG_ERROR_ARGUMENT, "unknown format '%s'; the nearest is %s", name,
                   format_names[format]);
}

qg_status qg_format_parse(const char *name, qg_format *out) {
    char word[QG_NAME_SIZE];
    lower_case(name, word);
    qg_status status;
    if (strlen(name) >= QG_NAME_SIZE)
        return unknown_format(name);
    if (lookup(word, out))
        return QG_OK;
    if (parse_minifloat(name, word, out, &status))
        return status;
    return unknown_format(name);
}

// -------------------------------------------------------------------------------- rounding modes

enum { DEFAULT_STOCHASTIC_BITS = 16, MOST_STOCHASTIC_BITS = 32 };

// In the order of the QG_ROUND_ constants; the stochastic variants share the last name.
static const char *const rounding_names[] = {"rne", "rna", "rtz",       "rtp",
                                             "rtn", "rto", "stochastic"};

const char *qg_rounding_listed(size_t i) {
    return i < sizeof rounding_names / sizeof rounding_names[0] ? rounding_names[i] : NULL;
}

void qg_rounding_name(qg_rounding rounding, char name[QG_NAME_SIZE]) {
    if (rounding.mode >= QG_ROUND_COUNT)
        snprintf(name, QG_NAME_SIZE, "unknown");
    else if (qg_rounding_is_stochastic(rounding))
        snprintf(name, QG_NAME_SIZE, "stochastic:%c:%d",
                 'A' + rounding.mode - QG_ROUND_STOCHASTIC_A, rounding.bits);
    else
        snprintf(name, QG_NAME_SIZE, "%s", rounding_names[rounding.mode]);
}

// What follows "stochastic": nothing, :A, or :A:BITS.
static bool parse_stochastic(const char *text, qg_rounding *out) {
    int bits = DEFAULT_STOCHASTIC_BITS;
    char variant = 'a';
    if (*text == ':') {
        variant = text[1];
        if (variant < 'a' || variant > 'c')
            return false;
        text += 2;
        if (*text && !read_part(&text, ':', false, &bits))
            return false;
    }
    if (*text || bits < 1 || bits > MOST_STOCHASTIC_BITS)
        return false;
    out->mode = (uint8_t)(QG_ROUND_STOCHASTIC_A + variant - 'a');
    out->bits = (uint8_t)bits;
    return true;
}

qg_status qg_rounding_parse(const char *name, qg_rounding *out) {
    static const char stem[] = "stochastic";
    char word[QG_NAME_SIZE];
    lower_case(name, word);
    if (strlen(name) < QG_NAME_SIZE) {
        for (size_t mode = 0; mode < QG_ROUND_STOCHASTIC_A; mode++)
            if (strcmp(word, rounding_names[mode]) == 0) {
                *out = (qg_rounding){(uint8_t)mode, 0};
                return QG_OK;
            }
        size_t length = sizeof stem - 1;
        if (strncmp(word, stem, length) == 0 && (!word[length] || word[length] == ':')) {
            if (parse_stochastic(word + length, out))
                return QG_OK;
            return qg_fail(QG_ERROR_ARGUMENT,
                           "rounding '%s': write stochastic[:A|B|C[:BITS]] with 1 to %d bits", name,
                           MOST_STOCHASTIC_BITS);
        }
    }
    const char *nearest = qg_nearest(name, qg_rounding_listed);
    if (nearest)
        return qg_fail(QG_ERROR_ARGUMENT, "unknown rounding '%s'; the nearest is %s", name,
                       nearest);
    return qg_fail(QG_ERROR_ARGUMENT, "unknown rounding '%s'", name);
}
