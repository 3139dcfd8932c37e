// What the table of published results (published.c) and the computations behind it
// (published_<paper>.c) share: the value that a computation finds, and samples that are quantized
// in place. Knows neither reports nor figures.
#ifndef PUBLISHED_WORK_H
#define PUBLISHED_WORK_H

#include <figure.h>
#include <qg_emulator.h>
#include <qg_sums.h>
#include <qg_theory.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A result of ours. `value` is what the row's interval judges.
typedef struct published_value {
    bool known;       // false: the files lack the rows
    double value;     //
    double error;     // its standard error; 0: computed, not sampled
    char ours[48];    // how it is printed, if not by the row's format
    char remark[120]; // joins the row's reason
} published_value;

// The best range of one format on one sample.
typedef struct published_optimum {
    double sqnr_db; // -10 log10 MSE
    double maxval;
} published_optimum;

enum { KUZMIN_LAWS = 3, KUZMIN_FORMATS = 5 }; // INT8, E2M5, E3M4, E4M3, E5M2

// What the rows of one run have in common: found once, by the first that asks.
typedef struct published_work {
    const qg_figure_input *input;
    int64_t samples; // of a distribution (Kuzmin et al.)
    bool has_optima[KUZMIN_LAWS], has_rouhani, has_stochastic;
    published_optimum optima[KUZMIN_LAWS][KUZMIN_FORMATS];
    published_value rouhani[3], stochastic[3];
} published_work;

// A computation: `which` tells the rows of one function apart. Missing rows are no error: known
// stays false. Errors are those of memory and of the library.
typedef qg_status (*published_compute)(published_work *work, int which, published_value *out);

// ------------------------------------------------------------------------------- samples in place

// An (m, k) tensor, and what one recipe makes of it.
typedef struct published_sample {
    int64_t m, k;
    float *x, *q;
    uint8_t *codes, *scales;
    float tensor_scale;
    qg_counts counts;
    qg_sums sums;
} published_sample;

qg_status published_sample_create(int64_t m, int64_t k, published_sample *out);
void published_sample_free(published_sample *sample);

// x from a data law.
qg_status published_sample_draw(published_sample *sample, const char *law, uint64_t seed);

// A recipe by the names of run_sweep; layout, rule and rounding may be NULL: the recipe's own.
qg_status published_recipe(const char *format, const char *layout, const char *rule,
                           const char *rounding, qg_recipe *out);

// q, counts and sums; `seed` is that of stochastic rounding.
qg_status published_sample_quantize(published_sample *sample, const qg_recipe *recipe,
                                    uint64_t seed);
double published_sample_qsnr(const published_sample *sample);

// Mean and standard error of (count) values.
void published_mean(int count, const double *values, double *mean, double *error);

// The magnitudes of an element format, ascending: at most 256; grid->value points into room.
qg_status published_grid(const char *format, double room[256], qg_grid *grid);

// ------------------------------------------------------------------------------------ computations

// INT v.s. FP
enum { CROSSOVER_MX8, CROSSOVER_MX6, CROSSOVER_MX4, CROSSOVER_NV4, CROSSOVER_NV4_TEXT };
qg_status published_crossover(published_work *work, int which, published_value *out);
enum { REACHES_BF16, REACHES_FP16, REACHES_FP32 };
qg_status published_reaches_128(published_work *work, int which, published_value *out);
enum { AVERAGE_MXFP8, AVERAGE_MXINT8, AVERAGE_NVFP4, AVERAGE_NVINT4 };
qg_status published_gaussian_qsnr(published_work *work, int which, published_value *out);
qg_status published_tensor_qsnr(published_work *work, int which, published_value *out);

// Is Finer Better?
qg_status published_inversion_theory(published_work *work, int which, published_value *out);
qg_status published_inversion_rows(published_work *work, int which, published_value *out);

// Kuzmin et al.
enum { KUZMIN_UNIFORM, KUZMIN_NORMAL, KUZMIN_STUDENT, KUZMIN_STUDENT_INT8 };
qg_status published_kuzmin(published_work *work, int which, published_value *out);
// The five optima of a law, in the order INT8, E2M5, E3M4, E4M3, E5M2.
qg_status published_kuzmin_search(int law, int64_t samples, published_optimum out[KUZMIN_FORMATS]);

// Rouhani et al.
enum { ROUHANI_E4M3, ROUHANI_MSFP16, ROUHANI_MX6, ROUHANI_BOUND };
qg_status published_rouhani(published_work *work, int which, published_value *out);

// Recipes for MXFP8, Four Over Six, Training LLMs with MXFP4
enum { SATURATION_FLOOR, SATURATION_RCEIL };
qg_status published_saturation(published_work *work, int which, published_value *out);
qg_status published_four_over_six(published_work *work, int which, published_value *out);
enum { STOCHASTIC_BIAS, STOCHASTIC_ELEMENTS, STOCHASTIC_NOISE };
qg_status published_stochastic(published_work *work, int which, published_value *out);

// DeepSeek-V3: which data
enum { ACCUMULATION_POSITIVE, ACCUMULATION_NORMAL };
qg_status published_accumulation(published_work *work, int which, published_value *out);

// Constants of the formats
enum { CONSTANTS_OFP8, CONSTANTS_MX };
qg_status published_constants(published_work *work, int which, published_value *out);

#endif
