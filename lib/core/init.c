// The floating-point environment and the processor. See qg_init.h.
#include <qg_bits.h>
#include <qg_init.h>

#include <fenv.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <xmmintrin.h>
enum { MXCSR_DAZ = 0x0040, MXCSR_DEFAULT = 0x1f80 };
#endif

// Volatile operands keep the compiler from folding the probes at build time.
static bool subnormal_results_are_kept(void) {
    volatile float smallest_normal = 0x1p-126f, half = 0.5f;
    volatile float result = smallest_normal * half;
    return qg_bits_of_float(result) == 0x00400000u;
}

static bool subnormal_operands_are_kept(void) {
    volatile float subnormal = qg_float_of_bits(0x00400000u), scale = 0x1p127f;
    volatile float result = subnormal * scale;
    return result == 1.0f;
}

// The C library may look at the x87 unit alone, so the arithmetic itself is asked too.
static bool rounds_to_nearest(void) {
    volatile double one = 1.0, above_half = 0x1.8p-53, below_half = 0x1p-54;
    volatile double up = one + above_half, stay = one + below_half, negative = -one - below_half;
    return fegetround() == FE_TONEAREST && up == 0x1.0000000000001p0 && stay == 1.0 &&
           negative == -1.0;
}

static bool products_are_rounded_before_sums(void) {
    volatile double a = 0x1.0000001p0, minus_square = -0x1.0000002p0;
    double b = a, c = minus_square;
    volatile double sum = b * b + c; // exact a*a leaves 2^-56, the rounded product leaves 0
    return sum == 0.0;
}

qg_status qg_init(void) {
    if (!rounds_to_nearest())
        return qg_fail(QG_ERROR_ENVIRONMENT, "rounding mode is not to nearest: "
                                             "call fesetround(FE_TONEAREST) first");
    if (!subnormal_results_are_kept())
        return qg_fail(QG_ERROR_ENVIRONMENT, "subnormal results are flushed to zero (FTZ): "
                                             "build and run without fast-math");
    if (!subnormal_operands_are_kept())
        return qg_fail(QG_ERROR_ENVIRONMENT, "subnormal operands are read as zero (DAZ): "
                                             "build and run without fast-math");
    if (!products_are_rounded_before_sums())
        return qg_fail(QG_ERROR_ENVIRONMENT, "products and sums are fused: "
                                             "build with -ffp-contract=off");
    return QG_OK;
}

qg_fp_state qg_fp_enter(void) {
    qg_fp_state saved = {0};
#if defined(__x86_64__) || defined(__i386__)
    saved.control = _mm_getcsr();
    _mm_setcsr(MXCSR_DEFAULT);
#else
    saved.control = (unsigned)fegetround();
    fesetround(FE_TONEAREST);
#endif
    return saved;
}

void qg_fp_leave(qg_fp_state saved) {
#if defined(__x86_64__) || defined(__i386__)
    _mm_setcsr(saved.control);
#else
    fesetround((int)saved.control);
#endif
}

const char *qg_fp_describe(void) {
    bool keeps = subnormal_results_are_kept() && subnormal_operands_are_kept();
    if (rounds_to_nearest())
        return keeps ? "rne, ftz off, daz off" : "rne, ftz or daz on";
    return keeps ? "not rne, ftz off, daz off" : "not rne, ftz or daz on";
}

qg_cpu_features qg_cpu_detect(void) {
    qg_cpu_features f = {0};
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    f.avx2 = __builtin_cpu_supports("avx2");
    f.fma = __builtin_cpu_supports("fma");
    unsigned a, b, c, d;
    f.f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && f.avx2;
    f.avx512f = __builtin_cpu_supports("avx512f");
    f.avx512bw = __builtin_cpu_supports("avx512bw");
    f.avx512dq = __builtin_cpu_supports("avx512dq");
    f.avx512vl = __builtin_cpu_supports("avx512vl");
    f.avx512vbmi = __builtin_cpu_supports("avx512vbmi");
    f.avx512vbmi2 = __builtin_cpu_supports("avx512vbmi2");
    f.avx512vnni = __builtin_cpu_supports("avx512vnni");
    f.avx512bitalg = __builtin_cpu_supports("avx512bitalg");
    f.avx512vpopcntdq = __builtin_cpu_supports("avx512vpopcntdq");
    f.avx512bf16 = f.avx512f && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 5));
#endif
    return f;
}

static const char *const isa_names[QG_ISA_COUNT] = {"scalar", "avx2", "avx512"};

const char *qg_isa_name(qg_isa isa) { return isa_names[isa]; }

int qg_isa_find(const char *name) {
    for (int isa = 0; isa < QG_ISA_COUNT; isa++)
        if (strcmp(isa_names[isa], name) == 0)
            return isa;
    return -1;
}

bool qg_cpu_has(qg_isa isa) {
    qg_cpu_features f = qg_cpu_detect();
    bool avx2 = f.avx2 && f.fma && f.f16c;
    bool avx512 = avx2 && f.avx512f && f.avx512bw && f.avx512dq && f.avx512vl;
    return isa == QG_ISA_SCALAR || (isa == QG_ISA_AVX2 ? avx2 : avx512);
}

static void append(char *text, size_t size, bool present, const char *name) {
    if (present) {
        size_t length = strlen(text);
        snprintf(text + length, size - length, "%s%s", length ? " " : "", name);
    }
}

static void read_brand(char *brand, size_t size) {
    snprintf(brand, size, "unknown");
#if defined(__x86_64__) || defined(__i386__)
    unsigned words[12] = {0}, a, b, c, d;
    if (!__get_cpuid(0x80000000u, &a, &b, &c, &d) || a < 0x80000004u)
        return;
    for (unsigned leaf = 0; leaf < 3; leaf++)
        __get_cpuid(0x80000002u + leaf, words + 4 * leaf, words + 4 * leaf + 1,
                    words + 4 * leaf + 2, words + 4 * leaf + 3);
    char text[sizeof words + 1];
    memcpy(text, words, sizeof words);
    text[sizeof words] = 0;
    snprintf(brand, size, "%s", text + strspn(text, " "));
#endif
}

void qg_cpu_describe(char *features, size_t features_size, char *brand, size_t brand_size) {
    qg_cpu_features f = qg_cpu_detect();
    features[0] = 0;
    append(features, features_size, f.avx2, "avx2");
    append(features, features_size, f.fma, "fma");
    append(features, features_size, f.f16c, "f16c");
    append(features, features_size, f.avx512f, "avx512f");
    append(features, features_size, f.avx512bw, "avx512bw");
    append(features, features_size, f.avx512dq, "avx512dq");
    append(features, features_size, f.avx512vl, "avx512vl");
    append(features, features_size, f.avx512vbmi, "avx512vbmi");
    append(features, features_size, f.avx512vbmi2, "avx512vbmi2");
    append(features, features_size, f.avx512vnni, "avx512vnni");
    append(features, features_size, f.avx512bf16, "avx512bf16");
    append(features, features_size, f.avx512bitalg, "avx512bitalg");
    append(features, features_size, f.avx512vpopcntdq, "avx512vpopcntdq");
    read_brand(brand, brand_size);
}
