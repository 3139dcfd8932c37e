// Learning a route. See route_learn.h.
#include <route_learn.h>

enum { SHARED = QG_GROUP_KERNEL_SHARED, HOPPER = QG_GROUP_KERNEL_HOPPER, UNDECIDED = -1 };

static int smaller_median(const route_point *p) {
    return p->median_s[HOPPER] < p->median_s[SHARED] ? HOPPER : SHARED;
}

// UNDECIDED: the difference is within the spread.
static int faster(const route_point *p) {
    double difference = p->median_s[SHARED] - p->median_s[HOPPER];
    double spread = p->mad_s[SHARED] + p->mad_s[HOPPER];
    return difference > spread ? HOPPER : difference < -spread ? SHARED : UNDECIDED;
}

static int first_decided(const route_point *points, size_t begin, size_t end) {
    int kernel = UNDECIDED;
    for (size_t i = begin; i < end && kernel == UNDECIDED; i++)
        kernel = faster(&points[i]);
    return kernel;
}

static qg_route_row row_of(const route_point *p, int kernel) {
    int other = kernel == HOPPER ? SHARED : HOPPER;
    return (qg_route_row){.k_from = p->k,
                          .m_from = p->m,
                          .kernel = kernel,
                          .ratio = p->median_s[other] / p->median_s[kernel],
                          .samples = p->samples[SHARED] + p->samples[HOPPER]};
}

// The points [begin, end) of one k; `before`: the route of the smaller ones.
static size_t learn_k(const route_point *points, size_t begin, size_t end, const qg_route *before,
                      qg_route_row *rows) {
    int lowest = first_decided(points, begin, end), kernel = lowest;
    size_t count = 0;
    for (size_t i = begin; i < end; i++) {
        const route_point *p = &points[i];
        int found = faster(p);
        if (found != UNDECIDED)
            kernel = found;
        else if (lowest == UNDECIDED)
            kernel = before->count ? qg_route_kernel(before, p->m, p->k) : smaller_median(p);
        if (count == 0 || rows[count - 1].kernel != kernel)
            rows[count++] = row_of(p, kernel);
    }
    return count;
}

size_t route_learn(const route_point *points, size_t count, qg_route_row *rows) {
    size_t made = 0;
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && points[end].k == points[begin].k;)
            end++;
        qg_route before = {rows, made};
        made += learn_k(points, begin, end, &before, rows + made);
    }
    return made;
}
