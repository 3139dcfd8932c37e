// See rlx_graph_faults.h. Wrong on purpose.
#include <rlx_graph_faults.h>

#include <graph_internal.h>
#include <qg_recipe_name.h>
#include <require.h>

#include <stdlib.h>
#include <string.h>

// --------------------------------------------------------------------------------------- insertion

typedef struct cached {
    qg_node x, key;
    qg_scaled scaled;
} cached;

typedef struct fault_pass {
    const qg_graph *from;
    qg_graph *made;
    qg_node *map;
    int faults;
    cached cache[64];
    int cached;
} fault_pass;

static bool same_key(const fault_pass *p, const char *a, const char *b) {
    qg_recipe left, right;
    if (!(p->faults & RLX_FAULT_KEY_WITHOUT_RECIPE))
        return strcmp(a, b) == 0;
    REQUIRE(qg_recipe_parse(a, &left) == QG_OK && qg_recipe_parse(b, &right) == QG_OK, "%s",
            qg_detail());
    return left.element == right.element;
}

// key: the node that the cache knows it by.
static qg_scaled quantize_once(fault_pass *p, qg_node x, qg_node key, const char *recipe) {
    for (int i = 0; i < p->cached; i++)
        if (p->cache[i].key == key && same_key(p, p->cache[i].scaled.recipe, recipe))
            return p->cache[i].scaled;
    REQUIRE(p->cached < 64, "too many operands");
    p->cache[p->cached++] = (cached){x, key, qg_graph_quantize(p->made, x, recipe)};
    return p->cache[p->cached - 1].scaled;
}

static qg_scaled quantize_rhs(fault_pass *p, qg_node x, const char *recipe) {
    static const int32_t axes[] = {1, 0};
    const graph_node *node = &p->made->nodes[x];
    if (node->op == QG_GRAPH_TRANSPOSE && !(p->faults & RLX_FAULT_TRANSPOSES))
        return quantize_once(p, node->inputs[0], node->inputs[0], recipe);
    qg_node turned = qg_graph_transpose(p->made, x, axes);
    return quantize_once(p, turned, p->faults & RLX_FAULT_KEY_WITHOUT_ORIENTATION ? x : turned,
                         recipe);
}

// Appended as it is told: no rule of types is looked at.
static qg_node append_product(fault_pass *p, const graph_node *from, qg_scaled lhs, qg_scaled rhs,
                              const char *lhs_recipe, const char *rhs_recipe) {
    qg_node inputs[4] = {lhs.codes, rhs.codes, lhs.scale, rhs.scale};
    qg_attributes attributes = {0};
    qg_tensor_type type = from->type;
    if (p->faults & RLX_FAULT_FP32)
        type.dtype = QG_DTYPE_FP32;
    attributes.type.dtype = type.dtype;
    strcpy(attributes.recipe, lhs_recipe);
    strcpy(attributes.recipe_b, rhs_recipe);
    return graph_append(p->made, QG_GRAPH_SCALED_MATMUL, from->name, &type, 4, inputs, &attributes,
                        NULL, 0);
}

static bool is_static(const fault_pass *p, const graph_node *node) {
    for (int32_t i = 0; i < node->input_count; i++) {
        const qg_tensor_type *type = &p->from->nodes[node->inputs[i]].type;
        for (int32_t axis = 0; axis < type->rank; axis++)
            if (type->shape[axis] < 1)
                return false;
    }
    return true;
}

static bool is_selected(const fault_pass *p, const graph_node *node, const char *except) {
    bool left_alone = except && strcmp(node->name, except) == 0;
    return node->op == QG_GRAPH_MATMUL && node->type.rank == 2 &&
           (!left_alone || (p->faults & RLX_FAULT_NO_FILTER));
}

static bool rewrite_all(fault_pass *p, const char *lhs, const char *rhs, const char *except) {
    for (qg_node i = 0; i < p->from->count; i++) {
        const graph_node *node = &p->from->nodes[i];
        if (!is_selected(p, node, except)) {
            p->map[i] = graph_copy_node(p->made, p->from, i, p->map);
            continue;
        }
        if (!is_static(p, node))
            return false;
        qg_node a = p->map[node->inputs[0]];
        qg_scaled left = quantize_once(p, a, a, lhs);
        qg_scaled right = quantize_rhs(p, p->map[node->inputs[1]], rhs);
        p->map[i] = append_product(p, node, left, right, lhs, rhs);
    }
    return true;
}

qg_graph *rlx_fault_insert(const qg_graph *graph, const char *lhs, const char *rhs,
                           const char *except, int faults) {
    fault_pass p = {.from = graph, .faults = faults};
    p.map = calloc((size_t)graph->count, sizeof *p.map);
    REQUIRE(p.map && qg_graph_create(&p.made) == QG_OK, "no memory");
    bool done = rewrite_all(&p, lhs, rhs, except);
    for (int32_t i = 0; i < graph->output_count && done; i++)
        qg_graph_output(p.made, p.map[graph->outputs[i]]);
    REQUIRE(qg_graph_status(p.made) == QG_OK, "%s", qg_detail());
    free(p.map);
    if (done)
        return p.made;
    qg_graph_free(p.made);
    return NULL;
}

// --------------------------------------------------------------------------- verification, folding

bool rlx_fault_verify(const qg_graph *graph) {
    for (qg_node node = 0; node < qg_graph_count(graph); node++) {
        const qg_graph_op_info *info = qg_graph_op_describe(qg_graph_node_op(graph, node));
        const qg_node *inputs;
        int32_t count = qg_graph_node_inputs(graph, node, &inputs);
        if (count < info->fewest || count > info->most)
            return false;
        for (int32_t i = 0; i < count; i++)
            if (inputs[i] < 0 || inputs[i] >= node)
                return false;
    }
    return true;
}

bool rlx_fault_folds(const qg_graph *graph, qg_node node) {
    const qg_node *inputs;
    int32_t count = qg_graph_node_inputs(graph, node, &inputs);
    switch (qg_graph_node_op(graph, node)) {
    case QG_GRAPH_ADD:
    case QG_GRAPH_SUBTRACT:
    case QG_GRAPH_MULTIPLY:
    case QG_GRAPH_DIVIDE:
    case QG_GRAPH_MAXIMUM:
    case QG_GRAPH_RELU:
    case QG_GRAPH_GELU:
    case QG_GRAPH_TANH:
    case QG_GRAPH_RESHAPE:
    case QG_GRAPH_CAST: break;
    default: return false;
    }
    for (int32_t i = 0; i < count; i++)
        if (qg_graph_node_op(graph, inputs[i]) != QG_GRAPH_CONSTANT ||
            qg_graph_node_type(graph, inputs[i])->dtype != QG_DTYPE_FP32)
            return false;
    return true;
}
