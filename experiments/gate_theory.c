// Expectations of tensors from those of blocks. See gate_theory.h.
//
// A tensor is a sum over its blocks, whole and ragged ones. Where it is one block (per_tensor), the
// block's maximum is the tensor's, which the row has: the expectation is then given that maximum.
//
// The standard error of noise/signal R over N blocks of g elements: blocks differ because their
// maxima do (v, integrated), and elements within a block because they are drawn: with e^2 close to
// c x^2 U^2 (float; U uniform) the relative variance is (9/5 - 1) K per element, K the kurtosis of
// the law, and 9/5 - 1 + K - 1 with e independent of x (integer). The larger of both is taken, half
// as much again for the steps of e^2 within a binade: 8.9 dB / sqrt(n) for normal data, where E4M3
// has 7.8. Hence se = 10 / ln 10 * sqrt(v / N + 1.5 w / n).
#include <gate_theory.h>

#include <qg_data.h>
#include <qg_status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double DB = 4.342944819032518; // 10 / ln 10

typedef struct law_entry {
    char *name;
    qg_density density;
    double sigma;
} law_entry;

typedef struct block_key {
    const qg_gate_operand *operand;
    qg_density density;
    double sigma, tensor_amax;
    int64_t g;
} block_key;

typedef struct block_entry {
    block_key key;
    bool known;
    qg_noise noise;
    double variance;
} block_entry;

struct qg_gate_theory {
    law_entry *laws;
    int law_count;
    block_entry *blocks;
    int block_count;
};

qg_status qg_gate_theory_create(qg_gate_theory **out) {
    *out = calloc(1, sizeof **out);
    return *out ? QG_OK : qg_fail(QG_ERROR_MEMORY, "no memory for theory");
}

void qg_gate_theory_free(qg_gate_theory *t) {
    if (!t)
        return;
    for (int i = 0; i < t->law_count; i++)
        free(t->laws[i].name);
    free(t->laws);
    free(t->blocks);
    free(t);
}

// ------------------------------------------------------------------------------------------ laws

static law_entry read_law(const char *name) {
    law_entry entry = {strdup(name), QG_DENSITY_NONE, 1};
    qg_law *law;
    if (strncmp(name, "tensors:", 8) != 0 && qg_law_parse(name, &law) == QG_OK) {
        entry.density = qg_law_density(law, &entry.sigma);
        qg_law_free(law);
    }
    return entry;
}

static const law_entry *find_law(qg_gate_theory *t, const char *name) {
    for (int i = t->law_count - 1; i >= 0; i--)
        if (strcmp(t->laws[i].name, name) == 0)
            return &t->laws[i];
    law_entry *laws = realloc(t->laws, (size_t)(t->law_count + 1) * sizeof *laws);
    if (!laws)
        return NULL;
    t->laws = laws;
    laws[t->law_count] = read_law(name);
    return laws[t->law_count].name ? &laws[t->law_count++] : NULL;
}

bool qg_gate_theory_has_density(qg_gate_theory *theory, const char *law) {
    const law_entry *entry = find_law(theory, law);
    return entry && entry->density != QG_DENSITY_NONE;
}

static double kurtosis_of(qg_density density) {
    switch (density) {
    case QG_DENSITY_NORMAL: return 3;
    case QG_DENSITY_LAPLACE: return 6;
    default: return 1.8;
    }
}

// ---------------------------------------------------------------------------------------- blocks

static double scale_of(void *context, double amax) {
    const block_key *key = context;
    return qg_gate_scale(key->operand, key->tensor_amax, amax);
}

static bool is_same(const block_key *a, const block_key *b) {
    return a->operand == b->operand && a->density == b->density && a->sigma == b->sigma &&
           a->tensor_amax == b->tensor_amax && a->g == b->g;
}

static bool integrate(block_entry *entry) {
    block_key *key = &entry->key;
    qg_grid grid = {key->operand->values, key->operand->value_count};
    return qg_theory_block(key->density, key->sigma, grid, key->g, scale_of, key, &entry->noise) ==
               QG_OK &&
           qg_theory_block_variance(key->density, key->sigma, grid, key->g, scale_of, key,
                                    &entry->variance) == QG_OK;
}

static const block_entry *find_block(qg_gate_theory *t, const block_key *key) {
    for (int i = t->block_count - 1; i >= 0; i--)
        if (is_same(&t->blocks[i].key, key))
            return &t->blocks[i];
    block_entry *blocks = realloc(t->blocks, (size_t)(t->block_count + 1) * sizeof *blocks);
    if (!blocks)
        return NULL;
    t->blocks = blocks;
    block_entry *entry = &blocks[t->block_count++];
    *entry = (block_entry){.key = *key};
    entry->known = integrate(entry);
    return entry;
}

static bool is_two_level(int rule) {
    return rule == QG_RULE_TWO_LEVEL || rule == QG_RULE_TWO_LEVEL_TORCHAO;
}

// Block scales of a two-level rule depend on the tensor's amax alone through the place of E4M3's
// steps: 32 of them an octave tell it apart well enough, and are kept.
static double rounded_amax(double amax) {
    int exponent;
    double half = frexp(amax, &exponent); // 1/2 or more, below 1
    return ldexp(nearbyint(64 * half) / 64, exponent);
}

static bool can_follow(const qg_gate_operand *o, const law_entry *law) {
    qg_rounding rounding = o->recipe.conversion.rounding;
    bool nearest = rounding.mode == QG_ROUND_RNE || rounding.mode == QG_ROUND_RNA;
    // Beyond these, bounds of the recipe and of binary32 take part.
    bool ordinary = law && law->sigma > 1e-6 && law->sigma < 1e6;
    return ordinary && law->density != QG_DENSITY_NONE && nearest && o->known &&
           o->value_count > 1 && o->recipe.structure == QG_STRUCTURE_PLAIN &&
           !isnan(qg_gate_scale(o, 1, 1));
}

// ---------------------------------------------------------------------------------------- tensors

typedef struct total {
    double elements, signal, noise, cross, below, above, variance;
} total;

static void add_blocks(total *sum, double elements, const qg_noise *noise, double variance) {
    sum->elements += elements;
    sum->signal += elements * noise->signal;
    sum->noise += elements * noise->noise;
    sum->cross += elements * noise->cross;
    sum->below += elements * noise->below;
    sum->above += elements * noise->above;
    sum->variance += variance;
}

static qg_gate_expectation expect(const total *sum, qg_density density) {
    double kurtosis = kurtosis_of(density), by_float = 0.8 * kurtosis;
    double by_integer = 0.8 + kurtosis - 1, n = sum->elements;
    double within = 1.5 * fmax(by_float, by_integer) / n;
    // Below, what binary32 rounds takes part; blocks of one element have no noise at all.
    return (qg_gate_expectation){.known = sum->noise > 1e-9 * sum->signal,
                                 .noise = sum->noise / sum->signal,
                                 .shrinkage = sum->cross / sum->signal,
                                 .below = sum->below / n,
                                 .above = sum->above / n,
                                 .se_db = DB * sqrt(within + sum->variance / (n * n))};
}

// One block: given its maximum.
static bool add_given(total *sum, const block_key *key) {
    qg_grid grid = {key->operand->values, key->operand->value_count};
    qg_noise noise;
    double scale = qg_gate_scale(key->operand, key->tensor_amax, key->tensor_amax);
    if (qg_theory_block_given(key->density, key->sigma, grid, key->g, key->tensor_amax, scale,
                              &noise) != QG_OK)
        return false;
    add_blocks(sum, (double)key->g, &noise, 0);
    return true;
}

static bool add_expected(qg_gate_theory *t, total *sum, const block_key *key, double count) {
    const block_entry *entry = find_block(t, key);
    if (!entry || !entry->known)
        return false;
    double elements = (double)key->g * count;
    add_blocks(sum, elements, &entry->noise, entry->variance * elements * (double)key->g);
    return true;
}

qg_gate_expectation qg_gate_theory_tensor(qg_gate_theory *theory, const qg_gate_operand *operand,
                                          const char *law_name, int64_t m, int64_t k,
                                          double tensor_amax) {
    enum { FEWEST_OF_TWO_LEVELS = 4096 }; // below, one block's maximum is the tensor's too often
    qg_gate_expectation unknown = {0};
    const law_entry *law = find_law(theory, law_name);
    bool two_level = operand->known && is_two_level(operand->recipe.rule);
    if (!can_follow(operand, law) ||
        (two_level && (!(tensor_amax > 0) || m * k < FEWEST_OF_TWO_LEVELS)))
        return unknown;
    qg_gate_block blocks[QG_GATE_BLOCKS];
    int count = qg_gate_blocks(&operand->recipe, m, k, blocks);
    total sum = {0};
    for (int i = 0; i < count; i++) {
        block_key key = {operand, law->density, law->sigma, tensor_amax, blocks[i].elements};
        bool single = count == 1 && blocks[0].count == 1 && tensor_amax > 0;
        if (!single)
            key.tensor_amax = two_level ? rounded_amax(tensor_amax) : 0;
        if (!(single ? add_given(&sum, &key) : add_expected(theory, &sum, &key, blocks[i].count)))
            return unknown;
    }
    return expect(&sum, law->density);
}

// The outputs are m n near-normal numbers, so are their errors: 4 / (m n) as if they were
// independent; each row of either operand is shared by a row or a column of them, which the terms
// in m k and n k stand for, and the operands' own error is common to all.
qg_gate_expectation qg_gate_theory_product(const qg_gate_expectation *a,
                                           const qg_gate_expectation *b, int64_t m, int64_t n,
                                           int64_t k) {
    if (!a->known || !b->known)
        return (qg_gate_expectation){0};
    double rows = (double)m, columns = (double)n, inner = (double)k;
    double draw = 4 / (rows * columns) + 8 / (rows * inner) + 8 / (columns * inner);
    double own = (a->se_db * a->se_db + b->se_db * b->se_db) / (DB * DB);
    double r = 1 - 2 * (1 + a->shrinkage) * (1 + b->shrinkage) +
               (1 + 2 * a->shrinkage + a->noise) * (1 + 2 * b->shrinkage + b->noise);
    return (qg_gate_expectation){.known = true, .noise = r, .se_db = DB * sqrt(draw + own)};
}
