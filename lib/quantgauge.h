// quantgauge: FP8 and microscaling quantization, bit by bit.
//
// This header is the manual; it declares nothing itself. Read it top to bottom once, then go to the
// header that each part names: every declaration there gives shapes, units, errors and source.
//
// A whole program, which prints 31.86 dB (cc example.c $(pkg-config --cflags --libs quantgauge)):
//
//     #include <quantgauge.h>
//     #include <stdio.h>
//     int main(void) {
//         enum { M = 64, K = 256 };
//         static float x[M * K], q[M * K];
//         static uint8_t codes[M * K], scales[M * K / 32];
//         qg_recipe recipe;
//         qg_law *law;
//         qg_sums sums;
//         qg_quantize_options options = {.input_type = QG_FORMAT_FP32};
//         if (qg_init() || qg_recipe_find("mxfp8", &recipe) || qg_law_parse("uniform:448", &law))
//             return fprintf(stderr, "%s\n", qg_detail()), 1;
//         qg_law_generate(law, 1, 0, K, 0, M, x);
//         qg_emulator_quantize(&recipe, &options, M, K, x, codes, scales, NULL, NULL);
//         qg_emulator_dequantize(&recipe, M, K, codes, scales, 0, 0, q);
//         qg_sums_measure(M * K, x, q, 0, &sums);
//         printf("%.2f dB\n", qg_metric_value(&sums, QG_METRIC_QSNR_DB));
//         qg_law_free(law);
//     }
//
// 1. Start. Call qg_init once: it refuses a floating-point environment in which no result could be
//    trusted (qg_init.h). Every fallible function returns a qg_status; qg_detail() is the one line
//    that says what was wrong and what to do (qg_status.h). The library neither prints nor exits.
//
// 2. Name what you want. A recipe is a complete quantization (qg_recipe.h, qg_recipe_name.h): a row
//    of the recipe table ("mxfp8"), or an element format ("e4m3") with another layout
//    (qg_recipe_set_layout) and scale rule (qg_recipe_set_rule). Formats are in qg_format.h (the
//    table) and qg_codec.h (encode and decode); layouts in qg_layout.h and qg_layout_name.h.
//
// 3. Quantize and dequantize (qg_emulator.h). Buffers are yours; qg_shape_of says how large. The
//    options' input_type must be set. Codes and scales are logical: one code per element, scales
//    row-major over blocks. Packed FP4 and FP6: qg_pack.h. The orders in which kernels and cuBLASLt
//    read scales: qg_scale_order.h. One block alone, as a kernel sees it: qg_block_scale.h.
//
// 4. Multiply (qg_unit.h): qg_emulator_scaled_matmul computes out[m,n] = a[m,k] b[n,k]^T of quantized
//    operands as a matrix unit does, bit for bit: qg_unit_parse("hopper_wgmma+promote:128", &unit).
//    qg_unit_dot is one chain of the unit's instruction. qg_unit_table.h lists units and evidence.
//
// 5. The same at the speed of memory (qg_cpu.h): qg_cpu_quantize and qg_cpu_dequantize give the
//    emulator's bytes from float, bf16 and fp16, packed and in any scale order; qg_cpu_scaled_matmul
//    multiplies within a derived bound. Call qg_cpu_use_isa(NULL) once to choose the variants. To
//    switch between who performs what: qg_backend.h.
//
// 6. Measure (qg_sums.h): qg_sums_measure compares x with q, qg_metric_value derives every metric.
//    Products are compared with qg_exact_product by qg_sums_measure_product. Inputs that are
//    bit-equal on every machine: qg_data.h. What theory says: qg_theory.h,
//    and of products qg_product_theory.h.
//
// 7. Whole graphs of tensors (qg_graph.h): products become scaled ones (qg_graph_pass.h), backends
//    run them and the error of every node is measured (qg_graph_run.h); gradients
//    (qg_graph_gradient.h), and graphs as text (qg_graph_text.h).
//
// Matrices are row-major, sizes are 64 bits, K is the last axis of both operands. Results do not
// depend on threads. A rule or recipe is a row of a table: README, "Extending". The headers serve C11
// and C++17; those of formats, layouts and recipes also CUDA device code.
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
#include <qg_encode32.h>
#include <qg_format.h>
#include <qg_format_name.h>
#include <qg_input.h>
#include <qg_pack.h>

#include <qg_layout.h>
#include <qg_layout_name.h>
#include <qg_partition.h>
#include <qg_scale_order.h>

#include <qg_block_scale.h>
#include <qg_block_structure.h>
#include <qg_ordinary_scale.h>
#include <qg_recipe.h>
#include <qg_recipe_name.h>
#include <qg_scale_rule.h>
#include <qg_silu.h>

#include <qg_emulator.h>
#include <qg_exact_product.h>
#include <qg_unit.h>

#include <qg_closed_forms.h>
#include <qg_data.h>
#include <qg_elementary.h>
#include <qg_product_theory.h>
#include <qg_sums.h>
#include <qg_theory.h>

#include <qg_backend.h>
#include <qg_cpu.h>
#include <qg_cuda.h>
#include <qg_cuda_module.h>
#include <qg_kernel_choice.h>

#include <qg_graph.h>
#include <qg_graph_gradient.h>
#include <qg_graph_pass.h>
#include <qg_graph_run.h>
#include <qg_graph_text.h>

#endif
