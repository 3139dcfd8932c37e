// The table of products, and the reasons of its refusals.
#include <product_capability.h>

#include <stdio.h>

// Sources. docs: NVIDIA's cuBLAS documentation, cublasLtMatmul, the requirements and the table of
// types of FP8 and FP4 kernels.
//
// k: rows of both operands are leading dimensions and count 16 bytes: 16 FP8 elements, 32 of FP4.
// n: the library's M, a multiple of 16 ("M must be divisible by 16", its log in vllm pull 4691).
// m: the library's N, free in scalar and outer-vector products; 4 where 128-element scales are read
//    along it, and 8 where the operand of that side has one scale per row (Transformer Engine,
//    cublaslt_gemm.cu).
// Outer-vector and 128-element scales: "currently only supported on SM90" (CUDALibrarySamples issue
// 270; pytorch pulls 160693 and 161236 for 10.0, 11.0 and 12.0, gradium-ai/xn pull 55 for 8.9).
// Block scales on 12.x: TN alone (pytorch issue 198126); TN is what we ask for.
// FP4 has no accumulation flag (Transformer Engine sets it for FP8 alone).
#define HOPPER             90, 90
#define FROM(ARCHITECTURE) ARCHITECTURE, PRODUCT_ARCHITECTURE_ANY

// clang-format off
static const product_kind kinds[] = {
    // name, elements, mode of a, mode of b,
    //     version, architectures, m, n, k, gives FP8, knows the flag, source
    {"fp8 per_tensor", PRODUCT_FP8, LT_SCALE_SCALAR, LT_SCALE_SCALAR,
         120800, FROM(89), 1, 16, 16, 1, 1, "docs: FP8 kernels from compute capability 8.9"},
    {"fp8 per_row", PRODUCT_FP8, LT_SCALE_OUTER_VEC, LT_SCALE_OUTER_VEC,
         120900, HOPPER, 1, 16, 16, 0, 1, "CUDALibrarySamples issue 270; pytorch pull 161305"},
    {"fp8 group:128 by group:128", PRODUCT_FP8, LT_SCALE_VEC128, LT_SCALE_VEC128,
         120900, HOPPER, 8, 16, 16, 0, 1, "CUDALibrarySamples issue 270; cublaslt_gemm.cu"},
    {"fp8 group:128 by block:128x128", PRODUCT_FP8, LT_SCALE_VEC128, LT_SCALE_BLK128,
         120900, HOPPER, 8, 16, 16, 0, 1, "CUDALibrarySamples issue 270; cublaslt_gemm.cu"},
    {"fp8 block:128x128 by group:128", PRODUCT_FP8, LT_SCALE_BLK128, LT_SCALE_VEC128,
         120900, HOPPER, 4, 16, 16, 0, 1, "CUDALibrarySamples issue 270; cublaslt_gemm.cu"},
    // An FP8 output would have scales of its own, for which qg_cuda_product has no place.
    {"mxfp8", PRODUCT_FP8, LT_SCALE_VEC32, LT_SCALE_VEC32,
         120800, FROM(100), 1, 16, 16, 0, 1, "docs: 1D block scaling from compute capability 10.0"},
    {"nvfp4", PRODUCT_FP4, LT_SCALE_VEC16, LT_SCALE_VEC16,
         120800, FROM(100), 1, 16, 32, 0, 0, "docs: 1D block scaling from compute capability 10.0"},
};
// clang-format on

const product_kind *product_kind_at(size_t i) {
    return i < sizeof kinds / sizeof kinds[0] ? &kinds[i] : NULL;
}

// ------------------------------------------------------------------------------------------ names

static const char *format_text(qg_format format) {
    switch (format) {
#define FORMAT_TEXT(ID, name, ...)                                                                 \
    case QG_FORMAT_##ID: return name;
        QG_FORMAT_TABLE(FORMAT_TEXT)
#undef FORMAT_TEXT
    default: return "a minifloat";
    }
}

static const char *rule_text(int rule) {
    switch (rule) {
#define RULE_TEXT(ID, name, SCALE)                                                                 \
    case QG_RULE_##ID: return name;
        QG_SCALE_RULE_TABLE(RULE_TEXT)
#undef RULE_TEXT
    default: return "unknown";
    }
}

typedef struct layout_text {
    char text[40];
} layout_text;

static layout_text text_of_layout(qg_layout layout) {
    layout_text t;
    switch (layout.kind) {
    case QG_LAYOUT_PER_TENSOR: snprintf(t.text, sizeof t.text, "per_tensor"); break;
    case QG_LAYOUT_PER_ROW: snprintf(t.text, sizeof t.text, "per_row"); break;
    case QG_LAYOUT_GROUP: snprintf(t.text, sizeof t.text, "group:%d", layout.columns); break;
    default: snprintf(t.text, sizeof t.text, "block:%dx%d", layout.rows, layout.columns); break;
    }
    return t;
}

// ----------------------------------------------------------------------------------------- lookup

int32_t product_type(qg_format format) {
    switch (format) {
    case QG_FORMAT_FP32: return LT_TYPE_FP32;
    case QG_FORMAT_FP16: return LT_TYPE_FP16;
    case QG_FORMAT_BF16: return LT_TYPE_BF16;
    case QG_FORMAT_E4M3: return LT_TYPE_E4M3;
    case QG_FORMAT_E5M2: return LT_TYPE_E5M2;
    case QG_FORMAT_E2M1: return LT_TYPE_E2M1;
    default: return -1;
    }
}

static int32_t mode_of_group(int32_t columns, qg_format scale) {
    if (columns == 128 && scale == QG_FORMAT_FP32)
        return LT_SCALE_VEC128;
    if (columns == 32 && scale == QG_FORMAT_E8M0)
        return LT_SCALE_VEC32;
    return columns == 16 && scale == QG_FORMAT_UE4M3 ? LT_SCALE_VEC16 : -1;
}

int32_t product_scale_mode(const qg_recipe *recipe) {
    const qg_format scale = qg_rule_scale_format(recipe->rule);
    const qg_layout layout = recipe->layout;
    if (recipe->structure != QG_STRUCTURE_PLAIN)
        return -1;
    if (layout.kind == QG_LAYOUT_GROUP)
        return mode_of_group(layout.columns, scale);
    if (scale != QG_FORMAT_FP32)
        return -1;
    switch (layout.kind) {
    case QG_LAYOUT_PER_TENSOR: return LT_SCALE_SCALAR;
    case QG_LAYOUT_PER_ROW: return LT_SCALE_OUTER_VEC;
    default: return layout.rows == 128 && layout.columns == 128 ? LT_SCALE_BLK128 : -1;
    }
}

static bool takes_formats(int32_t elements, qg_format a, qg_format b) {
    if (elements == PRODUCT_FP4)
        return a == QG_FORMAT_E2M1 && b == QG_FORMAT_E2M1;
    bool both_fp8 = (a == QG_FORMAT_E4M3 || a == QG_FORMAT_E5M2) &&
                    (b == QG_FORMAT_E4M3 || b == QG_FORMAT_E5M2);
    return both_fp8 && !(a == QG_FORMAT_E5M2 && b == QG_FORMAT_E5M2);
}

// ---------------------------------------------------------------------------------------- refusals

// All of them return false.
static bool refuse_scale(const qg_recipe *recipe, const char *operand, qg_cuda_error *error) {
    if (recipe->structure != QG_STRUCTURE_PLAIN)
        product_fail(error, QG_ERROR_UNSUPPORTED, "the codes of %s have shifts or a second plane",
                     operand);
    else
        product_fail(error, QG_ERROR_UNSUPPORTED, "scale rule %s of %s has no scale mode (%s)",
                     rule_text(recipe->rule), text_of_layout(recipe->layout).text, operand);
    return false;
}

static bool has_modes(const qg_cuda_product *p, qg_cuda_error *error) {
    if (product_scale_mode(&p->a.recipe) < 0)
        return refuse_scale(&p->a.recipe, "a", error);
    if (product_scale_mode(&p->b.recipe) < 0)
        return refuse_scale(&p->b.recipe, "b", error);
    return true;
}

static const product_kind *find_kind(const qg_cuda_product *p, qg_cuda_error *error) {
    const int32_t a = product_scale_mode(&p->a.recipe), b = product_scale_mode(&p->b.recipe);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].a_mode != a || kinds[i].b_mode != b)
            continue;
        if (takes_formats(kinds[i].elements, p->a.recipe.element, p->b.recipe.element))
            return &kinds[i];
        product_fail(error, QG_ERROR_UNSUPPORTED, "%s: no such pair of formats: %s and %s",
                     kinds[i].name, format_text(p->a.recipe.element),
                     format_text(p->b.recipe.element));
        return NULL;
    }
    product_fail(error, QG_ERROR_UNSUPPORTED, "no such pair of layouts: %s and %s",
                 text_of_layout(p->a.recipe.layout).text, text_of_layout(p->b.recipe.layout).text);
    return NULL;
}

static bool runs_there(const product_kind *kind, const product_site *site, qg_cuda_error *error) {
    const bool from_below = kind->most_architecture == PRODUCT_ARCHITECTURE_ANY;
    if (site->version < kind->least_version)
        product_fail(error, QG_ERROR_UNSUPPORTED, "%s needs cuBLASLt %d.%d, this is %d.%d",
                     kind->name, kind->least_version / 10000, kind->least_version / 100 % 100,
                     (int)(site->version / 10000), (int)(site->version / 100 % 100));
    else if (site->architecture < kind->least_architecture ||
             site->architecture > kind->most_architecture)
        product_fail(error, QG_ERROR_UNSUPPORTED, "%s needs sm_%d%s, this is sm_%d", kind->name,
                     kind->least_architecture, from_below ? "" : " exactly", site->architecture);
    else
        return true;
    return false;
}

static bool size_fits(const product_kind *kind, char name, int64_t size, int32_t multiple,
                      qg_cuda_error *error) {
    if (size < 1)
        product_fail(error, QG_ERROR_UNSUPPORTED, "%s: %c = %lld is below 1", kind->name, name,
                     (long long)size);
    else if (size % multiple != 0)
        product_fail(error, QG_ERROR_UNSUPPORTED, "%s: %c = %lld is no multiple of %d", kind->name,
                     name, (long long)size, multiple);
    else
        return true;
    return false;
}

static bool sizes_fit(const product_kind *kind, const qg_cuda_product *p, qg_cuda_error *error) {
    return size_fits(kind, 'm', p->m, kind->m_multiple, error) &&
           size_fits(kind, 'n', p->n, kind->n_multiple, error) &&
           size_fits(kind, 'k', p->k, kind->k_multiple, error);
}

// E5M2 comes out only where an operand is E5M2 (docs).
static bool gives(const product_kind *kind, const qg_cuda_product *p, qg_cuda_error *error) {
    const qg_format out = p->out_type;
    const bool has_e5m2 =
        p->a.recipe.element == QG_FORMAT_E5M2 || p->b.recipe.element == QG_FORMAT_E5M2;
    const bool is_fp8 = out == QG_FORMAT_E4M3 || out == QG_FORMAT_E5M2;
    const bool wide = out == QG_FORMAT_FP32 || out == QG_FORMAT_BF16 || out == QG_FORMAT_FP16;
    if (wide && p->out_scale)
        product_fail(error, QG_ERROR_UNSUPPORTED, "%s: no scale of a %s output", kind->name,
                     format_text(out));
    else if (wide || (is_fp8 && kind->gives_fp8 && (out == QG_FORMAT_E4M3 || has_e5m2)))
        return true;
    else
        product_fail(error, QG_ERROR_UNSUPPORTED, "%s: no %s output of %s and %s", kind->name,
                     format_text(out), format_text(p->a.recipe.element),
                     format_text(p->b.recipe.element));
    return false;
}

const product_kind *product_kind_of(const qg_cuda_product *p, const product_site *site,
                                    qg_cuda_error *error) {
    if (!has_modes(p, error))
        return NULL;
    const product_kind *kind = find_kind(p, error);
    if (!kind || !runs_there(kind, site, error) || !sizes_fit(kind, p, error) ||
        !gives(kind, p, error))
        return NULL;
    if (p->accumulates_fast && !kind->accumulates_fast) {
        product_fail(error, QG_ERROR_UNSUPPORTED, "%s: no fast accumulation", kind->name);
        return NULL;
    }
    return kind;
}
