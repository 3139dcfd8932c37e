// The figures: one row each. To add one: a row here, its builder (figure_list.h), a plan that measures
// what it needs in experiments/plans, and its test.
#include <figure_list.h>

#include <stddef.h>

#define COLUMN_WIDTH 3.3
#define PAGE_WIDTH   7.0

// clang-format off
static const qg_figure FIGURES[] = {
    {"F1", "representable_values", "Representable values",
     "The positive values of each format: as many per octave everywhere in a floating-point format "
     "above its subnormals, steps of 1 from 1 to 127 in INT8.",
     NULL, NULL, COLUMN_WIDTH, 0.62, qg_build_values},
    {"F2", "rounding_error", "Relative rounding error",
     "Relative error of rounding to nearest even, the largest (solid) and the root mean square "
     "(dashed) over the octave around |x|, from bins of 1/64 octave; each curve from where all is "
     "rounded to 0 to the largest value of its format.",
     NULL, NULL, COLUMN_WIDTH, 0.70, qg_build_envelope},
    {"F3", "qsnr_scale", "QSNR against the scale",
     "One scale X for all values, F the format's largest: floating-point formats keep a plateau over "
     "as many octaves as their exponents reach, INT8 loses 6 dB with each. Lines: integration; "
     "points: measured.",
     "op=error&layout=per_tensor&scale_rule=fixed:*&data=normal", "F3.plan",
     COLUMN_WIDTH, 0.72, qg_build_qsnr_scale},
    {"F4", "qsnr_bits", "QSNR against bits per element",
     "Scales and shifts counted, MX scales rounded up (rceil). From 6 bits to 8, mantissa bits buy "
     "6 dB each and exponent bits nothing on normal data. Lines: integration; dashed: the lower bound "
     "of Rouhani et al. for MX9, MX6, MX4.",
     "op=error&data=normal&format!=e*&format!=int*", "F4.plan",
     COLUMN_WIDTH, 0.88, qg_build_qsnr_bits},
    {"F5", "scale_rules", "Scale rules",
     "What power-of-two scales lose against unrounded ones, blocks of 32: floor clips and costs MXFP8 "
     "1.8 dB, half of which rceil saves; best gains next to nothing over the better of even and rceil. "
     "Short lines: integration, where the scale follows from a block's maximum.",
     "op=error&layout=group:32&data=normal&format=mx*", "F5.plan",
     PAGE_WIDTH, 0.36, qg_build_scale_rules},
    {"F6", "block_size", "QSNR against the size of blocks",
     "By scale format. Smaller blocks help INT8 and E2M1; a scale rounded to E4M3 clips or shrinks "
     "the largest element, which costs INT8 10 dB in blocks of 8. Lines: integration; points: "
     "measured.",
     "op=error&layout=group:*&data=normal", "F6.plan",
     PAGE_WIDTH, 0.36, qg_build_block_size},
    {"F7", "crest_factor", "QSNR against the crest factor",
     "Blocks of a given crest factor (largest magnitude over rms). Lines: the closed forms of \"INT "
     "v.s. FP\" with scales too large by 1.5 (MX) and 1.05 (NV); dashed, and in the titles: where they cross (published: 7.55, 1.96, "
     "2.04, 2.39). The forms take 2^(b-1) for the largest integer: INT4, whose is 7, lies 1.2 dB lower.",
     "op=error&data=crest:*", "F7.plan",
     PAGE_WIDTH, 0.40, qg_build_crest_factor},
    {"F8", "narrow_data", "Narrow data",
     "E2M1 with block scales in unsigned E4M3. Without a tensor scale, narrow data take the scales out "
     "of E4M3's range, those of the smallest blocks first: below sigma = 0.02 blocks of 8 are the "
     "worst. Lines: integration; points: measured.",
     "op=error&format=e2m1&layout=group:*&data=normal*", "F8.plan",
     COLUMN_WIDTH, 0.75, qg_build_narrow_data},
    {"F9", "error_k", "Error of a product against K",
     "The error that formats make (MXFP4, MXFP8; against the product of the source) does not "
     "depend on K; what accumulators add to it (against the product of the quantized operands) "
     "grows with its square root where they round to nearest, faster where they truncate, and not "
     "at all with promotion every 128. Lines through points of MXFP4, MXFP8, "
     "BF16 and FP32: theory; grey: slopes 1/2 and 1.",
     "op=gemm&data=normal&backend=emulator&out_type=fp32&bias=0&input_type=fp32",
     "F9.plan", COLUMN_WIDTH, 0.98, qg_build_error_k},
    {"F10", "bias_k", "Bias of a product against K",
     "Rounding down has a bias on all data, rounding toward zero on positive data alone (there the "
     "two are the same), and both grow with K; rounding to nearest has none beyond chance as long as "
     "the terms are large against an ulp of the sum. Hopper's FP8 accumulator truncates, and "
     "promotion every 128 stops the growth. Lines: theory.",
     "op=gemm&backend=emulator&out_type=fp32&bias=0&input_type=fp32",
     "F10.plan", PAGE_WIDTH, 0.46, qg_build_bias_k},
    {"F11", "promotion", "Promotion interval",
     "What Hopper's FP8 accumulator adds to the error of a product of K = 4096, against the number "
     "of elements after which it is promoted into binary32. Lines without points: the error "
     "that the rounding of the operands to E4M3 makes, by theory.",
     "op=gemm&k=4096&backend=emulator&out_type=fp32&bias=0&input_type=fp32",
     "F11.plan", COLUMN_WIDTH, 0.70, qg_build_promotion},
    {"F12", "qsnr_sizes", "QSNR over the sizes of a matrix",
     "QSNR at each (m, k) above that of the largest matrix, which is in each panel's title: where few "
     "elements share a scale their largest is smaller, and integers gain by it.",
     "op=error&data=normal&scale_rule!=fixed*", "F12.plan", PAGE_WIDTH, 0.46, qg_build_sizes},
    {"F13", "error_distribution", "Distribution of the relative error",
     "Share of a format's elements whose relative error is as large or larger, from histograms with "
     "bins of an octave; at 1 an element has become zero.",
     "op=error&data=normal&scale_rule!=fixed*", "F13.plan", COLUMN_WIDTH, 0.85, qg_build_distribution},
    {"F14", "saturated_underflowed", "Saturated and underflowed shares",
     "One scale X for all values, as in F3: the share of values that become 0, and (INT8, which stands "
     "for all) that exceed F X. Lines: integration; points on the axis: none was counted.",
     "op=error&layout=per_tensor&scale_rule=fixed:*&data=normal&backend=emulator",
     "F3.plan", COLUMN_WIDTH, 0.85, qg_build_shares},
    {"F15", "agreement", "Agreement bit by bit",
     "Share of the comparisons whose bits differ: lines of vectors recorded on devices against the "
     "unit that models them, and elements of tensors quantized by a backend against the emulator "
     "(their number in parentheses). \"exact\": none differs; the other mark is where one difference would lie.",
     "op!=gemm&op!=partition&op!=throughput&op!=model", "F15.plan", COLUMN_WIDTH, 1.1, qg_build_agreement},
    {"F16", "stochastic", "Stochastic rounding against rounding to nearest",
     "The error of a product of positive data: with operands rounded to nearest it stops falling "
     "at their bias, with stochastic rounding, which has twice the noise, it falls as 1/sqrt(K). "
     "Lines: theory.",
     "op=gemm&data=normal:abs&backend=emulator&out_type=fp32&bias=0&input_type=fp32",
     "F16.plan", COLUMN_WIDTH, 0.85, qg_build_stochastic_k},
    {"F17", "throughput", "Throughput of the quantizers",
     "Bytes read and written per second: medians with the smallest and largest of the samples, and "
     "memcpy's rate in the same run. Secondary: of one machine at one moment.",
     "op=throughput", "F17.plan", COLUMN_WIDTH, 0.80, qg_build_throughput},
};
// clang-format on

const qg_figure *qg_figure_listed(int i) {
    return i >= 0 && i < (int)(sizeof FIGURES / sizeof FIGURES[0]) ? &FIGURES[i] : NULL;
}
