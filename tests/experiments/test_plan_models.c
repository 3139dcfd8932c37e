// Plans of operation `model`: which nodes are cases, their order, what is skipped, data, identity.
#include <plan_folder.h>

#include <model.h>
#include <model_run.h>

#include <inttypes.h>

#define SEEDED "ops", "model", "data", "model:seeded"

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static const qg_case *find(const qg_plan *plan, const char *tensor) {
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        if (is(qg_plan_case(plan, i)->tensor, tensor))
            return qg_plan_case(plan, i);
    return NULL;
}

// ------------------------------------------------------------------------------------------ cases

START_TEST(a_case_for_each_named_node_that_quantization_changes) {
    qg_plan *plan =
        plan_of("", SEEDED, "formats", "int8", "layouts", "per_row", "units", "exact", NULL);
    const qg_graph *graph = model_graph(qg_plan_case(plan, 0)->source->model);
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        qg_node node = qg_graph_find(graph, c->tensor);
        ck_assert_int_eq(node, c->source->node);
        ck_assert(qg_graph_node_is_named(graph, node) && !c->skip);
        ck_assert_str_eq(c->data, "model:seeded");
        ck_assert(i == 0 || node > qg_plan_case(plan, i - 1)->source->node);
    }
    ck_assert_ptr_nonnull(find(plan, "layer0/query/product"));
    ck_assert_ptr_nonnull(find(plan, "layer1/probabilities"));
    ck_assert_ptr_nonnull(find(plan, "pooled"));
    ck_assert_str_eq(qg_plan_case(plan, qg_plan_count(plan) - 1)->tensor, "embedding");
    static const char *const others[] = {"ids",
                                         "mask",
                                         "padding",
                                         "embeddings",
                                         "embeddings.word_embeddings.weight",
                                         "encoder.layer.0.attention.self.query.weight"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_msg(qg_graph_find(graph, others[i]) != QG_NODE_NONE, "%s", others[i]);
        ck_assert_msg(!find(plan, others[i]), "%s is a case", others[i]);
    }
    qg_plan_free(plan);
}
END_TEST

START_TEST(m_and_k_are_the_nodes_rows_and_last_axis) {
    qg_plan *plan =
        plan_of("", SEEDED, "formats", "mxfp8", "rules", "rceil", "units", "exact", NULL);
    const qg_case *c = find(plan, "layer0/intermediate");
    ck_assert(c->m == 96 && c->k == 256 && c->n == 0);
    c = find(plan, "layer0/probabilities"); // (8, 4, 12, 12)
    ck_assert(c->m == 8 * 4 * 12 && c->k == 12 && c->n == 0);
    c = find(plan, "embedding");
    ck_assert(c->m == 8 && c->k == 64 && c->n == 0);
    ck_assert_str_eq(c->format, "mxfp8");
    ck_assert_str_eq(c->format_b, "mxfp8");
    ck_assert_str_eq(c->layout_b, "group:32");
    ck_assert_str_eq(c->unit, "exact");
    ck_assert(!c->bias && c->sm_count == 0 && c->input_type == QG_FORMAT_FP32);
    qg_plan_free(plan);
}
END_TEST

// Of one run, whatever a run depends on.
static bool same_run(const qg_case *a, const qg_case *b) {
    return a->source->model == b->source->model && a->recipe == b->recipe &&
           a->recipe_b == b->recipe_b && is(a->unit, b->unit) && a->out_type == b->out_type &&
           is(a->backend, b->backend) && a->seed == b->seed;
}

START_TEST(nodes_of_one_run_follow_one_another_and_share_its_cost) {
    qg_plan *plan =
        plan_of("", "ops", "model,error", "data", "model:seeded,normal", "m", "4", "k", "64",
                "formats", "int8,mxfp8", "layouts", "default", "units", "exact,fp32_sequential",
                "out-types", "fp32,bf16", "seeds", "1,2", "backends", "emulator,cpu", NULL);
    const qg_case *last = NULL;
    int64_t runs = 0, length = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (c->op->kind != QG_OP_MODEL) {
            ck_assert(!c->is_served);
            continue;
        }
        bool continues = last && same_run(last, c);
        ck_assert(!continues || c->source->node > last->source->node);
        ck_assert(!continues || c->order == last->order + 1);
        ck_assert(c->is_served == continues);
        ck_assert(continues || length % 48 == 0);
        runs += !continues;
        length++;
        last = c;
    }
    ck_assert_int_eq(length, 48 * runs);
    ck_assert_int_eq(runs, (4 + 3) * 2 * 2 * 2); // recipes, units, types, seeds; cpu has no unit
    qg_plan_free(plan);
}
END_TEST

START_TEST(a_run_is_of_one_seed) {
    qg_plan *plan = plan_of("", SEEDED, "formats", "int8", "layouts", "per_row", "units", "exact",
                            "seeds", "1,2", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2 * 48);
    for (int64_t i = 0; i < 2 * 48; i++)
        ck_assert(qg_plan_case(plan, i)->is_served == (i % 48 > 0));
    ck_assert_uint_eq(qg_plan_case(plan, 48)->seed, 2);
    qg_plan_free(plan);
}
END_TEST

// Two backends have the same unit; one of them need not answer.
START_TEST(a_run_is_of_one_backend) {
    qg_plan *plan = plan_of("", SEEDED, "formats", "int8", "layouts", "per_row", "units", "native",
                            "backends", "cpu,cuda", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2 * 48);
    for (int64_t i = 0; i < 2 * 48; i++) {
        ck_assert_str_eq(qg_plan_case(plan, i)->backend, i < 48 ? "cpu" : "cuda");
        ck_assert(qg_plan_case(plan, i)->is_served == (i % 48 > 0));
    }
    qg_plan_free(plan);
}
END_TEST

// Whatever part of it a plan selects.
START_TEST(a_run_is_in_one_shard) {
    qg_plan *all =
        plan_of("", SEEDED, "formats", "int8,int4", "layouts", "per_row", "units", "exact", NULL);
    qg_plan *some = plan_of("", SEEDED, "formats", "int4", "layouts", "per_row", "units", "exact",
                            "where", "tensor=layer1*", NULL);
    uint64_t int8 = qg_plan_case(all, 0)->shard_key, int4 = qg_plan_case(all, 48)->shard_key;
    ck_assert_uint_ne(int8, int4);
    for (int64_t i = 0; i < 2 * 48; i++)
        ck_assert_uint_eq(qg_plan_case(all, i)->shard_key, i < 48 ? int8 : int4);
    ck_assert_uint_eq(qg_plan_case(some, 0)->shard_key, int4);
    qg_plan_free(some);
    qg_plan_free(all);
    all =
        plan_of("", "formats", "int8", "ops", "error", "data", "normal", "m", "1", "k", "8", NULL);
    ck_assert_uint_eq(qg_plan_case(all, 0)->shard_key, qg_plan_case(all, 0)->id);
    qg_plan_free(all);
}
END_TEST

START_TEST(the_unit_varies_before_the_recipe) {
    qg_plan *plan = plan_of("", SEEDED, "formats", "int8", "layouts", "per_row,per_tensor", "units",
                            "exact,fp32_sequential", "where", "tensor=embedding", NULL);
    static const char *const wanted[][2] = {
        {"per_row",    "exact"          },
        {"per_row",    "fp32_sequential"},
        {"per_tensor", "exact"          },
        {"per_tensor", "fp32_sequential"}
    };
    ck_assert_int_eq(qg_plan_count(plan), 4);
    for (int64_t i = 0; i < 4; i++) {
        ck_assert_str_eq(qg_plan_case(plan, i)->layout, wanted[i][0]);
        ck_assert_str_eq(qg_plan_case(plan, i)->unit, wanted[i][1]);
        ck_assert(!qg_plan_case(plan, i)->is_served);
    }
    qg_plan_free(plan);
}
END_TEST

// What a run takes does not depend on how many of its nodes are selected.
START_TEST(the_estimate_is_that_of_the_runs) {
    qg_plan *all =
        plan_of("", SEEDED, "formats", "int8", "layouts", "per_row", "units", "exact", NULL);
    qg_plan *one = plan_of("", SEEDED, "formats", "int8", "layouts", "per_row", "units", "exact",
                           "where", "tensor=embedding", NULL);
    double cost = 0, of_one = 0;
    for (int64_t i = 0; i < qg_plan_count(all); i++) {
        const qg_case *c = qg_plan_case(all, i);
        ck_assert((c->op->cost(c) > 0) == (i == 0)); // the first pays
        cost += c->op->cost(c);
        ck_assert_int_gt(qg_case_bytes(c), 0);
        ck_assert_int_lt(qg_case_bytes(c), 64 << 20);
    }
    of_one = qg_plan_case(one, 0)->op->cost(qg_plan_case(one, 0));
    ck_assert(of_one > 0 && cost > of_one * 0.999 && cost < of_one * 1.001);
    qg_plan_free(all);
    qg_plan_free(one);
}
END_TEST

// Two runners that keep their values, and what the unit takes.
START_TEST(the_memory_is_that_of_two_runs) {
    qg_plan *plan =
        plan_of("", SEEDED, "formats", "int8", "layouts", "per_row", "units", "exact", NULL);
    const qg_case *c = qg_plan_case(plan, 0);
    qg_graph_run_options options = {.keep = true};
    qg_graph_runner *runner;
    ck_assert_int_eq(qg_graph_runner_create(model_graph(c->source->model), &options, &runner),
                     QG_OK);
    int64_t one = qg_graph_runner_bytes(runner, NULL);
    ck_assert_int_ge(c->op->bytes(c), 2 * one);
    ck_assert_int_le(c->op->bytes(c), 4 * one);
    qg_graph_runner_free(runner);
    qg_plan_free(plan);
}
END_TEST

// ---------------------------------------------------------------------------------------- skipped

static void skipped_once(const char *format, const char *unit, const char *type,
                         const char *reason) {
    qg_plan *plan = plan_of("", SEEDED, "formats", format, "layouts", "default", "units", unit,
                            "out-types", type, NULL);
    int64_t skipped = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (!c->skip || !strstr(c->skip, reason))
            continue;
        skipped++;
        ck_assert_str_eq(c->tensor, "embedding");
        ck_assert(!c->is_served);
        ck_assert(qg_case_cost(c) == 0);
    }
    ck_assert_msg(skipped == 1, "%s, %s: %" PRId64 " cases", format, reason, skipped);
    qg_plan_free(plan);
}

START_TEST(what_cannot_run_is_one_case_with_its_reason) {
    skipped_once("mx9", "exact", "fp32,fp*16", "come out in fp32 or bf16");
    skipped_once("te_*e4m3", "exact", "fp32", "amax history");
    skipped_once("nvfp4,te_e4m3", "exact,hopper_wgmma", "fp32", "hopper_wgmma does not multiply");
}
END_TEST

// Not with every unit of the hardware.
START_TEST(a_recipe_that_a_graph_refuses_is_shown_with_the_software_units) {
    qg_plan *plan = plan_of("", SEEDED, "formats", "te_delayed_e4m*", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2);
    ck_assert_str_eq(qg_plan_case(plan, 0)->unit, "exact");
    ck_assert_str_eq(qg_plan_case(plan, 1)->unit, "fp32_sequential");
    qg_plan_free(plan);
}
END_TEST

START_TEST(a_listed_value_that_no_model_can_have_is_refused) {
    refused(QG_ERROR_ARGUMENT, "--out-types: 'fp16' fits nothing in the sweep: products of a model",
            SEEDED, "formats", "mxfp8", "units", "exact", "out-types", "fp16,fp32", NULL);
    refused(QG_ERROR_ARGUMENT, "--out-types: 'fp16' fits nothing in the sweep: products of a model",
            SEEDED, "formats", "mxfp8", "units", "exact", "out-types", "fp16", NULL);
    refused(QG_ERROR_ARGUMENT, "--formats: 'bf16' fits nothing in the sweep: the model takes",
            SEEDED, "formats", "bf16,mxfp8", "units", "exact", NULL);
    refused(QG_ERROR_ARGUMENT, "--formats: 'te_delayed_e4m3' fits nothing", SEEDED, "formats",
            "te_delayed_e4m3", "units", "exact", NULL);
    refused(QG_ERROR_ARGUMENT, "--formats-b: 'fp16' fits nothing in the sweep: the model takes",
            SEEDED, "formats", "int8", "formats-b", "fp16,int8", "units", "exact", NULL);
    refused(QG_ERROR_ARGUMENT, "--units: 'hopper_wgmma' fits nothing in the sweep", SEEDED,
            "formats", "int8", "units", "exact,hopper_wgmma", NULL);
    refused(QG_ERROR_ARGUMENT,
            "--units: 'hopper_wgmma+promote:128+split:4' fits nothing in the sweep: parts of",
            SEEDED, "formats", "e4m3", "layouts", "group:128", "units",
            "exact,hopper_wgmma+promote:128+split:4", NULL);
    // A product takes what a graph does not: beside op gemm the values fit.
    qg_plan *plan = plan_of("", "ops", "gemm,model", "data", "normal,model:seeded", "m", "2", "n",
                            "2", "k", "64", "formats", "bf16", "layouts", "per_row", "units",
                            "exact", "out-types", "fp16", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2);
    ck_assert_ptr_null(qg_plan_case(plan, 0)->skip);
    ck_assert_ptr_nonnull(qg_plan_case(plan, 1)->skip);
    qg_plan_free(plan);
}
END_TEST

// Each operand answers for itself, and the message ends with what to write.
START_TEST(the_option_at_fault_is_named_with_the_way_out) {
    refused(QG_ERROR_ARGUMENT,
            "--formats: 'bf16' fits nothing in the sweep: the model takes formats of up to 8 bits, "
            "bf16 has 16; for weights alone take a nearly exact format for activations, e.g. "
            "--formats mx9 --formats-b mxfp4",
            SEEDED, "formats", "bf16", "formats-b", "mxfp4", "units", "exact", NULL);
    refused(QG_ERROR_ARGUMENT,
            "--formats-b: 'fp32' fits nothing in the sweep: the model takes formats of up to 8 "
            "bits, fp32 has 32; for activations alone take a nearly exact format for weights, e.g. "
            "--formats mxfp4 --formats-b mx9",
            SEEDED, "formats", "mxfp4", "formats-b", "fp32", "units", "exact", NULL);
    refused(QG_ERROR_ARGUMENT, "--formats-b: 'fp16' fits nothing", SEEDED, "formats", "bf1*",
            "formats-b", "fp16", "units", "exact", NULL);
}
END_TEST

START_TEST(units_of_a_glob_come_with_the_promotion_they_need) {
    qg_plan *plan = plan_of("", SEEDED, "formats", "e4m3", "layouts", "per_row,group:128", "units",
                            "hopper_wgm*", "where", "tensor=embedding", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2);
    ck_assert_str_eq(qg_plan_case(plan, 0)->unit, "hopper_wgmma");
    ck_assert_str_eq(qg_plan_case(plan, 1)->unit, "hopper_wgmma+promote:128");
    qg_plan_free(plan);
}
END_TEST

// ------------------------------------------------------------------------------------------- data

START_TEST(each_operation_takes_its_own_data) {
    qg_plan *plan = plan_of("", "ops", "error,model", "formats", "mxfp8", "rules", "floor", "units",
                            "exact", "data", "normal,model:seeded", "m", "2", "k", "32", NULL);
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert_str_eq(c->data, is(c->op->name, "error") ? "normal" : "model:seeded");
    }
    ck_assert_int_eq(qg_plan_count(plan), 1 + 48);
    qg_plan_free(plan);
    refused(QG_ERROR_ARGUMENT, "--data: 'normal' is no data of operation model", "ops", "model",
            "data", "normal", "formats", "int8", NULL);
    refused(QG_ERROR_ARGUMENT, "--data: 'model:seeded' is for operation model", "ops", "error",
            "data", "model:seeded", "formats", "int8", NULL);
    refused(QG_ERROR_ARGUMENT, "--data: models alone leave the other operations without data",
            "ops", "error,model", "data", "model:seeded", "formats", "int8", NULL);
    refused(QG_ERROR_ARGUMENT, "--data: operation model is left without data", "ops", "error,model",
            "data", "normal", "formats", "int8", NULL);
}
END_TEST

START_TEST(a_model_is_known_by_name_or_file) {
    refused(QG_ERROR_ARGUMENT, "--data: model 'tiny' is none: minilm, seeded, or", "ops", "model",
            "data", "model:tiny", "formats", "int8", NULL);
    refused(QG_ERROR_ARGUMENT, "--data: model '' is none", "ops", "model", "data",
            "model:", "formats", "int8", NULL);
    refused(QG_ERROR_IO, "--data: ", "ops", "model", "data", "model:/nowhere/x.safetensors",
            "formats", "int8", NULL);
}
END_TEST

START_TEST(options_of_single_tensors_do_not_concern_models) {
    static const char *const options[][2] = {
        {"m",         "3"   },
        {"n",         "3"   },
        {"k",         "32"  },
        {"inputs",    "bf16"},
        {"bias",      "1"   },
        {"sm-counts", "8"   }
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        refused(QG_ERROR_ARGUMENT, "no operation of the sweep has", SEEDED, "formats", "int8",
                options[i][0], options[i][1], NULL);
}
END_TEST

// --------------------------------------------------------------------------------------- identity

START_TEST(the_id_holds_node_and_content) {
    qg_plan *plan =
        plan_of("", SEEDED, "formats", "int8", "layouts", "per_row", "units", "exact", NULL);
    const qg_case *c = find(plan, "layer1/gelu");
    char text[4096], wanted[128];
    ck_assert(qg_case_identity_text(c, text, sizeof text));
    snprintf(wanted, sizeof wanted,
             "data=model:seeded\ntensor=layer1/gelu\ntensor_digest=%016" PRIx64 "\n",
             model_digest(c->source->model));
    ck_assert_msg(strstr(text, wanted) != NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "op=model\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nm=96\nn=0\nk=256\n"));
    qg_plan_free(plan);
}
END_TEST

START_TEST(plans_and_cases_reproduce) {
    qg_plan *plan = plan_of("", SEEDED, "formats", "int8,mxfp4,deepseek_act128", "formats-b",
                            "int8,deepseek_w128x128", "units", "exact,hopper_wgm*", "out-types",
                            "fp32,bf16", "rounding", "rne,stochastic:B:8", "seeds", "3,4", "where",
                            "tensor=embedding&out_type=bf16", NULL);
    ck_assert_int_gt(qg_plan_count(plan), 40);
    check_repro_lines(plan);
    check_text(plan);
    qg_plan_free(plan);
    plan = plan_of("", "ops", "model,gemm,error", "formats", "mxfp8", "rules", "rceil", "units",
                   "exact,fp64", "bias", "0,1", "inputs", "bf16", "data", "normal,model:seeded",
                   "m", "2", "n", "3", "k", "64", NULL);
    check_repro_lines(plan);
    check_text(plan);
    ck_assert_ptr_nonnull(strstr(qg_plan_text(plan), "data normal,model:seeded\n"));
    qg_plan_free(plan);
}
END_TEST

START_TEST(the_text_names_a_model_once_and_the_units_found) {
    qg_plan *plan = plan_of("", SEEDED, "formats", "mxfp8", "rules", "rceil", "units",
                            "exact,blackwell_mx*", NULL);
    const char *text = qg_plan_text(plan), *first = strstr(text, "# model:seeded: digest ");
    ck_assert_msg(first && !strstr(first + 1, "# model:seeded"), "%s", text);
    ck_assert_msg(strstr(text, "# units found: exact blackwell_mx\n") != NULL, "%s", text);
    ck_assert_ptr_null(strstr(text, "\ninputs "));
    ck_assert_ptr_null(strstr(text, "\nbias "));
    qg_plan_free(plan);
}
END_TEST

START_TEST(sections_may_differ_in_what_a_graph_refuses) {
    char folder[64];
    enter_folder(folder);
    write_text("two.plan",
               "[a]\nops gemm\nformats bf16\nlayouts per_row\nunits exact\ndata normal\n"
               "m 2\nn 2\nk 64\nbackends emulator\n"
               "[b]\nops model\nformats bf16,int8\nlayouts per_row\nunits exact\n"
               "data model:seeded\nbackends emulator\nwhere tensor=embedding\n");
    qg_plan *plan = NULL;
    qg_plan_request *request;
    ck_assert_int_eq(qg_plan_request_create(&request), QG_OK);
    ck_assert_int_eq(qg_plan_request_file(request, "two.plan"), QG_OK);
    ck_assert_msg(qg_plan_build(request, &plan) == QG_OK, "%s", qg_detail());
    qg_plan_request_free(request);
    ck_assert_int_eq(qg_plan_count(plan), 3);
    for (int64_t i = 0; i < 3; i++) {
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert_int_eq(c->skip != NULL, is(c->op->name, "model") && is(c->format, "bf16"));
    }
    qg_plan_free(plan);
    leave_folder(folder);
}
END_TEST

// The recipe of a case and what its graph makes of the text are one.
START_TEST(a_graph_reads_the_recipes_of_the_plan) {
    qg_plan *plan =
        plan_of("", SEEDED, "formats", "*", "layouts",
                "default,per_tensor,per_row,group:16,group:64,block:32x32", "rules",
                "default,amax,amax_pow2,rceil,best,two_level,amax_ue4m3,fixed:0x1p-3", "rounding",
                "rne,rtz,stochastic:A:16", "units", "exact", "where", "tensor=embedding", NULL);
    int64_t read = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        model_recipe_names names = {c->format, c->layout, c->scale_rule, c->rounding};
        char text[QG_RECIPE_TEXT_SIZE];
        qg_recipe recipe;
        if (c->skip)
            continue;
        read++;
        ck_assert_int_eq(model_recipe_text(&names, text), QG_OK);
        ck_assert_msg(qg_recipe_parse(text, &recipe) == QG_OK, "%s: %s", text, qg_detail());
        ck_assert_msg(same_recipe(&recipe, c->recipe), "%s", text);
    }
    ck_assert_int_gt(read, 2000);
    qg_plan_free(plan);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {a_case_for_each_named_node_that_quantization_changes,
                                  m_and_k_are_the_nodes_rows_and_last_axis,
                                  nodes_of_one_run_follow_one_another_and_share_its_cost,
                                  a_run_is_of_one_seed,
                                  a_run_is_of_one_backend,
                                  a_run_is_in_one_shard,
                                  the_unit_varies_before_the_recipe,
                                  the_estimate_is_that_of_the_runs,
                                  the_memory_is_that_of_two_runs,
                                  what_cannot_run_is_one_case_with_its_reason,
                                  a_recipe_that_a_graph_refuses_is_shown_with_the_software_units,
                                  a_listed_value_that_no_model_can_have_is_refused,
                                  the_option_at_fault_is_named_with_the_way_out,
                                  units_of_a_glob_come_with_the_promotion_they_need,
                                  each_operation_takes_its_own_data,
                                  a_model_is_known_by_name_or_file,
                                  options_of_single_tensors_do_not_concern_models,
                                  the_id_holds_node_and_content,
                                  plans_and_cases_reproduce,
                                  the_text_names_a_model_once_and_the_units_found,
                                  sections_may_differ_in_what_a_graph_refuses,
                                  a_graph_reads_the_recipes_of_the_plan};
    return RUN_SUITE("plan_models", tests);
}
