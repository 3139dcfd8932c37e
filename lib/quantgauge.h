// quantgauge: FP8 and microscaling quantization, bit by bit.
//
// This header is the manual; it declares nothing itself. Read it top to bottom once, then go to the
// header that each part names: every declaration there gives shapes, units, errors and source.
//
// 1. Start. Call qg_init once: it refuses a floating-point environment in which no result could be
//    trusted (qg_init.h). Every fallible function returns a qg_status; qg_detail() is the one line
//    that says what was wrong and what to do (qg_status.h). The library neither prints nor exits.
//
// 2. Name what you want. A recipe is a complete quantization (qg_recipe.h, qg_recipe_name.h):
//
//        qg_recipe recipe;
//        qg_recipe_find("mxfp8", &recipe);                    // a row of the recipe table
//        qg_recipe_find("e4m3", &recipe);                     // or an element format, then
//        qg_recipe_set_layout(&recipe, layout);               //   another layout
//        qg_recipe_set_rule(&recipe, QG_RULE_RCEIL, 0);       //   another scale rule
//
//    Formats are in qg_format.h (the table) and qg_codec.h (encode and decode); layouts in
//    qg_layout.h and qg_layout_name.h.
//
// 3. Quantize and dequantize (qg_emulator.h). Buffers are yours; qg_shape_of says how large:
//
//        qg_shape shape;
//        qg_shape_of(&recipe, m, k, &shape);
//        qg_emulator_quantize(&recipe, &options, m, k, x, codes, scales, &tensor_scale, &counts);
//        qg_emulator_dequantize(&recipe, m, k, codes, scales, tensor_scale, threads, q);
//
//    Codes and scales are logical: one code per element, scales row-major over blocks. Packed FP4 and
//    FP6: qg_pack.h. The orders in which kernels and cuBLASLt read scales: qg_scale_order.h.
//
// 4. Measure (qg_sums.h): qg_sums_measure compares x with q, qg_metric_value derives every metric.
//    Inputs that are bit-equal on every machine: qg_data.h. What theory says: qg_theory.h.
//
// Matrices are row-major, sizes are 64 bits, K is the last axis of both operands. Results do not
// depend on threads. A rule or recipe is a row of a table: README, "Extending".
#ifndef QUANTGAUGE_H
#define QUANTGAUGE_H

#include <qg_version.h>

#include <qg_bits.h>
#include <qg_digest.h>
#include <qg_hd.h>
#include <qg_init.h>
#include <qg_log.h>
#include <qg_memory.h>
#include <qg_nearest.h>
#include <qg_philox.h>
#include <qg_size.h>
#include <qg_status.h>

#include <qg_codec.h>
#include <qg_format.h>
#include <qg_format_name.h>
#include <qg_pack.h>

#include <qg_layout.h>
#include <qg_layout_name.h>
#include <qg_scale_order.h>

#include <qg_recipe.h>
#include <qg_recipe_name.h>
#include <qg_scale_rule.h>

#include <qg_emulator.h>

#include <qg_data.h>
#include <qg_elementary.h>
#include <qg_sums.h>
#include <qg_theory.h>

#endif
