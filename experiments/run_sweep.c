// run_sweep: measures quantization over formats, layouts, rules, data and sizes.
//
// Reads the command line, builds the plan and dispatches: --list, --list-names, --show, --merge,
// --learn-route, or a run.
// Options and exit codes: README, "run_sweep".
#include <group_route.h>
#include <import_device.h>
#include <isa_choice.h>
#include <learn_route.h>
#include <message.h>
#include <name_list.h>
#include <plan_list.h>
#include <qg_backend_list.h>
#include <qg_init.h>
#include <qg_log.h>
#include <qg_signals.h>
#include <qg_table.h>
#include <qg_version.h>
#include <summary.h>
#include <sweep_options.h>
#include <text_grid.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int fail(qg_status status) {
    qg_message_error("%s", qg_detail());
    return qg_message_exit_code(status);
}

static void print_shard(const qg_command *command) {
    const qg_shard *shard = &command->shard;
    if (shard->shards > 1)
        qg_message_note("shard %d of %d (%s)", shard->shard, shard->shards,
                        shard->origin ? shard->origin : "--shard");
}

// A plan of which every case is SKIPPED measures nothing, whatever the shard.
static bool measures_something(const qg_plan *plan) {
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        if (!qg_plan_case(plan, i)->skip)
            return true;
    return false;
}

// Backends refuse cases that the plan knows nothing against.
static bool all_skipped(const qg_command *command, const qg_sweep_outcome *outcome) {
    return command->shard.shards == 1 && outcome->cases > 0 &&
           outcome->status[QG_CASE_SKIPPED] == outcome->cases;
}

static void print_log(void *context, const char *line) {
    (void)context;
    qg_message_note("%s", line);
}

static bool requires_cuda(void) {
    const char *text = getenv("QG_REQUIRE_CUDA");
    return text && strcmp(text, "1") == 0;
}

// The result file holds a phrase; what to do about it is said here. False: nothing shall run.
static bool check_backends(const qg_plan *plan) {
    const char *said = NULL;
    if (requires_cuda() && qg_backend_unavailable("cuda")) {
        qg_message_error("QG_REQUIRE_CUDA=1, but %s", qg_backend_why_unavailable("cuda"));
        return false;
    }
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (c->unavailable && c->backend != said)
            qg_message_error("backend %s does not answer: %s", c->backend,
                             qg_backend_why_unavailable(c->backend));
        said = c->unavailable ? c->backend : said;
    }
    return true;
}

static int run(const qg_command *command, const qg_plan *plan) {
    enum { STANDARD_WIDTH = 80 };
    qg_sweep_outcome outcome;
    qg_plan_estimate estimate = qg_plan_estimate_of(plan, &command->shard, command->run.threads);
    char text[160];
    qg_plan_estimate_text(&estimate, command->run.threads, text, sizeof text);
    if (!command->run.merge_only && !check_backends(plan))
        return 5;
    if (command->run.verbosity > 0) {
        qg_log_set(print_log, NULL);
        qg_message_note("%s", text);
        qg_plan_list_runs(plan, stderr);
    }
    qg_sweep_run(plan, &command->run, stderr, &outcome);
    qg_summary summary = {.plan = plan,
                          .outcome = &outcome,
                          .program = command->program,
                          .out = command->run.out,
                          .width = qg_terminal_width(stdout, STANDARD_WIDTH),
                          .shard = &command->shard,
                          .merge_only = command->run.merge_only};
    if (command->run.verbosity >= 0)
        qg_summary_print(&summary, stdout);
    int code = outcome.exit_code;
    if (code == 0 && (!measures_something(plan) || all_skipped(command, &outcome))) {
        qg_message_error("nothing was measured: every case is SKIPPED");
        code = 4;
    }
    qg_table_free(outcome.table);
    return code;
}

static void report_empty(const qg_plan *plan) {
    int64_t considered = qg_plan_considered(plan);
    if (considered > 0)
        qg_message_error("nothing selected: --where and --exclude leave none of %" PRId64 " cases",
                         considered);
    else
        qg_message_error(
            "nothing selected: no operation has a case for these formats and backends");
}

static int sweep(const qg_command *command) {
    qg_plan *plan;
    qg_status status = qg_plan_build(command->request, &plan);
    if (status)
        return fail(status);
    int code;
    print_shard(command);
    if (qg_plan_count(plan) == 0) {
        report_empty(plan);
        code = 4;
    } else if (command->list) {
        status = qg_plan_list(plan, &command->shard, command->run.threads, stdout);
        code = status ? fail(status) : 0;
    } else {
        code = run(command, plan);
    }
    qg_plan_free(plan);
    return code;
}

static int dispatch(const qg_command *command) {
    if (command->version) {
        printf("run_sweep (quantgauge) %s\n", QG_VERSION);
        return 0;
    }
    qg_status status = qg_init();
    if (status)
        return fail(status);
    int code = qg_isa_choose(command->run.isa);
    if (code)
        return code;
    code = group_lever_choose(command->group_kernel);
    if (code)
        return code;
    if (command->learn_count)
        return learn_route(command->learn, command->learn_count, command->learn_out, stdout);
    if (command->list_names) {
        qg_name_list(stdout);
        return 0;
    }
    if (command->import_device)
        return import_device(command->import_device, command->run.out,
                             command->run.existing == QG_EXISTING_OVERWRITE,
                             command->run.command_line);
    return command->show ? qg_show(&command->show_options, stdout) : sweep(command);
}

int main(int argc, char **argv) {
    qg_command command;
    qg_signals_begin();
    qg_message_program("run_sweep");
    int code = qg_command_read(argc, (const char **)argv, &command);
    if (!code)
        code = dispatch(&command);
    qg_command_free(&command);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        qg_message_error("cannot write to standard output: %s", strerror(errno));
        code = code == 2 ? 2 : 5;
    }
    return code;
}
