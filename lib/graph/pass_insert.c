// Insertion of scaled products: each selected matmul becomes scale, quantize and scaled_matmul. See
// qg_graph_pass.h; which are selected: pass_select.c. Touches no values.
//
// Operands are taken back through transposes to where they come from and transposed from there, so
// that a rhs which is a transpose uses its input and all views of a tensor share their
// quantizations.
#include "pass_internal.h"

#include <qg_memory.h>

#include <stdio.h>
#include <string.h>

// What there is of a node x of the graph being made is a list that begins at x: number 0 ends it.
// Each is there once.

// transpose(x, axes), or x cast to dtype.
typedef struct view {
    qg_node out;
    int32_t dtype; // of a cast; -1: a transpose
    int32_t axes[QG_RANK_MOST];
    int32_t after;
} view;

typedef struct quantization {
    qg_scaled scaled;
    int32_t after;
} quantization;

// Of two operands (cast, transpose, two scales, codes) a product, and its cast.
enum { NODES_OF_PRODUCT = 12 };

typedef struct insertion {
    graph_pass pass;
    const qg_scaling *scaling;
    const char *rhs; // recipe
    bool *selected;
    view *views;
    quantization *quantizations;
    int32_t view_count, quantization_count;
    int32_t *views_of, *quantizations_of; // where the lists of a node of the made graph begin
    int32_t number;                       // of the first quantization: how many there were
    qg_scaling_report report;
} insertion;

// -------------------------------------------------------------------------------------- transposes

static bool is_identity(const int32_t *axes, int32_t rank) {
    for (int32_t i = 0; i < rank; i++)
        if (axes[i] != i)
            return false;
    return true;
}

// The node that x is a transpose of, through all of them; x(axes) becomes it(axes).
static qg_node undo_transposes(const qg_graph *graph, qg_node x, int32_t *axes) {
    while (graph->nodes[x].op == QG_GRAPH_TRANSPOSE) {
        const graph_node *n = &graph->nodes[x];
        for (int32_t i = 0; i < n->type.rank; i++)
            axes[i] = n->attributes.axes[axes[i]];
        x = n->inputs[0];
    }
    return x;
}

// dtype: -1 for transposes; axes: NULL for casts. QG_NODE_NONE if there is none.
static qg_node find_view(const insertion *s, qg_node x, int32_t dtype, const int32_t *axes) {
    size_t size = axes ? (size_t)s->pass.made->nodes[x].type.rank * sizeof *axes : 0;
    for (int32_t i = s->views_of[x]; i > 0; i = s->views[i].after) {
        const view *v = &s->views[i];
        if (v->dtype == dtype && (size == 0 || memcmp(v->axes, axes, size) == 0))
            return v->out;
    }
    return QG_NODE_NONE;
}

static void remember_view(insertion *s, qg_node x, int32_t dtype, const int32_t *axes,
                          qg_node out) {
    if (find_view(s, x, dtype, axes) != QG_NODE_NONE)
        return;
    view *v = &s->views[++s->view_count];
    *v = (view){.out = out, .dtype = dtype, .after = s->views_of[x]};
    s->views_of[x] = s->view_count;
    if (axes)
        memcpy(v->axes, axes, (size_t)s->pass.made->nodes[x].type.rank * sizeof *axes);
}

static qg_node transposed(insertion *s, qg_node x, const int32_t *axes) {
    qg_graph *made = s->pass.made;
    if (is_identity(axes, made->nodes[x].type.rank))
        return x;
    qg_node out = find_view(s, x, -1, axes);
    if (out != QG_NODE_NONE)
        return out;
    out = qg_graph_transpose(made, x, axes);
    if (out == QG_NODE_NONE)
        return QG_NODE_NONE;
    s->report.transposed++;
    remember_view(s, x, -1, axes, out);
    return out;
}

static qg_node cast_once(insertion *s, qg_node x, int32_t dtype) {
    qg_node out = find_view(s, x, dtype, NULL);
    if (out != QG_NODE_NONE)
        return out;
    out = qg_graph_cast(s->pass.made, x, (qg_dtype)dtype);
    if (out != QG_NODE_NONE)
        remember_view(s, x, dtype, NULL, out);
    return out;
}

// undo_transposes, also under a cast, as lowering leaves them: that is a transposed cast.
static qg_node undo_all(insertion *s, qg_node x, int32_t *axes) {
    const qg_graph *graph = s->pass.made;
    x = undo_transposes(graph, x, axes);
    const graph_node *n = &graph->nodes[x];
    if (n->op != QG_GRAPH_CAST)
        return x;
    return cast_once(s, undo_transposes(graph, n->inputs[0], axes), n->type.dtype);
}

// ---------------------------------------------------------------------------------------- operands

static const qg_scaled NOTHING = {QG_NODE_NONE, QG_NODE_NONE, QG_NODE_NONE, NULL};

static const qg_scaled *find_quantization(const insertion *s, qg_node x, const char *recipe) {
    for (int32_t i = s->quantizations_of[x]; i > 0; i = s->quantizations[i].after)
        if (strcmp(s->quantizations[i].scaled.recipe, recipe) == 0)
            return &s->quantizations[i].scaled;
    return NULL;
}

static void remember_quantization(insertion *s, qg_node x, qg_scaled scaled) {
    if (find_quantization(s, x, scaled.recipe))
        return;
    s->quantizations[++s->quantization_count] = (quantization){scaled, s->quantizations_of[x]};
    s->quantizations_of[x] = s->quantization_count;
}

static qg_scaled quantized(insertion *s, qg_node x, const char *recipe) {
    qg_graph *made = s->pass.made;
    if (x == QG_NODE_NONE)
        return NOTHING;
    const qg_scaled *there = find_quantization(s, x, recipe);
    if (there) {
        s->report.reused++;
        return *there;
    }
    qg_scaled scaled = qg_graph_quantize(made, x, recipe);
    if (scaled.codes == QG_NODE_NONE)
        return NOTHING;
    if (graph_rounds_stochastically(recipe))
        made->nodes[scaled.codes].attributes.seed =
            s->scaling->seed + (uint64_t)s->number + (uint64_t)s->report.quantized;
    remember_quantization(s, x, scaled);
    s->report.quantized++;
    return scaled;
}

// Whether a tensor and its transposes have the same scale and the same codes in another order.
static bool commutes_with_transpose(const char *recipe, const qg_tensor_type *x) {
    qg_scaled_shape shape;
    return qg_scaled_shape_of(recipe, x, &shape) == QG_OK &&
           shape.recipe.layout.kind == QG_LAYOUT_PER_TENSOR;
}

// The operand x, or its last two axes swapped, quantized.
static qg_scaled operand(insertion *s, qg_node x, bool swapped, const char *recipe) {
    qg_graph *made = s->pass.made;
    int32_t rank = made->nodes[x].type.rank, axes[QG_RANK_MOST];
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i;
    if (swapped) {
        axes[rank - 1] = rank - 2;
        axes[rank - 2] = rank - 1;
    }
    qg_node base = undo_all(s, x, axes);
    if (base == QG_NODE_NONE)
        return NOTHING;
    if (!commutes_with_transpose(recipe, &made->nodes[base].type))
        return quantized(s, transposed(s, base, axes), recipe);
    qg_scaled scaled = quantized(s, base, recipe);
    if (scaled.codes != QG_NODE_NONE)
        scaled.codes = transposed(s, scaled.codes, axes);
    return scaled;
}

// ---------------------------------------------------------------------------------------- products

// The scaled product takes name and dtype of the product.
static qg_status rewrite(insertion *s, qg_node product) {
    qg_graph *made = s->pass.made;
    const graph_node *n = &s->pass.from->nodes[product];
    // A scaled product rounds to fp32 or bf16: fp16 comes of fp32.
    bool narrowed = n->type.dtype == QG_DTYPE_FP16;
    qg_scaled lhs = operand(s, s->pass.map[n->inputs[0]], false, s->scaling->lhs);
    if (lhs.codes == QG_NODE_NONE)
        return graph_pass_blame("lhs of product", n->name, qg_graph_status(made));
    qg_scaled rhs = operand(s, s->pass.map[n->inputs[1]], true, s->rhs);
    if (rhs.codes == QG_NODE_NONE)
        return graph_pass_blame("rhs of product", n->name, qg_graph_status(made));
    qg_node out = qg_graph_scaled_matmul(made, lhs, rhs, QG_NODE_NONE,
                                         narrowed ? QG_DTYPE_FP32 : (qg_dtype)n->type.dtype);
    if (narrowed && out != QG_NODE_NONE)
        out = cast_once(s, out, QG_DTYPE_FP16);
    s->pass.map[product] = qg_graph_name(made, out, n->name);
    if (s->pass.map[product] == QG_NODE_NONE)
        return graph_pass_blame("product", n->name, qg_graph_status(made));
    return QG_OK;
}

// A quantization of the old graph serves products, too, if its scales are its own.
static void remember_copied(insertion *s, qg_node codes, const char *recipe) {
    const qg_graph *made = s->pass.made;
    const graph_node *n = &made->nodes[codes];
    if (!graph_has_own_scales(made, n))
        return;
    qg_node tensor_scale = n->input_count > 2 ? n->inputs[2] : QG_NODE_NONE;
    remember_quantization(s, n->inputs[0], (qg_scaled){codes, n->inputs[1], tensor_scale, recipe});
}

static qg_status copy(insertion *s, qg_node node) {
    const graph_node *n = &s->pass.from->nodes[node];
    graph_pass_copy(&s->pass, node);
    qg_node out = s->pass.map[node];
    if (out == QG_NODE_NONE)
        return qg_graph_status(s->pass.made);
    if (n->op == QG_GRAPH_TRANSPOSE)
        remember_view(s, s->pass.map[n->inputs[0]], -1, n->attributes.axes, out);
    if (n->op == QG_GRAPH_CAST)
        remember_view(s, s->pass.map[n->inputs[0]], n->type.dtype, NULL, out);
    if (n->op == QG_GRAPH_SCALED_QUANTIZE)
        remember_copied(s, out, n->attributes.recipe);
    return QG_OK;
}

static qg_status rewrite_all(insertion *s) {
    qg_status status = QG_OK;
    for (qg_node i = 0; i < s->pass.from->count && !status; i++)
        status = s->selected[i] ? rewrite(s, i) : copy(s, i);
    return status;
}

// ---------------------------------------------------------------------------- unneeded transposes

static bool is_view(qg_graph_op op) { return op == QG_GRAPH_TRANSPOSE || op == QG_GRAPH_CAST; }

// Removes the transposes and casts of `made` that had users in `from` and have none any more.
static qg_status drop_views(const qg_graph *from, const qg_graph *made, qg_graph **out) {
    void *before = NULL, *now = NULL, *room = NULL;
    qg_status status = graph_per_node(from, sizeof(int32_t), &before);
    if (!status)
        status = graph_per_node(made, sizeof(int32_t), &now);
    if (!status)
        status = graph_per_node(made, sizeof(bool), &room);
    if (!status) {
        bool *gone = room;
        int32_t *users = now;
        graph_count_users(from, before);
        graph_count_users(made, users);
        for (qg_node i = made->count - 1; i >= 0; i--) {
            const graph_node *n = &made->nodes[i];
            qg_node old = qg_graph_find(from, n->name);
            gone[i] = is_view(n->op) && users[i] == 0 && old != QG_NODE_NONE &&
                      ((const int32_t *)before)[old] > 0;
            if (gone[i])
                users[n->inputs[0]]--;
        }
        status = graph_without(made, gone, out);
    }
    qg_release(before);
    qg_release(now);
    qg_release(room);
    return status;
}

// ------------------------------------------------------------------------------------------- entry

static qg_status check_recipe(const char *what, const char *recipe) {
    static const qg_tensor_type ANY = {
        .dtype = QG_DTYPE_FP32, .rank = 2, .shape = {1, 1}
    };
    qg_scaled_shape shape;
    if (!recipe)
        return qg_fail(QG_ERROR_ARGUMENT, "insertion of scaled products needs a recipe: \"mxfp8\"");
    if (strlen(recipe) >= QG_RECIPE_TEXT_SIZE)
        return qg_fail(QG_ERROR_ARGUMENT, "%s: a recipe of more than %d characters: '%.40s...'",
                       what, QG_RECIPE_TEXT_SIZE - 1, recipe);
    return qg_scaled_shape_of(recipe, &ANY, &shape);
}

// Rooms are as large as they can get: what there is, for each operand a cast, a transpose of it or
// of its codes, and a quantization, and for each product a cast; number 0 is none.
static qg_status make_room(insertion *s, int32_t products) {
    const qg_graph *from = s->pass.from;
    void *rooms[4] = {NULL};
    int64_t operands = 2 * (int64_t)products;
    int64_t nodes = from->count + (int64_t)NODES_OF_PRODUCT * products;
    int64_t views = 1 + 2 * operands + products + qg_graph_count_op(from, QG_GRAPH_TRANSPOSE) +
                    qg_graph_count_op(from, QG_GRAPH_CAST);
    s->number = qg_graph_count_op(from, QG_GRAPH_SCALED_QUANTIZE);
    qg_status status = qg_allocate(&rooms[0], views, sizeof *s->views, "views of operands");
    if (!status)
        status = qg_allocate(&rooms[1], 1 + operands + s->number, sizeof *s->quantizations,
                             "quantizations of operands");
    if (!status)
        status = qg_allocate(&rooms[2], nodes, sizeof *s->views_of, "views of nodes");
    if (!status)
        status =
            qg_allocate(&rooms[3], nodes, sizeof *s->quantizations_of, "quantizations of nodes");
    s->views = rooms[0];
    s->quantizations = rooms[1];
    s->views_of = rooms[2];
    s->quantizations_of = rooms[3];
    return status;
}

static qg_status insert(insertion *s, qg_graph **out) {
    qg_graph *made = NULL;
    int32_t products = 0;
    void *selected;
    qg_status status = graph_per_node(s->pass.from, sizeof *s->selected, &selected);
    s->selected = selected;
    if (!status)
        status = graph_select_products(s->pass.from, s->scaling, s->selected, &products);
    if (!status)
        status = make_room(s, products);
    if (!status)
        status = rewrite_all(s);
    s->report.products = products;
    s->report.left_alone = qg_graph_count_op(s->pass.from, QG_GRAPH_MATMUL) - products;
    status = graph_pass_end(&s->pass, status, &made);
    if (!status)
        status = drop_views(s->pass.from, made, out);
    qg_graph_free(made);
    qg_release(s->selected);
    qg_release(s->views);
    qg_release(s->quantizations);
    qg_release(s->views_of);
    qg_release(s->quantizations_of);
    return status;
}

qg_status qg_graph_insert_scaled_matmul(const qg_graph *graph, const qg_scaling *scaling,
                                        qg_graph **out, qg_scaling_report *report) {
    insertion s = {.scaling = scaling, .rhs = scaling->rhs ? scaling->rhs : scaling->lhs};
    *out = NULL;
    if (report)
        *report = (qg_scaling_report){0};
    qg_status status = check_recipe("lhs", scaling->lhs);
    if (!status)
        status = check_recipe("rhs", s.rhs);
    if (!status)
        status = graph_pass_begin(&s.pass, graph);
    if (!status)
        status = insert(&s, out);
    if (!status && report)
        *report = s.report;
    return status;
}
