// Noise by numerical integration. See qg_theory.h.
//
// Per tensor: Gauss-Legendre over each cell of the quantizer, the cell cut into panels on which the
// density is smooth. (x - v)^2 is integrated as such, so that fine cells do not cancel.
//
// Per block of g: with f and F the density and distribution of |x|, the maximum a has density
// g F^(g-1) f; given a, one element is a itself and the others follow f / F on [0, a]. Hence, per
// element,
//   noise = integral over a of f(a) F(a)^(g-1) (a - Q(a))^2
//                            + (g-1) f(a) F(a)^(g-2) I(a),  I(a) = integral_0^a (x - Q(x))^2 f(x),
// with the Q that belongs to the scale of a. The integrand jumps where the scale does and has a
// kink where a crosses the edge of a cell: panels end there. As long as the scale stays, I(a) grows
// with a by what lies between: the nodes ascend, and each adds a part of a cell to the I before it.
#include <qg_theory.h>

#include <elementary_internal.h>

typedef struct law_of_magnitude {
    qg_density kind;
    double sigma;
    double extent; // beyond it nothing counts, or nothing is
} law_of_magnitude;

// What a piece of the line adds to a qg_noise.
typedef struct piece {
    double noise, cross, below, above, drift;
    double mass; // the probability of the piece itself
} piece;

static double infinity(void) { return qg_double_of_bits(0x7ff0000000000000ull); }
static double smaller(double a, double b) { return a < b ? a : b; }

// ----------------------------------------------------------------------------------------- density

#define SQRT_2 1.41421356237309504880
#define SQRT_3 1.73205080756887729353

// Normal: P(|x| > 12 sigma) = 4e-33. Laplace: P(|x| > 60 sigma) = 1e-37.
static double extent_of(qg_density kind, double sigma) {
    switch (kind) {
    case QG_DENSITY_NORMAL: return 12 * sigma;
    case QG_DENSITY_LAPLACE: return 60 * sigma;
    default: return SQRT_3 * sigma;
    }
}

// The density of |x| at 0 < x <= extent.
static double density(const law_of_magnitude *law, double x) {
    double z = x / law->sigma;
    switch (law->kind) {
    case QG_DENSITY_NORMAL: return 2 * 0x1.9884533d43651p-2 / law->sigma * exp_inline(-0.5 * z * z);
    case QG_DENSITY_LAPLACE: return SQRT_2 / law->sigma * exp_inline(-SQRT_2 * z);
    default: return 1 / law->extent;
    }
}

// P(|x| > a).
static double tail(const law_of_magnitude *law, double a) {
    double z = a / law->sigma;
    switch (law->kind) {
    case QG_DENSITY_NORMAL: return 2 * qg_normal_cdf(-z);
    case QG_DENSITY_LAPLACE: return exp_inline(-SQRT_2 * z);
    default: return a < law->extent ? 1 - a / law->extent : 0;
    }
}

// log P(|x| <= a).
static double log_body(const law_of_magnitude *law, double a) { return qg_log1p(-tail(law, a)); }

// -------------------------------------------------------------------------------------- quadrature

typedef struct node {
    double place, weight; // on [-1, 1], the positive half
} node;

static const node two[] = {
    {0.57735026918962576451, 1}
};
static const node three[] = {
    {0.77459666924148337704, 0.55555555555555555556},
    {0,                      0.88888888888888888889}
};
static const node four[] = {
    {0.33998104358485626480, 0.65214515486254614263},
    {0.86113631159405257522, 0.34785484513745385737}
};
static const node eight[] = {
    {0.18343464249564980494, 0.36268378337836198297},
    {0.52553240991632898582, 0.31370664587788728734},
    {0.79666647741362673959, 0.22238103445337447054},
    {0.96028985649753623168, 0.10122853629037625915}
};

// Adds half times the rule's sum over one pair of nodes.
static void add_point(const law_of_magnitude *law, double x, double weight, double v, piece *sum) {
    double mass = weight * density(law, x);
    sum->noise += (x - v) * (x - v) * mass;
    sum->cross += x * (v - x) * mass;
    sum->drift += (v - x) * mass;
    sum->mass += mass;
}

typedef struct rule {
    const node *nodes;
    int count; // of nodes at 0 and above
} rule;

// What the rule leaves out is below 1e-8 of the noise of a panel so wide, in units of sigma.
static rule rule_for(double width) {
    if (width <= 0x1p-11)
        return (rule){two, 1};
    if (width <= 0x1p-5)
        return (rule){three, 2};
    return width <= 0.125 ? (rule){four, 2} : (rule){eight, 4};
}

static void add_panel(const law_of_magnitude *law, double low, double high, double v, piece *sum) {
    double middle = 0.5 * (low + high), half = 0.5 * (high - low);
    rule r = rule_for((high - low) / law->sigma);
    for (int i = 0; i < r.count; i++) {
        double distance = half * r.nodes[i].place, weight = half * r.nodes[i].weight;
        add_point(law, middle - distance, weight, v, sum);
        if (distance > 0)
            add_point(law, middle + distance, weight, v, sum);
    }
}

// ------------------------------------------------------------------------------------------- cells

// The upper edge of cell i: half way to the next value.
static double edge(qg_grid grid, int64_t i) {
    return i + 1 < grid.count ? 0.5 * (grid.value[i] + grid.value[i + 1]) : infinity();
}

// The number of the cell of magnitude x, in units of the scale.
static int64_t cell_of(qg_grid grid, double x) {
    int64_t low = 0, high = grid.count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (x <= edge(grid, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// All values to zero, which is what a scale of 0 does.
static const double zero_alone[] = {0};
static qg_grid grid_at(qg_grid grid, double scale) {
    return scale > 0 ? grid : (qg_grid){zero_alone, 1};
}

// Magnitudes that go to one value.
static void add_magnitudes(const law_of_magnitude *law, double low, double high, double v,
                           piece *sum) {
    int panels = 1 + (int)((high - low) / (0.5 * law->sigma));
    double width = (high - low) / panels;
    for (int p = 0; p < panels; p++)
        add_panel(law, low + p * width, p + 1 < panels ? low + (p + 1) * width : high, v, sum);
}

// The magnitudes up to `upper`, quantized at one scale, as far as they are summed.
typedef struct running {
    double scale, upper;
    int64_t cell; // of `upper`; one more beyond the last value
    piece sum;
} running;

static running run_from_zero(double scale) { return (running){.scale = scale}; }

// Where cell i ends; the last one is cut where saturation begins.
static double end_of(qg_grid grid, int64_t i, double scale) {
    if (i + 1 < grid.count)
        return edge(grid, i) * scale;
    return i < grid.count ? grid.value[i] * scale : infinity();
}

static void add_cell(const law_of_magnitude *law, qg_grid grid, double high, running *r) {
    double v = grid.value[r->cell < grid.count ? r->cell : grid.count - 1] * r->scale;
    double before = r->sum.mass;
    add_magnitudes(law, r->upper, high, v, &r->sum);
    if (v == 0)
        r->sum.below += r->sum.mass - before;
    if (r->cell == grid.count)
        r->sum.above += r->sum.mass - before;
    r->upper = high;
}

// Goes on to `upper`, at most the extent.
static void run_to(const law_of_magnitude *law, qg_grid grid, double upper, running *r) {
    grid = grid_at(grid, r->scale);
    while (r->upper < upper) {
        double high = smaller(end_of(grid, r->cell, r->scale), upper);
        if (high > r->upper)
            add_cell(law, grid, high, r);
        if (high < upper)
            r->cell++;
    }
}

// All at once, and the shares from the law's distribution, which has them to the last digit.
static piece integrate_cells(const law_of_magnitude *law, qg_grid grid, double scale,
                             double upper) {
    running r = run_from_zero(scale);
    run_to(law, grid, upper, &r);
    grid = grid_at(grid, scale);
    double first = grid.count > 1 ? smaller(edge(grid, 0) * scale, upper) : upper;
    double last = smaller(grid.value[grid.count - 1] * scale, upper);
    r.sum.below = 1 - tail(law, first);
    r.sum.above = tail(law, last) - tail(law, upper);
    return r.sum;
}

// ----------------------------------------------------------------------------------------- borders

double qg_noise_qsnr_db(qg_noise noise) {
    return noise.noise > 0 ? 10 * qg_log10(noise.signal / noise.noise) : infinity();
}

static qg_status check_arguments(qg_density kind, double sigma, qg_grid grid) {
    if (kind != QG_DENSITY_NORMAL && kind != QG_DENSITY_LAPLACE && kind != QG_DENSITY_UNIFORM)
        return qg_fail(QG_ERROR_ARGUMENT, "theory needs a law with a density: normal, laplace, "
                                          "uniform");
    if (!(sigma > 0 && sigma < infinity()))
        return qg_fail(QG_ERROR_ARGUMENT, "theory: sigma %g is not positive and finite", sigma);
    int ascending = grid.count > 0 && grid.value[0] == 0;
    for (int64_t i = 1; ascending && i < grid.count; i++)
        ascending = grid.value[i] > grid.value[i - 1] && grid.value[i] < infinity();
    if (!ascending)
        return qg_fail(QG_ERROR_ARGUMENT, "theory: the values of the grid do not ascend from 0");
    return QG_OK;
}

static qg_noise noise_of(double sigma, piece sum) {
    return (qg_noise){sigma * sigma, sum.noise, sum.cross, sum.below, sum.above, sum.drift};
}

qg_status qg_theory_tensor(qg_density kind, double sigma, qg_grid grid, double scale,
                           qg_noise *out) {
    qg_status status = check_arguments(kind, sigma, grid);
    if (status)
        return status;
    if (!(scale > 0 && scale < infinity()))
        return qg_fail(QG_ERROR_ARGUMENT, "theory: scale %g is not positive and finite", scale);
    law_of_magnitude law = {kind, sigma, extent_of(kind, sigma)};
    *out = noise_of(sigma, integrate_cells(&law, grid, scale, law.extent));
    return QG_OK;
}

// ------------------------------------------------------------------------------------------ blocks

// A place where a panel ends, and log F^(g-1) there.
typedef struct border {
    double place, log_others;
} border;

// Maxima whose scale is the same, or, where `scale` < 0, in the same proportion to them.
typedef struct stretch {
    double low, high, scale, proportion;
    int intervals;
} stretch;

typedef struct block {
    law_of_magnitude law;
    qg_grid grid;
    double others; // g - 1
    double (*scale_of)(void *context, double amax);
    void *context;
    double bad_scale; // the first scale that is none, or 0
    running rest;     // the magnitudes below a maximum
    border last;      // of the panel before
    stretch open;     // maxima not integrated yet
    piece sum;
} block;

static double scale_at(block *b, double a) {
    double scale = b->scale_of(b->context, a);
    if (scale >= 0 && scale < infinity())
        return scale;
    if (b->bad_scale == 0)
        b->bad_scale = scale;
    return 0;
}

// What the maximum itself contributes.
static piece quantize_maximum(qg_grid grid, double scale, double a) {
    grid = grid_at(grid, scale);
    double v = scale > 0 ? grid.value[cell_of(grid, a / scale)] * scale : 0;
    // An amax rule makes a = F X but for rounding, which is not saturation.
    double reach = grid.value[grid.count - 1] * scale * (1 + 0x1p-22);
    return (piece){(a - v) * (a - v), a * (v - a), v == 0, a > reach, v - a, 0};
}

static void add_weighted(piece *sum, piece p, double weight) {
    sum->noise += weight * p.noise;
    sum->cross += weight * p.cross;
    sum->below += weight * p.below;
    sum->above += weight * p.above;
    sum->drift += weight * p.drift;
}

// The integrand over a at one node. F is the sum of the density below, which is there anyway; its
// last digit counts g times, which is far from what is promised.
static void add_maximum(block *b, double a, double scale, double weight) {
    double own = weight * density(&b->law, a);
    if (b->others > 0) {
        if (scale != b->rest.scale || a < b->rest.upper)
            b->rest = run_from_zero(scale);
        run_to(&b->law, b->grid, a, &b->rest);
        double body = b->rest.sum.mass;
        double rest = own * b->others * qg_exp((b->others - 1) * qg_log(body));
        add_weighted(&b->sum, b->rest.sum, rest);
        own = rest / b->others * body;
    }
    add_weighted(&b->sum, quantize_maximum(b->grid, scale, a), own);
}

static void add_maxima(block *b, double low, double high, double scale) {
    double middle = 0.5 * (low + high), half = 0.5 * (high - low);
    for (int i = -4; i < 4; i++) { // ascending
        const node *n = &eight[i < 0 ? -1 - i : i];
        double a = middle + (i < 0 ? -half : half) * n->place;
        add_maximum(b, a, scale < 0 ? scale_at(b, a) : scale, half * n->weight);
    }
}

static border border_at(const block *b, double a) {
    return (border){a, b->others * log_body(&b->law, a)};
}

// F^(g-1) may rise from nothing within a panel (a large block, or the end of a uniform law): then
// it is halved until it rises by e^4 at most.
static void integrate_between(block *b, border low, border high, double scale, int depth) {
    if (high.log_others < -80)
        return;
    if (high.log_others - low.log_others > 4 && depth < 40) {
        border middle = border_at(b, 0.5 * (low.place + high.place));
        integrate_between(b, low, middle, scale, depth + 1);
        integrate_between(b, middle, high, scale, depth + 1);
        return;
    }
    add_maxima(b, low.place, high.place, scale);
}

// One panel; `scale` < 0 asks the rule at every node.
static void integrate_panel(block *b, double low, double high, double scale) {
    if (!(high > low))
        return;
    border from = b->last.place == low ? b->last : border_at(b, low);
    b->last = border_at(b, high);
    integrate_between(b, from, b->last, scale, 0);
}

// An interval of one scale: panels between the edges of cells, and the last value, that lie in it.
static void integrate_constant(block *b, double low, double high, double scale) {
    double last = b->grid.value[b->grid.count - 1] * scale;
    if (scale > 0) {
        for (int64_t i = cell_of(b->grid, low / scale); i + 1 < b->grid.count; i++) {
            double end = edge(b->grid, i) * scale;
            if (end >= high)
                break;
            integrate_panel(b, low, end, scale);
            low = end > low ? end : low;
        }
        if (last > low && last < high) {
            integrate_panel(b, low, last, scale);
            low = last;
        }
    }
    integrate_panel(b, low, high, scale);
}

// The last maximum with the scale of `low`, when the scale jumps once between low and high.
static double find_jump(block *b, double low, double high) {
    double scale = scale_at(b, low);
    for (;;) {
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high)
            return low;
        if (scale_at(b, middle) == scale)
            low = middle;
        else
            high = middle;
    }
}

// Equal to within what a binary32 scale may be off.
static int is_near(double a, double b) { return a - b <= 0x1p-20 * b && b - a <= 0x1p-20 * b; }

// Integrates the open stretch.
static void close_stretch(block *b) {
    stretch *s = &b->open;
    if (s->intervals > 0 && s->scale < 0)
        integrate_panel(b, s->low, s->high, -1);
    else if (s->intervals > 0)
        integrate_constant(b, s->low, s->high, s->scale);
    s->intervals = 0;
}

// Intervals are narrow to find the jumps of the scale. The integrand does not need that: between
// jumps it is as smooth as the law, and 16 intervals, a quarter of an octave, make one panel.
static void add_interval(block *b, double low, double high, double scale, double proportion) {
    enum { LONGEST = 16 };
    stretch *s = &b->open;
    if (!(high > low))
        return;
    int is_same = scale < 0
                      ? proportion > 0 && s->proportion > 0 && is_near(proportion, s->proportion)
                      : scale == s->scale;
    if (s->intervals > 0 && s->intervals < LONGEST && is_same) {
        s->high = high;
        s->intervals++;
        return;
    }
    close_stretch(b);
    *s = (stretch){low, high, scale, proportion, 1};
}

// Intervals are short enough for one jump at most; a scale that differs at both ends and in the
// middle is a smooth one.
static void integrate_interval(block *b, double low, double high) {
    double low_scale = scale_at(b, low), high_scale = scale_at(b, high);
    double middle = 0.5 * (low + high), scale = scale_at(b, middle);
    if (low_scale != high_scale && scale != low_scale && scale != high_scale) {
        double proportion = scale / middle;
        int is_linear =
            is_near(low_scale / low, proportion) && is_near(high_scale / high, proportion);
        add_interval(b, low, high, -1, is_linear ? proportion : 0);
        return;
    }
    double jump = low_scale == high_scale ? high : find_jump(b, low, high);
    add_interval(b, low, jump, low_scale, 0);
    add_interval(b, jump, high, high_scale, 0);
}

// Where the maximum can be: F^g = e^-40 below, or 2^-30 sigma where small blocks reach further
// down (values there add nothing to the noise); g P(|x| > a) = e^-46 above.
static double lowest_maximum(const block *b) {
    double low = 0x1p-30 * b->law.sigma, high = b->law.extent, g = b->others + 1;
    for (int i = 0; i < 20; i++) {
        double middle = 0.5 * (low + high);
        if (g * log_body(&b->law, middle) < -40)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double highest_maximum(const block *b) {
    double low = 0, high = b->law.extent, g = b->others + 1;
    if (b->law.kind == QG_DENSITY_UNIFORM)
        return high;
    for (int i = 0; i < 20; i++) {
        double middle = 0.5 * (low + high);
        if (g * tail(&b->law, middle) > 1e-20)
            low = middle;
        else
            high = middle;
    }
    return high;
}

qg_status qg_theory_block(qg_density kind, double sigma, qg_grid grid, int64_t g,
                          double (*scale_of)(void *context, double amax), void *context,
                          qg_noise *out) {
    const double ratio = 0x1.02c9a3e778061p+0; // 2^(1/64)
    qg_status status = check_arguments(kind, sigma, grid);
    if (status)
        return status;
    if (g < 1)
        return qg_fail(QG_ERROR_ARGUMENT, "theory: a block needs at least one element");
    block b = {
        .law = {kind, sigma, extent_of(kind, sigma)},
        .grid = grid,
        .others = (double)(g - 1),
        .scale_of = scale_of,
        .context = context
    };
    double end = highest_maximum(&b);
    for (double low = lowest_maximum(&b); low < end; low *= ratio)
        integrate_interval(&b, low, smaller(low * ratio, end));
    close_stretch(&b);
    if (b.bad_scale != 0)
        return qg_fail(QG_ERROR_ARGUMENT, "theory: the scale rule gave %g", b.bad_scale);
    *out = noise_of(sigma, b.sum);
    return QG_OK;
}

// ------------------------------------------------------------------------------------ one maximum

// Per element of a block of g whose largest magnitude is a.
static qg_noise given_maximum(const law_of_magnitude *law, qg_grid grid, int64_t g, double a,
                              double scale) {
    double others = (double)(g - 1), body = 1 - tail(law, a);
    piece own = quantize_maximum(grid_at(grid, scale), scale, a);
    piece rest = {0, 0, 0, 0, 0, 0}, squares = rest;
    if (g > 1 && body > 0) {
        rest = integrate_cells(law, grid, scale, a);
        squares = integrate_cells(law, grid, 0, a);
    }
    double share = body > 0 ? others / body : 0;
    return (qg_noise){
        (a * a + share * squares.noise) / (double)g,  (own.noise + share * rest.noise) / (double)g,
        (own.cross + share * rest.cross) / (double)g, (own.below + share * rest.below) / (double)g,
        (own.above + share * rest.above) / (double)g, (own.drift + share * rest.drift) / (double)g};
}

qg_status qg_theory_block_given(qg_density kind, double sigma, qg_grid grid, int64_t g, double amax,
                                double scale, qg_noise *out) {
    qg_status status = check_arguments(kind, sigma, grid);
    if (status)
        return status;
    if (g < 1 || !(amax > 0 && amax < infinity()) || !(scale >= 0 && scale < infinity()))
        return qg_fail(QG_ERROR_ARGUMENT, "theory: a block of %lld with amax %g and scale %g",
                       (long long)g, amax, scale);
    law_of_magnitude law = {kind, sigma, extent_of(kind, sigma)};
    *out = given_maximum(&law, grid, g, smaller(amax, law.extent), scale);
    return QG_OK;
}

// The maximum below which a share p of all blocks of g have theirs.
static double maximum_at(const law_of_magnitude *law, int64_t g, double p) {
    double low = 0, high = law->extent, wanted = qg_log(p) / (double)g;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (log_body(law, middle) < wanted)
            low = middle;
        else
            high = middle;
    }
    return high;
}

qg_status qg_theory_block_variance(qg_density kind, double sigma, qg_grid grid, int64_t g,
                                   double (*scale_of)(void *context, double amax), void *context,
                                   double *out) {
    enum { POINTS = 64 };
    qg_status status = check_arguments(kind, sigma, grid);
    if (status)
        return status;
    law_of_magnitude law = {kind, sigma, extent_of(kind, sigma)};
    qg_noise at[POINTS], mean = {0, 0, 0, 0, 0, 0};
    for (int i = 0; i < POINTS; i++) {
        double a = maximum_at(&law, g, (i + 0.5) / POINTS), scale = scale_of(context, a);
        at[i] = given_maximum(&law, grid, g, a, scale);
        mean.noise += at[i].noise / POINTS;
        mean.signal += at[i].signal / POINTS;
    }
    *out = 0;
    for (int i = 0; mean.noise > 0 && i < POINTS; i++) {
        double d = at[i].noise / mean.noise - at[i].signal / mean.signal;
        *out += d * d / POINTS;
    }
    return QG_OK;
}
