// Every rule of the scaled ops beside the forms of scales (test_graph_scaled_forms.c): recipes,
// what they are for, K, ranks, bias, index, and where codes and scales come from.
#include "refused_line.h"

#include <run_suite.h>

static const char SOURCES[] = "f0 = input fp32[]\n"
                              "x = input fp32[4,40]\n"
                              "h = input fp16[4,40]\n"
                              "w = input fp32[6,40]\n"
                              "u = input u8[4,40]\n"
                              "r8 = input fp32[1,1,1,1,1,1,4,40]\n"
                              "one = input fp32[1]\n"
                              "c40 = input u8[40]\n"
                              "s40 = input u8[1,2]\n"
                              "c4 = input u8[4,40]\n"
                              "s4 = input u8[4,2]\n"
                              "c4k = input u8[4,33]\n"
                              "c6 = input u8[6,40]\n"
                              "s6 = input u8[6,2]\n"
                              "c34 = input u8[3,4,40]\n"
                              "s34 = input u8[12,2]\n"
                              "c26 = input u8[2,6,40]\n"
                              "s26 = input u8[12,2]\n"
                              "t23 = input u8[2,3,40]\n"
                              "b23 = input u8[3,5]\n"
                              "t43 = input u8[4,3,40]\n"
                              "b43 = input u8[6,5]\n"
                              "b4 = input u8[2,5]\n"
                              "p4 = input u8[2,4,40]\n"
                              "g4 = input fp32[4,2,2]\n"
                              "p1 = input u8[40]\n"
                              "i4 = input i64[4]\n"
                              "i3 = input i64[3]\n"
                              "v6 = input fp32[6]\n"
                              "v4 = input fp32[4]\n"
                              "h6 = input bf16[6]\n"
                              "v36 = input fp32[3,6]\n"
                              "v24 = input fp32[3,4]\n";

// "%s" of a line becomes the recipe.
static void put_recipe(char *line, size_t size, const char *form, const char *recipe) {
    const char *percent = strstr(form, "%s");
    snprintf(line, size, "%.*s%s%s", (int)(percent - form), form, recipe, percent + 2);
}

// One row per line of text.
// clang-format off
START_TEST(recipes_that_a_graph_cannot_have) {
    static const char *const lines[] = {
        "scaled_tensor_scale(x) fp32[1] recipe=%s",
        "scaled_quant_scale(x) u8[4,2] recipe=%s",
        "scaled_quantize(x,s4) u8[4,40] recipe=%s",
        "scaled_dequantize(c4,s4) fp32[4,40] recipe=%s",
        "scaled_matmul(c4,c6,s4,s6) fp32[4,6] recipe=%s recipe_b=mxfp8",
        "scaled_matmul(c4,c6,s4,s6) fp32[4,6] recipe_b=%s recipe=mxfp8",
        "scaled_grouped_matmul(c4,c34,i4,s4,s34) fp32[4,4] recipe=%s recipe_b=mxfp8",
        "scaled_grouped_matmul(c4,c34,i4,s4,s34) fp32[4,4] recipe=mxfp8 recipe_b=%s"};
    static const struct {
        const char *recipe, *message;
    } rows[] = {
        {"mxpf8", "unknown recipe or format 'mxpf8'; the nearest is mxfp8"},
        {"mxfp8/gruop:32", "gruop:32"},
        {"mxfp8/group:0", "group:0"},
        {"mxfp8/block:0x32", "block:0x32"},
        {"mxfp8//flor", "unknown scale rule 'flor'; the nearest is floor"},
        {"e4m3//amax_ue4m3", "scale rule amax_ue4m3 needs a layout group:G, not per_tensor"},
        {"nvfp4/per_tensor", "needs a layout group:G, not per_tensor"},
        {"nvfp4/block:16x16", "needs a layout group:G, not block:16x16"},
        {"mx9/group:32", "no layout but group:16"},
        {"rlx_mxfp4x2//floor", "no scale rule but amax"},
        {"te_delayed_e4m3", "scales by an amax history, which a graph does not have"},
        {"e4m3//delayed", "scales by an amax history, which a graph does not have"},
        {"bf16", "recipe bf16 has codes of 2 bytes"},
        {"fp16/group:32", "has codes of 2 bytes"},
        {"fp32", "has codes of 4 bytes"},
        {"e8m0", "e8m0 is no element format: it has no zero"},
        {"mxfp8///rnee", "rnee"},
    };
    for (size_t l = 0; l < sizeof lines / sizeof lines[0]; l++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            char line[256];
            put_recipe(line, sizeof line, lines[l], rows[i].recipe);
            check_refused(SOURCES, &(refused_line){line, rows[i].message});
        }
}
END_TEST

START_TEST(scales_of_what_cannot_be_quantized) {
    static const refused_line rows[] = {
        {"scaled_tensor_scale(x) fp32[1]", "attribute recipe is missing"},
        {"scaled_tensor_scale(x) fp32[1] recipe=", "a scaled op needs a recipe"},
        {"scaled_tensor_scale(x) fp32[1] recipe=mxfp8", "recipe mxfp8 has no tensor scale"},
        {"scaled_tensor_scale(x) fp32[1] recipe=rlx_nvfp4", "recipe rlx_nvfp4 has no tensor scale"},
        {"scaled_tensor_scale(f0) fp32[1] recipe=nvfp4", "a single number has no last axis"},
        {"scaled_tensor_scale(u) fp32[1] recipe=nvfp4", "x is no float: u8[4,40]"},
        {"scaled_tensor_scale(x) fp32[] recipe=nvfp4", "its type is fp32[], not fp32[1]"},
        {"scaled_tensor_scale(h) fp16[1] recipe=nvfp4", "its type is fp16[1], not fp32[1]"},
        {"scaled_tensor_scale(x,x) fp32[1] recipe=nvfp4", "2 inputs, not 1 to 1"},
        {"scaled_quant_scale(x) u8[4,2]", "attribute recipe is missing"},
        {"scaled_quant_scale(f0) u8[1,1] recipe=mxfp8", "a single number has no last axis"},
        {"scaled_quant_scale(f0) fp32[1] recipe=e4m3", "a single number has no last axis"},
        {"scaled_quant_scale(u) u8[4,2] recipe=mxfp8", "x is no float: u8[4,40]"},
        {"scaled_quant_scale(i4) u8[1,1] recipe=mxfp8", "x is no float: i64[4]"},
        {"scaled_quant_scale(x) u8[4,3] recipe=mxfp8", "its type is u8[4,3], not u8[4,2]"},
        {"scaled_quant_scale(x) fp32[4,2] recipe=mxfp8", "its type is fp32[4,2], not u8[4,2]"},
        {"scaled_quant_scale(x) u8[4,3] recipe=mx9", "its type is u8[4,3], not u8[4,3,2]"},
        {"scaled_quant_scale(x) fp32[4,2] recipe=rlx_mxfp4x2",
         "its type is fp32[4,2], not fp32[4,2,2]"},
        {"scaled_quant_scale(r8) fp32[4,2,2] recipe=rlx_mxfp4x2",
         "rank 8 leaves no axis for two planes of codes"},
        {"scaled_quant_scale(x,x) u8[4,2] recipe=mxfp8", "2 inputs, not 1 to 1"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(quantize_and_dequantize) {
    static const refused_line rows[] = {
        {"scaled_quantize(x) u8[4,40] recipe=mxfp8", "1 inputs, not 2 to 3"},
        {"scaled_quantize(x,s4) u8[4,40]", "attribute recipe is missing"},
        {"scaled_quantize(u,s4) u8[4,40] recipe=mxfp8", "x is no float: u8[4,40]"},
        {"scaled_quantize(f0,one) u8[] recipe=e4m3", "a single number has no last axis"},
        {"scaled_quantize(x,s4) fp32[4,40] recipe=mxfp8", "its type is fp32[4,40], not u8[4,40]"},
        {"scaled_quantize(x,g4) u8[4,40] recipe=rlx_mxfp4x2",
         "its type is u8[4,40], not u8[2,4,40]"},
        {"scaled_quantize(r8,g4) u8[4,40] recipe=rlx_mxfp4x2", "rank 8 leaves no axis"},
        {"scaled_quantize(x,one) u8[4,40] recipe=te_e4m3",
         "must be scaled_quant_scale of the same input and recipe"},
        {"scaled_dequantize(c4) fp32[4,40] recipe=mxfp8", "1 inputs, not 2 to 3"},
        {"scaled_dequantize(x,s4) fp32[4,40] recipe=mxfp8", "codes is fp32[4,40], not u8[4,40]"},
        {"scaled_dequantize(c4,s4) fp16[4,40] recipe=mxfp8",
         "its type is fp16[4,40], not fp32[4,40]"},
        {"scaled_dequantize(p4,g4) fp32[2,4,40] recipe=rlx_mxfp4x2",
         "its type is fp32[2,4,40], not fp32[4,40]"},
        {"scaled_dequantize(c34,g4) fp32[4,40] recipe=rlx_mxfp4x2",
         "codes is u8[3,4,40]: recipe rlx_mxfp4x2 has two planes, (2, ...)"},
        {"scaled_dequantize(p1,g4) fp32[] recipe=rlx_mxfp4x2",
         "codes is u8[40]: recipe rlx_mxfp4x2 has two planes"},
        {"scaled_dequantize(c4,s4) fp32[4,40] recipe=mxfp8 seed=1", "it has no attribute seed"},
    };
    ARE_REFUSED(rows);
}
END_TEST

// The factor of amax_mul is not what its stored scale says.
START_TEST(amax_mul_takes_the_scale_of_its_own_input_and_recipe_alone) {
    static const struct {
        const char *scale, *message;
    } rows[] = {
        {"scaled_quant_scale(x) fp32[1] recipe=te_e4m3", NULL},
        {"scaled_quant_scale(w) fp32[1] recipe=te_e4m3", "of the same input and recipe"},
        {"scaled_quant_scale(x) fp32[1] recipe=te_e5m2", "of the same input and recipe"},
        {"sqrt(one) fp32[1]", "of the same input and recipe"},
        {"input fp32[1]", "of the same input and recipe"}
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sources[2048];
        const char *line = "scaled_quantize(x,s) u8[4,40] recipe=te_e4m3";
        snprintf(sources, sizeof sources, "%ss = %s\n", SOURCES, rows[i].scale);
        if (rows[i].message)
            check_refused(sources, &(refused_line){line, rows[i].message});
        else
            check_taken(sources, line);
    }
}
END_TEST

// Stochastic rounding and another rule do not matter to who reads the codes.
START_TEST(codes_are_read_by_a_recipe_that_means_the_same) {
    static const struct {
        const char *recipe, *message;
    } rows[] = {
        {"mxfp8", NULL},
        {"mxfp8//rceil/stochastic:A:16", NULL},
        {"e4m3/group:32/floor", NULL},
        {"mxfp8_e5m2", "codes of recipe mxfp8 do not mean what recipe mxfp8_e5m2 says"},
        {"mxfp8/group:39", "codes of recipe mxfp8 do not mean what recipe mxfp8/group:39 says"},
        {"mxint8", "codes of recipe mxfp8 do not mean what recipe mxint8 says"},
        {"e4m3/group:32/amax_ue4m3", "do not mean what recipe e4m3/group:32/amax_ue4m3 says"}
    };
    static const char *const lines[] = {
        "scaled_dequantize(q,s) fp32[4,40] recipe=%s",
        "scaled_matmul(q,c6,s,s6) fp32[4,6] recipe=%s recipe_b=mxfp8",
        "scaled_matmul(c6,q,s6,s) fp32[6,4] recipe_b=%s recipe=mxfp8",
        "scaled_grouped_matmul(q,c34,i4,s,s34) fp32[4,4] recipe=%s recipe_b=mxfp8"};
    char sources[2048], line[256];
    snprintf(sources, sizeof sources,
             "%ss = scaled_quant_scale(x) u8[4,2] recipe=mxfp8\n"
             "q = scaled_quantize(x,s) u8[4,40] recipe=mxfp8\n",
             SOURCES);
    for (size_t l = 0; l < sizeof lines / sizeof lines[0]; l++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            put_recipe(line, sizeof line, lines[l], rows[i].recipe);
            if (rows[i].message)
                check_refused(sources, &(refused_line){line, rows[i].message});
            else
                check_taken(sources, line);
        }
}
END_TEST

#define BOTH   " recipe=mxfp8 recipe_b=mxfp8"
#define BLOCKS " recipe=mxfp4/block:2x8 recipe_b=mxfp4/block:2x8"

START_TEST(scaled_matmul) {
    static const refused_line rows[] = {
        {"scaled_matmul(c4,c6,s4) fp32[4,6]" BOTH, "3 inputs, not 4 to 7"},
        {"scaled_matmul(c4,c6,s4,s6,v6,v6,v6,v6) fp32[4,6]" BOTH, "8 inputs, not 4 to 7"},
        {"scaled_matmul(c4,c6,s4,s6,v6,v6) fp32[4,6]" BOTH,
         "6 inputs, not 4 or 5 as recipes mxfp8 and mxfp8 need"},
        {"scaled_matmul(c4,c6,s4,s6) fp32[4,6] recipe=nvfp4 recipe_b=nvfp4",
         "4 inputs, not 6 or 7 as recipes nvfp4 and nvfp4 need"},
        {"scaled_matmul(c4,c6,s4,s6) fp32[4,6] recipe=mxfp8", "attribute recipe_b is missing"},
        {"scaled_matmul(c4,c6,s4,s6) fp32[4,6] recipe_b=mxfp8", "attribute recipe is missing"},
        {"scaled_matmul(c4k,c6,s4,s6) fp32[4,6]" BOTH, "K differs: 33 of lhs, 40 of rhs"},
        {"scaled_matmul(c6,c4k,s6,s4) fp32[6,4]" BOTH, "K differs: 40 of lhs, 33 of rhs"},
        {"scaled_matmul(c40,c6,s40,s6) fp32[6]" BOTH, "lhs has rank 1, not at least 2"},
        {"scaled_matmul(c6,c40,s6,s40) fp32[6]" BOTH, "rhs has rank 1, not at least 2"},
        {"scaled_matmul(c34,c6,s34,s6) fp32[3,4,6]" BOTH, "lhs has rank 3, rhs 2"},
        {"scaled_matmul(c34,c26,s34,s26) fp32[3,4,6]" BOTH,
         "leading axes differ: axis 0 is 3 and 2"},
        {"scaled_matmul(x,c6,s4,s6) fp32[4,6]" BOTH, "lhs is fp32[4,40], not u8[4,40]"},
        {"scaled_matmul(c4,w,s4,s6) fp32[4,6]" BOTH, "rhs is fp32[6,40], not u8[6,40]"},
        {"scaled_matmul(c4,c6,s4,s6) fp16[4,6]" BOTH, "a scaled product is fp32 or bf16"},
        {"scaled_matmul(c4,c6,s4,s6) u8[4,6]" BOTH, "a scaled product is fp32 or bf16"},
        {"scaled_matmul(c4,c6,s4,s6) fp32[6,4]" BOTH, "its type is fp32[6,4], not fp32[4,6]"},
        {"scaled_matmul(c4,c6,s4,s6) bf16[4,7]" BOTH, "its type is bf16[4,7], not bf16[4,6]"},
        {"scaled_matmul(c4,c6,s4,s6,v4) fp32[4,6]" BOTH, "bias is fp32[4], not fp32[6]"},
        {"scaled_matmul(c4,c6,s4,s6,h6) bf16[4,6]" BOTH, "bias is bf16[6], not fp32[6]"},
        {"scaled_matmul(c4,c6,s4,s6,v36) fp32[4,6]" BOTH, "bias is fp32[3,6], not fp32[6]"},
        {"scaled_matmul(c4,c6,s4,s6,f0) fp32[4,6]" BOTH, "bias is fp32[], not fp32[6]"},
        {"scaled_matmul(t23,t23,b23,b23) fp32[2,3,3]" BLOCKS,
         "lhs: blocks of 2 rows lie across matrices of 3 rows"},
        {"scaled_matmul(t23,t23,s6,b23) fp32[2,3,3] recipe=mxfp8 recipe_b=mxfp4/block:2x8",
         "rhs: blocks of 2 rows lie across matrices of 3 rows"},
    };
    ARE_REFUSED(rows);
}
END_TEST

START_TEST(scaled_grouped_matmul) {
    static const refused_line rows[] = {
        {"scaled_grouped_matmul(c4,c34,i4,s4) fp32[4,4]" BOTH, "4 inputs, not 5 to 8"},
        {"scaled_grouped_matmul(c4,c34,i4,s4,s34,v24,v24) fp32[4,4]" BOTH,
         "7 inputs, not 5 or 6 as recipes mxfp8 and mxfp8 need"},
        {"scaled_grouped_matmul(c4k,c34,i4,s4,s34) fp32[4,4]" BOTH,
         "K differs: 33 of tokens, 40 of experts"},
        {"scaled_grouped_matmul(c40,c34,i4,s40,s34) fp32[4]" BOTH, "tokens has rank 1"},
        {"scaled_grouped_matmul(c34,c34,i4,s34,s34) fp32[3,4,4]" BOTH,
         "tokens have rank 2 and experts rank 3, not 3 and 3"},
        {"scaled_grouped_matmul(c4,c6,i4,s4,s6) fp32[4,6]" BOTH, "experts has rank 2"},
        {"scaled_grouped_matmul(c4,c34,i3,s4,s34) fp32[4,4]" BOTH,
         "expert of each token is i64[3], not i64[4]"},
        {"scaled_grouped_matmul(c4,c34,v4,s4,s34) fp32[4,4]" BOTH,
         "expert of each token is fp32[4], not i64[4]"},
        {"scaled_grouped_matmul(c4,c34,i4,s4,s34,v4) fp32[4,4]" BOTH,
         "bias is fp32[4], not fp32[3,4]"},
        {"scaled_grouped_matmul(c4,c34,i4,s4,s34,v36) fp32[4,4]" BOTH,
         "bias is fp32[3,6], not fp32[3,4]"},
        {"scaled_grouped_matmul(c4,c34,i4,s4,s34) fp16[4,4]" BOTH, "is fp32 or bf16"},
        {"scaled_grouped_matmul(c4,c34,i4,s4,s34) fp32[4,3]" BOTH,
         "its type is fp32[4,3], not fp32[4,4]"},
        {"scaled_grouped_matmul(x,c34,i4,s4,s34) fp32[4,4]" BOTH,
         "tokens is fp32[4,40], not u8[4,40]"},
        {"scaled_grouped_matmul(c4,c34,i4,b4,s34) fp32[4,4] recipe=mxfp4/block:2x8 "
         "recipe_b=mxfp8", "tokens of one block may go to different experts"},
        {"scaled_grouped_matmul(c4,t43,i4,s4,b43) fp32[4,3] recipe=mxfp8 "
         "recipe_b=mxfp4/block:2x8", "experts: blocks of 2 rows lie across matrices of 3 rows"},
    };
    ARE_REFUSED(rows);
}
END_TEST
// clang-format on

int main(void) {
    const TTest *const tests[] = {recipes_that_a_graph_cannot_have,
                                  scales_of_what_cannot_be_quantized,
                                  quantize_and_dequantize,
                                  amax_mul_takes_the_scale_of_its_own_input_and_recipe_alone,
                                  codes_are_read_by_a_recipe_that_means_the_same,
                                  codes_are_read_by_a_recipe_that_means_the_same,
                                  scaled_matmul,
                                  scaled_grouped_matmul};
    return RUN_SUITE("graph_verify_scaled", tests);
}
