// device_check: is this GPU's arithmetic, and are our kernels on it, what the emulator says?
//
// Runs the stages of device_stage.h in order, within a time limit, and writes what it found (format:
// device_rows.h). Exit codes: 0 all passed, 1 a failure, 2 usage, 3 something was left, 5 no device
// or an I/O error. Usually called by scripts/device_check.sh; needs no floor above runtime.
#include <device_stage.h>
#include <message.h>
#include <number.h>

#include <qg_build_info.h>
#include <qg_clock.h>
#include <qg_cpu.h>
#include <qg_cuda.h>
#include <qg_init.h>
#include <qg_version.h>

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

typedef struct options {
    double max_seconds, sanitizer_seconds;
    const char *out, *stages, *sanitizer, *program;
    bool is_small;
    char simulated[2][DEVICE_UNIT_NAME];
} options;

static const char HELP[] =
    "device_check [OPTIONS]: compares the CUDA kernels and cuBLASLt with the emulator, bit by bit\n"
    "  --out FILE            write facts and rows there\n"
    "  --max-seconds S       end after that time and list what was left (exit code 3)\n"
    "  --small               tiny shapes\n"
    "  --stages L            only these: bytes, conversions, dequantize, multiply, controls, "
    "seed,\n"
    "                        probe, gemm, sanitizer, timing\n"
    "  --sanitizer PROGRAM   compute-sanitizer, for stage sanitizer\n"
    "  --sanitizer-seconds S time for that stage (default: 40)\n"
    "  --help, --version\n";

// ----------------------------------------------------------------------------------------- stages

typedef struct stage {
    const char *name, *title;
    device_kind kind;
    qg_status (*run)(device_check *c);
} stage;

static const stage STAGES[] = {
    {"bytes",       "bytes: kernels against the emulator",              DEVICE_BYTES,   device_stage_bytes      },
    {"conversions", "conversions: cvt against the encoder",             DEVICE_BYTES,   device_stage_conversions},
    {"dequantize",  "dequantize against the emulator",                  DEVICE_BYTES,   device_stage_dequantize },
    {"multiply",    "multiply against unit fp32_fma",                   DEVICE_BYTES,   device_stage_multiply   },
    {"controls",    "controls: bad results that must be caught",        DEVICE_CONTROL,
     device_stage_controls                                                                                      },
    {"seed",        "seed shapes: K 5120, 6144, 17408 x M 16 to 4576",  DEVICE_BYTES,   device_stage_seed       },
    {"probe",       "probe: what accumulates inside cuBLASLt",          DEVICE_PROBE,   device_stage_probe      },
    {"gemm",        "gemm: products through cuBLASLt against the unit", DEVICE_GEMM,    device_stage_gemm       },
    {"sanitizer",   "sanitizer",                                        DEVICE_CONTROL, NULL                    },
    {"timing",      "timing: medians of graphs of launches",            DEVICE_TIME,    device_stage_timing     },
};
enum { STAGE_COUNT = sizeof STAGES / sizeof STAGES[0] };

// Whether `name` is one of a list of words separated by commas; NULL: everything is.
static bool is_listed(const char *list, const char *name) {
    size_t length = strlen(name);
    if (!list)
        return true;
    for (const char *word = list; word; word = strchr(word, ',')) {
        word += *word == ',';
        if (strncmp(word, name, length) == 0 && (word[length] == 0 || word[length] == ','))
            return true;
    }
    return false;
}

static bool stages_are_known(const char *list) {
    char word[32];
    if (!*list)
        qg_message_error("--stages: the list is empty");
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ",");
        bool known = false;
        snprintf(word, sizeof word, "%.*s", (int)(length < 31 ? length : 31), at);
        for (int i = 0; i < STAGE_COUNT; i++)
            known |= strcmp(STAGES[i].name, word) == 0;
        if (!known) {
            qg_message_error("--stages: no stage is called '%s'", word);
            return false;
        }
        at += length + (at[length] == ',');
    }
    return *list != 0;
}

// ---------------------------------------------------------------------------------------- options

static bool take_seconds(const char *option, const char *text, double *out) {
    if (qg_number_f64(text, out) && isfinite(*out) && *out > 0)
        return true;
    qg_message_error("%s: '%.60s' is no time in seconds above 0", option, text);
    return false;
}

// UNIT or UNIT,UNIT: of fast accumulation, then of the other.
static bool take_units(const char *text, options *o) {
    const char *comma = strchr(text, ',');
    qg_unit unit;
    size_t length = comma ? (size_t)(comma - text) : strlen(text);
    if (length >= DEVICE_UNIT_NAME || (comma && strlen(comma + 1) >= DEVICE_UNIT_NAME))
        return false;
    snprintf(o->simulated[1], DEVICE_UNIT_NAME, "%.*s", (int)length, text);
    snprintf(o->simulated[0], DEVICE_UNIT_NAME, "%s", comma ? comma + 1 : o->simulated[1]);
    for (int i = 0; i < 2; i++)
        if (qg_unit_parse(o->simulated[i], &unit) != QG_OK) {
            qg_message_error("--simulate: %s", qg_detail());
            return false;
        }
    return true;
}

// 0, or the exit code; -1: help or version was printed.
static int read_options(int argc, char **argv, options *o) {
    enum {
        OUT = 1,
        MAX_SECONDS,
        SMALL,
        STAGES_OPTION,
        SANITIZER,
        SANITIZER_SECONDS,
        SIMULATE,
        HELP_OPTION,
        VERSION
    };
    static const struct option known[] = {
        {"out",               required_argument, NULL, OUT              },
        {"max-seconds",       required_argument, NULL, MAX_SECONDS      },
        {"small",             no_argument,       NULL, SMALL            },
        {"stages",            required_argument, NULL, STAGES_OPTION    },
        {"sanitizer",         required_argument, NULL, SANITIZER        },
        {"sanitizer-seconds", required_argument, NULL, SANITIZER_SECONDS},
 // Of tests: a unit of the emulator in the place of cuBLASLt.
        {"simulate",          required_argument, NULL, SIMULATE         },
        {"help",              no_argument,       NULL, HELP_OPTION      },
        {"version",           no_argument,       NULL, VERSION          },
        {NULL,                0,                 NULL, 0                },
    };
    bool good = true;
    *o = (options){.sanitizer_seconds = 40, .program = argv[0]};
    for (int code; good && (code = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (code) {
        case OUT: o->out = optarg; break;
        case MAX_SECONDS: good = take_seconds("--max-seconds", optarg, &o->max_seconds); break;
        case SMALL: o->is_small = true; break;
        case STAGES_OPTION: good = stages_are_known(o->stages = optarg); break;
        case SANITIZER: o->sanitizer = optarg; break;
        case SANITIZER_SECONDS:
            good = take_seconds("--sanitizer-seconds", optarg, &o->sanitizer_seconds);
            break;
        case SIMULATE: good = take_units(optarg, o); break;
        case HELP_OPTION: fputs(HELP, stdout); return -1;
        case VERSION: printf("device_check (quantgauge) %s\n", QG_VERSION); return -1;
        default: good = false;
        }
    }
    if (good && optind < argc) {
        qg_message_error("'%.60s': takes no arguments without an option", argv[optind]);
        good = false;
    }
    return good ? 0 : 2;
}

// ------------------------------------------------------------------------------------------ facts

static void date_now(char text[32]) {
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

void device_stage_facts(device_check *c) {
    const qg_cuda_device *d = c->device;
    device_report *r = c->report;
    char date[32], features[512], brand[128];
    date_now(date);
    qg_cpu_describe(features, sizeof features, brand, sizeof brand);
    device_report_fact(r, "device", "%s", d->name);
    device_report_fact(r, "architecture", "%d", (int)d->architecture);
    device_report_fact(r, "sms", "%d", (int)d->sm_count);
    device_report_fact(r, "l2_bytes", "%lld", (long long)d->l2_bytes);
    device_report_fact(r, "memory", "%lld", (long long)d->memory_bytes);
    device_report_fact(r, "driver", "%d", (int)d->driver);
    device_report_fact(r, "runtime", "%d", (int)d->runtime);
    device_report_fact(r, "cublaslt", "%lld", (long long)d->cublaslt);
    if (!d->cublaslt)
        device_report_fact(r, "cublaslt_missing", "%s", d->cublaslt_missing);
    device_report_fact(r, "version", "%s", QG_VERSION);
    device_report_fact(r, "commit", "%s%s", QG_BUILD_COMMIT, QG_BUILD_DIRTY ? "+dirty" : "");
    device_report_fact(r, "compiler", "%s", QG_BUILD_COMPILER);
    device_report_fact(r, "flags", "%s", QG_BUILD_FLAGS);
    device_report_fact(r, "cpu", "%s", brand);
    device_report_fact(r, "date", "%s", date);
    if (c->simulated[0][0])
        device_report_fact(r, "simulated", "%s,%s", c->simulated[1], c->simulated[0]);
    printf("%s: compute capability %d.%d, %d SMs, L2 %.0f MiB, %.0f GiB, driver %d, runtime %d, ",
           d->name, d->architecture / 10, d->architecture % 10, d->sm_count,
           (double)d->l2_bytes / 0x1p20, (double)d->memory_bytes / 0x1p30, d->driver, d->runtime);
    if (d->cublaslt)
        printf("cuBLASLt %lld\n", (long long)d->cublaslt);
    else
        printf("no cuBLASLt: %.200s\n", d->cublaslt_missing);
    fflush(stdout);
}

// -------------------------------------------------------------------------------------------- run

static qg_status run_stage(device_check *c, const options *o, const stage *s) {
    if (s->run)
        return s->run(c);
    if (!o->sanitizer) {
        device_report_note(c->report, DEVICE_CONTROL, "compute-sanitizer is not there: not run");
        return QG_OK;
    }
    return device_stage_sanitizer(c, o->sanitizer, "/proc/self/exe", o->sanitizer_seconds);
}

// True if the device or the memory failed. What was found before stays.
static bool run_stages(device_check *c, const options *o) {
    bool broken = false;
    for (int i = 0; i < STAGE_COUNT; i++) {
        const stage *s = &STAGES[i];
        if (!is_listed(o->stages, s->name))
            continue;
        if (broken || device_is_late(c)) {
            device_report_left(c->report, s->name, 1, broken ? "after an error" : "time is up");
            continue;
        }
        double begin = qg_clock();
        char title[128];
        qg_status status = run_stage(c, o, s);
        if (status != QG_OK) {
            broken = true;
            qg_message_error("stage %s: %s", s->name, qg_detail());
            device_report_fact(c->report, "error", "stage %s: %s", s->name, qg_detail());
            device_report_left(c->report, s->name, 1, "an error");
        }
        snprintf(title, sizeof title, "%s (%.1f s)", s->title, qg_clock() - begin);
        device_report_print(c->report, s->kind, title, stdout);
    }
    return broken;
}

static int finish(device_check *c, const options *o, bool broken) {
    device_report_finish(c->report, qg_clock() - c->start, stdout);
    if (o->out && device_report_write(c->report, o->out) != QG_OK) {
        qg_message_error("%s", qg_detail());
        return 5;
    }
    if (broken || device_report_failures(c->report) > 0)
        return 1;
    return device_report_is_complete(c->report) ? 0 : 3;
}

static int check(const options *o) {
    device_check c = {.start = qg_clock(), .is_small = o->is_small};
    const char *reason = "";
    qg_cuda_absence absence;
    memcpy(c.simulated, o->simulated, sizeof c.simulated);
    if (o->max_seconds > 0)
        c.deadline = c.start + o->max_seconds;
    c.module = qg_cuda_open(&c.device, &absence, &reason);
    if (!c.module) {
        qg_message_error("there is no device to check: %s", reason);
        return 5;
    }
    if (device_report_create(&c.report) != QG_OK ||
        (o->out && device_report_can_write(o->out) != QG_OK)) {
        qg_message_error("%s", qg_detail());
        device_report_free(c.report);
        return 5;
    }
    for (int fast = 0; fast < 2; fast++)
        snprintf(c.unit[fast], DEVICE_UNIT_NAME, "%s",
                 device_expected_unit(c.device->architecture, fast));
    device_stage_facts(&c);
    bool broken = run_stages(&c, o);
    device_release_rooms(&c);
    int code = finish(&c, o, broken);
    device_report_free(c.report);
    return code;
}

int main(int argc, char **argv) {
    options o;
    qg_message_program("device_check");
    signal(SIGXFSZ, SIG_IGN); // a file beyond its limit is a write that fails
    int code = read_options(argc, argv, &o);
    if (code != 0)
        return code < 0 ? 0 : code;
    qg_status status = qg_init();
    if (status == QG_OK)
        status = qg_cpu_use_isa(NULL);
    if (status != QG_OK) {
        qg_message_error("%s", qg_detail());
        return 5;
    }
    code = check(&o);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        qg_message_error("cannot write to standard output: %s", strerror(errno));
        code = 5;
    }
    return code;
}
