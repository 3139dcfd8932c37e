// Gradients of random graphs of the ops that are polynomials, against exact directional
// derivatives.
//
// Inputs are in {-1, 0, 1}. Along x + t v, v of the same kind, the loss is a polynomial in t; up to
// degree 4 its derivative at 0 is (8 (f(1) - f(-1)) - (f(2) - f(-2))) / 12. A graph grows only as
// long as no number can exceed 2^24, so all of it is exact in FP32 and the two sides are equal.
#include <gradient_case.h>
#include <require.h>
#include <run_suite.h>

#include <qg_graph_run.h>
#include <qg_philox.h>

enum { GRAPHS = 300, NODES_MOST = 40, ADDED = 12, INPUTS = 3, ELEMENTS = 12, DEGREE_MOST = 4 };

typedef struct pool {
    uint64_t seed, draws;
    qg_graph *graph;
    int32_t count;
    qg_node nodes[NODES_MOST];
    int degree[NODES_MOST];
    double bound[NODES_MOST]; // of every element for inputs in [-3, 3]
} pool;

static uint32_t draw(pool *p, uint32_t below) {
    return qg_philox_word(p->seed, QG_STREAM_STRUCTURE, p->draws++) % below;
}

static const qg_tensor_type *type_of(const pool *p, int32_t i) {
    return qg_graph_node_type(p->graph, p->nodes[i]);
}

static void put(pool *p, qg_node node, int degree, double bound) {
    ck_assert_msg(qg_graph_status(p->graph) == QG_OK, "%s", qg_detail());
    p->nodes[p->count] = node;
    p->degree[p->count] = degree;
    p->bound[p->count++] = bound;
}

// ----------------------------------------------------------------------------------------- growing

static bool broadcasts(const qg_tensor_type *a, const qg_tensor_type *b) {
    for (int32_t back = 1; back <= a->rank && back <= b->rank; back++) {
        int64_t x = a->shape[a->rank - back], y = b->shape[b->rank - back];
        if (x != y && x != 1 && y != 1)
            return false;
    }
    return true;
}

static void add_binary(pool *p, int32_t a, int32_t b) {
    if (!broadcasts(type_of(p, a), type_of(p, b)))
        return;
    int degree = p->degree[a] + p->degree[b];
    qg_node x = p->nodes[a], y = p->nodes[b];
    if (draw(p, 2) && degree <= DEGREE_MOST)
        put(p, qg_graph_multiply(p->graph, x, y), degree, p->bound[a] * p->bound[b]);
    else
        put(p, draw(p, 2) ? qg_graph_add(p->graph, x, y) : qg_graph_subtract(p->graph, x, y),
            p->degree[a] > p->degree[b] ? p->degree[a] : p->degree[b], p->bound[a] + p->bound[b]);
}

static void add_product(pool *p, int32_t a, int32_t b) {
    const qg_tensor_type *x = type_of(p, a), *y = type_of(p, b);
    int32_t r = x->rank;
    if (r < 2 || r != y->rank || x->shape[r - 1] != y->shape[r - 2] ||
        memcmp(x->shape, y->shape, (size_t)(r - 2) * sizeof *x->shape) != 0 ||
        p->degree[a] + p->degree[b] > DEGREE_MOST)
        return;
    double k = (double)x->shape[r - 1];
    put(p, qg_graph_matmul(p->graph, p->nodes[a], p->nodes[b]), p->degree[a] + p->degree[b],
        k * p->bound[a] * p->bound[b]);
}

// Axes in a random order.
static void shuffle(pool *p, int32_t rank, int32_t *axes) {
    for (int32_t i = 0; i < rank; i++) {
        int32_t j = (int32_t)draw(p, (uint32_t)i + 1);
        axes[i] = axes[j];
        axes[j] = i;
    }
}

static void add_unary(pool *p, int32_t a) {
    const qg_tensor_type *x = type_of(p, a);
    int32_t axes[QG_RANK_MOST];
    int64_t backwards[QG_RANK_MOST];
    shuffle(p, x->rank, axes);
    for (int32_t i = 0; i < x->rank; i++)
        backwards[i] = x->shape[x->rank - 1 - i];
    if (draw(p, 2))
        put(p, qg_graph_transpose(p->graph, p->nodes[a], axes), p->degree[a], p->bound[a]);
    else if (draw(p, 2))
        put(p, qg_graph_reshape(p->graph, p->nodes[a], x->rank, backwards), p->degree[a],
            p->bound[a]);
    else if (x->rank > 0) {
        int32_t count = 1 + (int32_t)draw(p, (uint32_t)x->rank);
        double elements = (double)qg_tensor_elements(x);
        put(p, qg_graph_reduce(p->graph, QG_GRAPH_REDUCE_SUM, p->nodes[a], count, axes, draw(p, 2)),
            p->degree[a], elements * p->bound[a]);
    }
}

static void grow(pool *p) {
    static const qg_tensor_type types[INPUTS] = {
        {QG_DTYPE_FP32, 2, {3, 4}   },
        {QG_DTYPE_FP32, 3, {2, 2, 3}},
        {QG_DTYPE_FP32, 1, {4}      }
    };
    static const char *const names[INPUTS] = {"a", "b", "c"};
    for (int32_t i = 0; i < INPUTS; i++)
        put(p, qg_graph_input(p->graph, names[i], types[i]), 1, 3);
    for (int32_t i = 0; i < 10 * ADDED && p->count < INPUTS + ADDED; i++) {
        int32_t a = (int32_t)draw(p, (uint32_t)p->count), b = (int32_t)draw(p, (uint32_t)p->count);
        switch (draw(p, 3)) {
        case 0: add_binary(p, a, b); break;
        case 1: add_product(p, a, b); break;
        default: add_unary(p, a); break;
        }
        if (p->bound[p->count - 1] * 64 > 0x1p24) // the sum and backward sums of it stay below 2^24
            p->count--;
    }
}

// The sum of all nodes' sums: every node is on a path.
static qg_node loss_of(pool *p) {
    qg_node loss = QG_NODE_NONE;
    for (int32_t i = 0; i < p->count; i++) {
        qg_node sum = type_of(p, i)->rank ? total(p->graph, p->nodes[i]) : p->nodes[i];
        loss = loss == QG_NODE_NONE ? sum : qg_graph_add(p->graph, loss, sum);
    }
    return loss;
}

// -------------------------------------------------------------------------------------- comparison

typedef struct trial {
    qg_graph *graph;
    qg_graph_runner *runner;
    qg_node loss;
    float x[INPUTS][ELEMENTS], v[INPUTS][ELEMENTS];
} trial;

static double loss_at(trial *t, int step) {
    static const char *const names[INPUTS] = {"a", "b", "c"};
    float x[INPUTS][ELEMENTS];
    qg_graph_feed feeds[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        for (int j = 0; j < ELEMENTS; j++)
            x[i][j] = t->x[i][j] + (float)step * t->v[i][j];
        feeds[i] = (qg_graph_feed){names[i], x[i]};
    }
    qg_status status = qg_graph_runner_run(t->runner, INPUTS, feeds);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    return (double)*(const float *)qg_graph_runner_values(t->runner, t->loss);
}

static double along(const trial *t) {
    static const char *const names[INPUTS] = {"a", "b", "c"};
    double sum = 0;
    for (int i = 0; i < INPUTS; i++) {
        qg_node node = gradient_node(t->graph, names[i]);
        const float *gradient = qg_graph_runner_values(t->runner, node);
        for (int64_t j = 0; j < qg_tensor_elements(qg_graph_node_type(t->graph, node)); j++)
            sum += (double)gradient[j] * (double)t->v[i][j];
    }
    return sum;
}

static void check(uint64_t seed, int nodes_of_op[QG_GRAPH_OP_COUNT]) {
    qg_graph_run_options options = {.threads = 1};
    pool p = {.seed = seed, .graph = empty()};
    trial t;
    grow(&p);
    t.loss = qg_graph_output(p.graph, loss_of(&p));
    t.graph = gradient_of(p.graph, t.loss, INPUTS, p.nodes);
    ck_assert_int_eq(dead_nodes(t.graph, t.loss + 1), 0);
    for (qg_node i = 0; i < t.loss; i++)
        nodes_of_op[qg_graph_node_op(t.graph, i)]++;
    for (int i = 0; i < INPUTS; i++)
        for (int j = 0; j < ELEMENTS; j++) {
            t.x[i][j] = (float)draw(&p, 3) - 1;
            t.v[i][j] = (float)draw(&p, 3) - 1;
        }
    ck_assert_int_eq(qg_graph_runner_create(t.graph, &options, &t.runner), QG_OK);
    double far = loss_at(&t, 2) - loss_at(&t, -2), near = loss_at(&t, 1) - loss_at(&t, -1);
    loss_at(&t, 0);
    double found = along(&t), expected = (8 * near - far) / 12;
    REQUIRE(found == expected, "graph %llu: gradient %.17g, derivative %.17g",
            (unsigned long long)seed, found, expected);
    qg_graph_runner_free(t.runner);
    qg_graph_free(t.graph);
}

START_TEST(random_polynomials_have_their_exact_derivatives) {
    static const qg_graph_op ops[] = {QG_GRAPH_MATMUL,    QG_GRAPH_ADD,     QG_GRAPH_SUBTRACT,
                                      QG_GRAPH_MULTIPLY,  QG_GRAPH_RESHAPE, QG_GRAPH_TRANSPOSE,
                                      QG_GRAPH_REDUCE_SUM};
    int nodes_of_op[QG_GRAPH_OP_COUNT] = {0};
    for (uint64_t seed = 1; seed <= GRAPHS; seed++)
        check(seed, nodes_of_op);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        ck_assert_int_ge(nodes_of_op[ops[i]], GRAPHS / 4);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {random_polynomials_have_their_exact_derivatives};
    return RUN_SUITE("gradient_random", tests);
}
