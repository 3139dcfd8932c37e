// Order, lifetimes and buffers. See graph_plan_internal.h.
#include "graph_plan_internal.h"
#include "pass_internal.h"

#include <qg_recipe_name.h>
#include <qg_size.h>

#include <stdlib.h>
#include <string.h>

static qg_status no_memory(void) { return qg_fail(QG_ERROR_MEMORY, "no memory for a plan"); }

// ---------------------------------------------------------------------------------- what is needed

static qg_status mark_needed(const qg_graph *graph, graph_place *places) {
    bool *needed = malloc((size_t)graph->count * sizeof *needed);
    if (!needed)
        return no_memory();
    graph_mark_needed(graph, needed);
    for (qg_node i = 0; i < graph->count; i++)
        places[i].needed = needed[i];
    free(needed);
    return QG_OK;
}

// ----------------------------------------------------------------------------------- quantizations

// Whether a second quantization finds the scales that the first one of another seed found.
static bool finds_same_scale(const graph_node *quantize) {
    qg_recipe recipe;
    return qg_recipe_parse(quantize->attributes.recipe, &recipe) == QG_OK &&
           (!qg_rounding_is_stochastic(recipe.conversion.rounding) ||
            recipe.rule == QG_RULE_AMAX_MUL);
}

static bool is_taken(const graph_place *places, qg_node node) {
    return places[node].step != node || places[node].codes != QG_NODE_NONE ||
           places[node].scale != QG_NODE_NONE || places[node].tensor_scale != QG_NODE_NONE;
}

// One step of a quantization and those of its own scales that are no other's.
static void join_partners(const qg_graph *graph, qg_node quantize, graph_place *places) {
    const graph_node *node = &graph->nodes[quantize];
    qg_node scale = node->inputs[1],
            tensor = node->input_count > 2 ? node->inputs[2] : QG_NODE_NONE;
    if (!graph_has_own_scales(graph, node))
        return;
    if (is_taken(places, scale)) {
        if (finds_same_scale(node))
            places[quantize].codes = quantize;
        return;
    }
    if (tensor != QG_NODE_NONE && is_taken(places, tensor))
        tensor = QG_NODE_NONE;
    qg_node first = tensor != QG_NODE_NONE && tensor < scale ? tensor : scale;
    places[quantize].step = places[scale].step = first;
    if (tensor != QG_NODE_NONE)
        places[tensor].step = first;
    places[first].codes = quantize;
    places[first].scale = scale;
    places[first].tensor_scale = tensor;
}

// Scales by which nothing quantizes are steps of their own.
static void place_scale(const qg_graph *graph, qg_node node, graph_place *places) {
    if (is_taken(places, node))
        return;
    if (graph->nodes[node].op == QG_GRAPH_SCALED_QUANT_SCALE)
        places[node].scale = node;
    if (graph->nodes[node].op == QG_GRAPH_SCALED_TENSOR_SCALE)
        places[node].tensor_scale = node;
}

static void join_needed(const qg_graph *graph, graph_place *places) {
    for (qg_node i = 0; i < graph->count; i++)
        if (places[i].needed && graph->nodes[i].op == QG_GRAPH_SCALED_QUANTIZE &&
            !is_taken(places, i))
            join_partners(graph, i, places);
}

// What outputs need takes scales before what is merely kept: a scale that comes of stochastic
// rounding is the same with `keep` and without, and with dead nodes or none.
static void find_steps(const qg_graph *graph, bool keep, graph_place *places) {
    for (qg_node i = 0; i < graph->count; i++) {
        places[i].step = i;
        places[i].codes = places[i].scale = places[i].tensor_scale = QG_NODE_NONE;
    }
    join_needed(graph, places);
    for (qg_node i = 0; i < graph->count; i++)
        places[i].needed = places[i].needed || keep;
    join_needed(graph, places);
    for (qg_node i = 0; i < graph->count; i++)
        if (places[i].needed)
            place_scale(graph, i, places);
}

// --------------------------------------------------------------------------------------- lifetimes

static void find_last_reads(const qg_graph *graph, bool keep, graph_place *places) {
    for (qg_node i = 0; i < graph->count; i++)
        places[i].last = keep ? INT32_MAX : places[i].step;
    for (qg_node i = 0; i < graph->count; i++)
        for (int32_t j = 0; j < graph->nodes[i].input_count && places[i].needed; j++) {
            graph_place *in = &places[graph->nodes[i].inputs[j]];
            in->last = in->last > places[i].step ? in->last : places[i].step;
        }
    for (int32_t i = 0; i < graph->output_count; i++)
        places[graph->outputs[i]].last = INT32_MAX;
}

// Inputs are read where the caller has them unless they outlive the run.
static bool has_buffer(const graph_node *node, const graph_place *place) {
    if (!place->needed || graph_op_has_values(node->op))
        return false;
    return node->op != QG_GRAPH_INPUT || place->last == INT32_MAX;
}

static qg_status too_large(void) {
    return qg_fail(QG_ERROR_OVERFLOW, "the buffers of the graph exceed 2^63 - 1 bytes");
}

static qg_status measure(const qg_graph *graph, graph_plan *plan) {
    bool fits = true;
    for (qg_node i = 0; i < graph->count && fits; i++) {
        const graph_node *node = &graph->nodes[i];
        graph_place *place = &plan->places[i];
        int64_t scratch = graph_plan_scratch(&node->type);
        if (has_buffer(node, place))
            place->bytes = graph_plan_room(qg_tensor_bytes(&node->type));
        fits = qg_size_add(plan->without_reuse, place->bytes, &plan->without_reuse);
        for (int32_t j = 0; j < node->input_count && fits; j++)
            fits = qg_size_add(scratch, graph_plan_scratch(&graph->nodes[node->inputs[j]].type),
                               &scratch);
        bool widens = place->needed && graph_traits_of(node->op)->kind == GRAPH_FLOAT;
        if (widens && scratch > plan->scratch)
            plan->scratch = scratch;
    }
    return fits ? QG_OK : too_large();
}

// ----------------------------------------------------------------------------------------- buffers

// Free room below `end`, by offset; neighbours are joined.
typedef struct free_room {
    int64_t offset, bytes;
} free_room;

typedef struct arena {
    free_room *rooms;
    int32_t count;
    int64_t end; // of all that was ever taken
} arena;

static void remove_room(arena *a, int32_t i) {
    a->count--;
    memmove(a->rooms + i, a->rooms + i + 1, (size_t)(a->count - i) * sizeof *a->rooms);
}

// The smallest that is large enough, -1 for none.
static int32_t best_fit(const arena *a, int64_t bytes) {
    int32_t best = -1;
    for (int32_t i = 0; i < a->count && (best < 0 || a->rooms[best].bytes > bytes); i++)
        if (a->rooms[i].bytes >= bytes && (best < 0 || a->rooms[i].bytes < a->rooms[best].bytes))
            best = i;
    return best;
}

// At the end, where the last free room may be a beginning.
static bool take_at_end(arena *a, int64_t bytes, int64_t *offset) {
    *offset = a->end;
    if (a->count > 0 && a->rooms[a->count - 1].offset + a->rooms[a->count - 1].bytes == a->end)
        *offset = a->rooms[--a->count].offset;
    return qg_size_add(*offset, bytes, &a->end);
}

static bool take(arena *a, int64_t bytes, int64_t *offset) {
    int32_t i = best_fit(a, bytes);
    if (i < 0)
        return take_at_end(a, bytes, offset);
    *offset = a->rooms[i].offset;
    a->rooms[i].offset += bytes;
    a->rooms[i].bytes -= bytes;
    if (a->rooms[i].bytes == 0)
        remove_room(a, i);
    return true;
}

// How many rooms lie before `offset`.
static int32_t rooms_before(const arena *a, int64_t offset) {
    int32_t first = 0, end = a->count;
    while (first < end) {
        int32_t middle = first + (end - first) / 2;
        if (a->rooms[middle].offset < offset)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static void give(arena *a, int64_t offset, int64_t bytes) {
    int32_t i = rooms_before(a, offset);
    memmove(a->rooms + i + 1, a->rooms + i, (size_t)(a->count - i) * sizeof *a->rooms);
    a->rooms[i] = (free_room){offset, bytes};
    a->count++;
    if (i + 1 < a->count && offset + bytes == a->rooms[i + 1].offset) {
        a->rooms[i].bytes += a->rooms[i + 1].bytes;
        remove_room(a, i + 1);
    }
    if (i > 0 && a->rooms[i - 1].offset + a->rooms[i - 1].bytes == offset) {
        a->rooms[i - 1].bytes += a->rooms[i].bytes;
        remove_room(a, i);
    }
}

// The nodes that one step computes: 1 to 4 of them.
static int32_t nodes_of_step(const graph_place *places, qg_node step, qg_node nodes[4]) {
    const graph_place *first = &places[step];
    const qg_node partners[3] = {first->codes, first->scale, first->tensor_scale};
    int32_t count = 0;
    nodes[count++] = step;
    for (int32_t i = 0; i < 3; i++)
        if (partners[i] != QG_NODE_NONE && partners[i] != step)
            nodes[count++] = partners[i];
    return count;
}

static bool take_written(graph_place *places, qg_node step, arena *a) {
    qg_node nodes[4];
    int32_t count = nodes_of_step(places, step, nodes);
    for (int32_t i = 0; i < count; i++)
        if (places[nodes[i]].bytes > 0 &&
            !take(a, places[nodes[i]].bytes, &places[nodes[i]].offset))
            return false;
    return true;
}

// dying: (count) the first node that is read last at each step; after: (count) the one after it.
static void list_dying(int32_t count, const graph_place *places, qg_node *dying, qg_node *after) {
    for (qg_node i = 0; i < count; i++)
        dying[i] = QG_NODE_NONE;
    for (qg_node i = 0; i < count; i++)
        if (places[i].bytes > 0 && places[i].last != INT32_MAX) {
            after[i] = dying[places[i].last];
            dying[places[i].last] = i;
        }
}

// What a step writes is taken before what it reads last is given back: they never overlap.
static qg_status place_buffers(int32_t count, arena *a, qg_node *dying, qg_node *after,
                               graph_plan *plan) {
    list_dying(count, plan->places, dying, after);
    for (qg_node step = 0; step < count; step++) {
        if (!plan->places[step].needed || plan->places[step].step != step)
            continue;
        if (!take_written(plan->places, step, a))
            return too_large();
        for (qg_node i = dying[step]; i != QG_NODE_NONE; i = after[i])
            give(a, plan->places[i].offset, plan->places[i].bytes);
    }
    plan->bytes = a->end;
    return QG_OK;
}

// ---------------------------------------------------------------------------------------- the plan

static qg_status assign_offsets(const qg_graph *graph, graph_plan *plan) {
    size_t count = (size_t)graph->count;
    arena a = {.rooms = malloc((count + 2) * sizeof *a.rooms)};
    qg_node *dying = malloc(count * sizeof *dying), *after = malloc(count * sizeof *after);
    qg_status status = a.rooms && dying && after
                           ? place_buffers(graph->count, &a, dying, after, plan)
                           : no_memory();
    free(a.rooms);
    free(dying);
    free(after);
    return status;
}

qg_status graph_plan_make(const qg_graph *graph, bool keep, graph_plan *out) {
    *out = (graph_plan){.places = calloc((size_t)graph->count, sizeof *out->places)};
    if (!out->places)
        return no_memory();
    qg_status status = mark_needed(graph, out->places);
    if (!status) {
        find_steps(graph, keep, out->places);
        find_last_reads(graph, keep, out->places);
        status = measure(graph, out);
    }
    if (!status)
        status = assign_offsets(graph, out);
    if (status)
        graph_plan_free(out);
    return status;
}

void graph_plan_free(graph_plan *plan) {
    free(plan->places);
    *plan = (graph_plan){0};
}
