// A two-layer regression trained through quantization: E4M3 forward, with and without E5M2
// gradients, must come as far as FP32, within a stated ratio of the losses; broken gradients must
// not.
//
// x -> matmul w1 -> + b1 -> relu -> matmul w2 -> + b2, mean squared error, plain gradient descent
// from the same start. Targets are those of another such network and noise, so that no run comes
// near 0. `test_gradient_training SEEDS` prints the losses of that many seeds: the study behind the
// limits.
#include <gradient_case.h>
#include <require.h>
#include <run_suite.h>

#include <qg_data.h>
#include <qg_graph_pass.h>
#include <qg_graph_run.h>

enum { SAMPLES = 64, INPUTS = 16, HIDDEN = 32, OUTPUTS = 4, STEPS = 150, PARAMETERS = 4 };
static const float RATE = 0.1f;

static const struct {
    const char *name;
    int64_t rows, columns;
} SHAPES[PARAMETERS] = {
    {"w1", INPUTS, HIDDEN },
    {"b1", 1,      HIDDEN },
    {"w2", HIDDEN, OUTPUTS},
    {"b2", 1,      OUTPUTS}
};

typedef struct network {
    float parameters[PARAMETERS][HIDDEN * INPUTS];
    float x[SAMPLES * INPUTS], t[SAMPLES * OUTPUTS];
} network;

// What is broken in a control: nothing, or the factor of one parameter's gradient.
typedef struct fault {
    int parameter;
    float factor;
} fault;
static const fault NO_FAULT = {-1, 1};

static int64_t size_of(int parameter) { return SHAPES[parameter].rows * SHAPES[parameter].columns; }

// -------------------------------------------------------------------------------------------- data

// (rows, columns) normal numbers times sigma; `number` makes tensors of one seed differ.
static void normal(uint64_t seed, int number, double sigma, int64_t rows, int64_t columns,
                   float *x) {
    char text[64];
    qg_law *law;
    snprintf(text, sizeof text, "normal:sigma=%.17g", sigma);
    ck_assert_int_eq(qg_law_parse(text, &law), QG_OK);
    qg_law_generate(law, seed * 16 + (uint64_t)number, 0, columns, 0, rows, x);
    qg_law_free(law);
}

static void start(uint64_t seed, int number, float parameters[PARAMETERS][HIDDEN * INPUTS]) {
    for (int i = 0; i < PARAMETERS; i++)
        normal(seed, number + i, SHAPES[i].rows == INPUTS ? 0.25 : 0.2, SHAPES[i].rows,
               SHAPES[i].columns, parameters[i]);
}

static qg_node layer(qg_graph *g, qg_node x, int weights, float p[PARAMETERS][HIDDEN * INPUTS]) {
    qg_node nodes[2];
    for (int i = 0; i < 2; i++)
        nodes[i] = qg_graph_parameter(
            g, SHAPES[weights + i].name,
            qg_tensor(QG_DTYPE_FP32, 2, SHAPES[weights + i].rows, SHAPES[weights + i].columns),
            p[weights + i]);
    return qg_graph_add(g, qg_graph_matmul(g, x, nodes[0]), nodes[1]);
}

static qg_node add_network(qg_graph *g, float p[PARAMETERS][HIDDEN * INPUTS]) {
    qg_node x = matrix(g, "x", SAMPLES, INPUTS);
    return layer(g, qg_graph_relu(g, layer(g, x, 0, p)), 2, p);
}

static qg_graph_runner *runner_of(const qg_graph *g) {
    qg_unit unit;
    ck_assert_int_eq(qg_unit_parse("fp32_fma", &unit), QG_OK);
    qg_graph_run_options options = {.threads = 1, .unit = &unit};
    qg_graph_runner *runner;
    ck_assert_msg(qg_graph_runner_create(g, &options, &runner) == QG_OK, "%s", qg_detail());
    return runner;
}

// Inputs, targets and where training starts.
static void make(network *n, uint64_t seed) {
    static float teacher[PARAMETERS][HIDDEN * INPUTS];
    float noise[SAMPLES * OUTPUTS];
    normal(seed, 0, 1, SAMPLES, INPUTS, n->x);
    normal(seed, 1, 0.1, SAMPLES, OUTPUTS, noise);
    start(seed, 2, teacher);
    start(seed, 6, n->parameters);
    qg_graph *g = empty();
    qg_node y = qg_graph_output(g, add_network(g, teacher));
    qg_graph_runner *runner = runner_of(g);
    qg_graph_feed feed = {"x", n->x};
    ck_assert_int_eq(qg_graph_runner_run(runner, 1, &feed), QG_OK);
    memcpy(n->t, qg_graph_runner_values(runner, y), sizeof n->t);
    for (int i = 0; i < SAMPLES * OUTPUTS; i++)
        n->t[i] += noise[i];
    qg_graph_runner_free(runner);
    qg_graph_free(g);
}

// ---------------------------------------------------------------------------------------- training

// The graph of loss and gradients, forward products quantized by `forward` unless that is NULL.
static qg_graph *training_graph(network *n, const char *forward, const char *gradient) {
    qg_graph *g = empty();
    qg_node wrt[PARAMETERS];
    qg_node y = add_network(g, n->parameters);
    qg_node error = qg_graph_subtract(g, y, matrix(g, "t", SAMPLES, OUTPUTS));
    int32_t axes[] = {0, 1};
    qg_node loss = qg_graph_reduce(g, QG_GRAPH_REDUCE_MEAN, qg_graph_multiply(g, error, error), 2,
                                   axes, false);
    qg_graph_output(g, qg_graph_name(g, loss, "loss"));
    if (forward) {
        qg_graph *scaled;
        qg_scaling scaling = {.lhs = forward};
        ck_assert_msg(qg_graph_insert_scaled_matmul(g, &scaling, &scaled, NULL) == QG_OK, "%s",
                      qg_detail());
        qg_graph_free(g);
        g = scaled;
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_MATMUL), 2);
    }
    for (int i = 0; i < PARAMETERS; i++)
        wrt[i] = qg_graph_find(g, SHAPES[i].name);
    return gradient_with(g, qg_graph_find(g, "loss"), PARAMETERS, wrt, gradient);
}

static void descend(network *n, const qg_graph *g, const qg_graph_runner *runner, fault f) {
    for (int i = 0; i < PARAMETERS; i++) {
        const float *gradient = qg_graph_runner_values(runner, gradient_node(g, SHAPES[i].name));
        float rate = i == f.parameter ? RATE * f.factor : RATE;
        for (int64_t j = 0; j < size_of(i); j++)
            n->parameters[i][j] -= rate * gradient[j];
    }
}

typedef struct losses {
    double before, after; // STEPS steps
} losses;

static losses train(uint64_t seed, const char *forward, const char *gradient, fault f) {
    static network n;
    losses loss = {0, 0};
    make(&n, seed);
    qg_graph *g = training_graph(&n, forward, gradient);
    qg_graph_runner *runner = runner_of(g);
    qg_graph_feed feeds[] = {
        {"x", n.x},
        {"t", n.t}
    };
    for (int step = 0; step <= STEPS; step++) {
        ck_assert_msg(qg_graph_runner_run(runner, 2, feeds) == QG_OK, "%s", qg_detail());
        loss.after =
            (double)*(const float *)qg_graph_runner_values(runner, qg_graph_find(g, "loss"));
        if (step == 0)
            loss.before = loss.after;
        descend(&n, g, runner, f);
    }
    qg_graph_runner_free(runner);
    qg_graph_free(g);
    return loss;
}

// ------------------------------------------------------------------------------------------ limits

// Ratios of the losses to FP32's. worst: over the seeds 1 to 20 of the study; the limit leaves
// twice its distance from 1, rounded up. FP32 comes from 0.82 .. 3.7 to 0.038 .. 0.057, at least 16
// times lower; noise alone would leave 0.01.
static const struct {
    const char *forward, *gradient;
    double worst, limit;
} WAYS[] = {
    {"e4m3",  NULL,         1.051, 1.11},
    {"mxfp8", NULL,         1.076, 1.16},
    {"e4m3",  "e5m2",       1.037, 1.08},
    {"mxfp8", "mxfp8_e5m2", 1.102, 1.21},
};
enum { WAY_COUNT = sizeof WAYS / sizeof *WAYS };
static const double LEAST_FALL = 10;

// What a lost gradient costs: at least 1.52 in the study with w2 at its start, 2.27 with w1, 3.1
// and
// 4.3 where they go uphill. All lie above every limit.
static const fault CONTROLS[] = {
    {0, 0 },
    {0, -1},
    {2, 0 },
    {2, -1}
};
enum { CONTROL_COUNT = sizeof CONTROLS / sizeof *CONTROLS };
static const double LARGEST_LIMIT = 1.21;

static const uint64_t SEEDS[] = {1, 14}; // 14: the worst of the study
enum { SEED_COUNT = sizeof SEEDS / sizeof *SEEDS };

static double fp32_loss(uint64_t seed) { return train(seed, NULL, NULL, NO_FAULT).after; }
static double loss_of(uint64_t seed, int way, fault f) {
    return train(seed, WAYS[way].forward, WAYS[way].gradient, f).after;
}

START_TEST(fp32_training_lowers_the_loss) {
    for (int i = 0; i < SEED_COUNT; i++) {
        losses fp32 = train(SEEDS[i], NULL, NULL, NO_FAULT);
        REQUIRE(fp32.before >= LEAST_FALL * fp32.after, "from %g to %g", fp32.before, fp32.after);
    }
}
END_TEST

START_TEST(quantized_training_comes_as_far_as_fp32) {
    for (int i = 0; i < SEED_COUNT; i++) {
        double fp32 = fp32_loss(SEEDS[i]);
        for (int way = 0; way < WAY_COUNT; way++) {
            double ratio = loss_of(SEEDS[i], way, NO_FAULT) / fp32;
            REQUIRE(ratio <= WAYS[way].limit, "%s, gradients %s: %.4f times FP32's loss, limit %g",
                    WAYS[way].forward, WAYS[way].gradient ? WAYS[way].gradient : "fp32", ratio,
                    WAYS[way].limit);
        }
    }
}
END_TEST

START_TEST(broken_gradients_do_not) {
    double fp32 = fp32_loss(SEEDS[1]);
    for (int i = 0; i < CONTROL_COUNT; i++) {
        double ratio = loss_of(SEEDS[1], 0, CONTROLS[i]) / fp32;
        REQUIRE(ratio > LARGEST_LIMIT, "gradient of %s times %g: %.4f times FP32's loss",
                SHAPES[CONTROLS[i].parameter].name, (double)CONTROLS[i].factor, ratio);
    }
}
END_TEST

// ------------------------------------------------------------------------------------------- study

static int seeds_of_study;

static void print_seed(uint64_t seed, double worst[WAY_COUNT]) {
    losses fp32 = train(seed, NULL, NULL, NO_FAULT);
    printf("%2d  fp32 %.4f to %.5f  ratios", (int)seed, fp32.before, fp32.after);
    for (int way = 0; way < WAY_COUNT; way++) {
        double ratio = loss_of(seed, way, NO_FAULT) / fp32.after;
        worst[way] = ratio > worst[way] ? ratio : worst[way];
        printf(" %.4f", ratio);
    }
    printf("  controls");
    for (int j = 0; j < CONTROL_COUNT; j++)
        printf(" %.3f", loss_of(seed, 0, CONTROLS[j]) / fp32.after);
    printf("\n");
}

START_TEST(study) {
    double worst[WAY_COUNT] = {0};
    for (int seed = 1; seed <= seeds_of_study; seed++)
        print_seed((uint64_t)seed, worst);
    for (int way = 0; way < WAY_COUNT; way++)
        printf("worst of %s, gradients %s: %.4f\n", WAYS[way].forward,
               WAYS[way].gradient ? WAYS[way].gradient : "fp32", worst[way]);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        fp32_training_lowers_the_loss,
        quantized_training_comes_as_far_as_fp32,
        broken_gradients_do_not,
    };
    const TTest *const by_hand[] = {study};
    if (argc < 2)
        return RUN_SUITE("gradient_training", tests);
    seeds_of_study = atoi(argv[1]);
    return RUN_SUITE("gradient_training", by_hand);
}
