// Products of BF16 panels by oneDNN, one thread each. See cpu_matmul_internal.h.
// Versions 2 and 3 of its C interface. Primitives are made for one thread, before threads start;
// threads bring their own scratch memory, so that they can run the same primitive at a time.
#include <cpu_matmul_internal.h>
#include <qg_init.h>
#include <qg_memory.h>

#if defined(QG_HAVE_ONEDNN) && defined(_OPENMP)

#include <oneapi/dnnl/dnnl.h>

enum {
    ROW_STEP = 16,
    COLUMN_STEP = MATMUL_STRIP,
    LENGTH_STEP = MATMUL_GRAIN,
    SHAPES = 2 * (BF16_ROWS / ROW_STEP) * (BF16_COLUMNS / COLUMN_STEP) * (BF16_LENGTH / LENGTH_STEP)
};

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t description;         // owned
typedef const_dnnl_memory_desc_t described;     // what functions take
typedef const_dnnl_memory_desc_t scratch_query; // what queries give
#else
typedef dnnl_memory_desc_t description;
typedef const dnnl_memory_desc_t *described;
typedef const dnnl_memory_desc_t *scratch_query;
#endif

// A primitive and the memory that it works on.
typedef struct primitive {
    dnnl_primitive_t run;
    dnnl_primitive_desc_t plan;
    description a, b, c;
} primitive;

struct matmul_bf16 {
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attributes[2]; // without and with `adds`
    int64_t scratch;                     // the most bytes that a primitive wants
    primitive *shapes[SHAPES];
};

struct matmul_bf16_thread {
    matmul_bf16 *x;
    dnnl_stream_t stream;
    void *scratch;
};

bool qg_matmul_bf16_answers(void) { return qg_cpu_detect().avx512bf16; }

static qg_status refused(dnnl_status_t status) {
    return qg_fail(QG_ERROR_UNSUPPORTED, "oneDNN refused with status %d", (int)status);
}

// ------------------------------------------------------------------------------- both interfaces

#if DNNL_VERSION_MAJOR >= 3
static dnnl_status_t describe(description *d, int64_t rows, int64_t columns, dnnl_data_type_t type,
                              dnnl_format_tag_t tag) {
    dnnl_dims_t sizes = {rows, columns};
    return dnnl_memory_desc_create_with_tag(d, 2, sizes, type, tag);
}

static described as_described(const description *d) { return *d; }

static void forget(description *d) {
    if (*d)
        dnnl_memory_desc_destroy(*d);
}

static dnnl_status_t plan_product(primitive *p, dnnl_engine_t engine,
                                  const_dnnl_primitive_attr_t attributes) {
    return dnnl_matmul_primitive_desc_create(&p->plan, engine, p->a, p->b, NULL, p->c, attributes);
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops) {
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}
#else
static dnnl_status_t describe(description *d, int64_t rows, int64_t columns, dnnl_data_type_t type,
                              dnnl_format_tag_t tag) {
    dnnl_dims_t sizes = {rows, columns};
    return dnnl_memory_desc_init_by_tag(d, 2, sizes, type, tag);
}

static described as_described(const description *d) { return d; }

static void forget(description *d) { (void)d; }

static dnnl_status_t plan_product(primitive *p, dnnl_engine_t engine,
                                  const_dnnl_primitive_attr_t attributes) {
    dnnl_matmul_desc_t product;
    dnnl_status_t status = dnnl_matmul_desc_init(&product, &p->a, &p->b, NULL, &p->c);
    if (status != dnnl_success)
        return status;
    return dnnl_primitive_desc_create(&p->plan, &product, attributes, engine, NULL);
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops) { return dnnl_post_ops_append_sum(ops, 1.0f); }
#endif

// ------------------------------------------------------------------------------------------- share

static dnnl_status_t open_attributes(dnnl_primitive_attr_t *out, bool adds) {
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status != dnnl_success || !adds)
        return status;
    status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success)
        status = append_sum(ops);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(*out, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    return status;
}

qg_status qg_matmul_bf16_open(matmul_bf16 **out) {
    void *room;
    *out = NULL;
    qg_status status = qg_allocate(&room, 1, (int64_t)sizeof(matmul_bf16), "oneDNN's primitives");
    if (status != QG_OK)
        return status;
    matmul_bf16 *x = room;
    dnnl_status_t done = dnnl_engine_create(&x->engine, dnnl_cpu, 0);
    for (int adds = 0; adds < 2 && done == dnnl_success; adds++)
        done = open_attributes(&x->attributes[adds], adds == 1);
    if (done != dnnl_success) {
        qg_matmul_bf16_close(x);
        return refused(done);
    }
    *out = x;
    return QG_OK;
}

static void close_primitive(primitive *p) {
    if (!p)
        return;
    if (p->run)
        dnnl_primitive_destroy(p->run);
    if (p->plan)
        dnnl_primitive_desc_destroy(p->plan);
    forget(&p->a);
    forget(&p->b);
    forget(&p->c);
    qg_release(p);
}

void qg_matmul_bf16_close(matmul_bf16 *x) {
    if (!x)
        return;
    for (int i = 0; i < SHAPES; i++)
        close_primitive(x->shapes[i]);
    for (int adds = 0; adds < 2; adds++)
        if (x->attributes[adds])
            dnnl_primitive_attr_destroy(x->attributes[adds]);
    if (x->engine)
        dnnl_engine_destroy(x->engine);
    qg_release(x);
}

static int64_t place_of(matmul_bf16_shape s) {
    int64_t place = s.rows / ROW_STEP - 1;
    place = place * (BF16_COLUMNS / COLUMN_STEP) + s.columns / COLUMN_STEP - 1;
    place = place * (BF16_LENGTH / LENGTH_STEP) + s.length / LENGTH_STEP - 1;
    return place * 2 + s.adds;
}

// b's layout is that of its strips: without it (an unknown processor) the library says so.
static dnnl_status_t make(matmul_bf16 *x, matmul_bf16_shape s, primitive *p) {
    dnnl_status_t done = describe(&p->a, s.rows, s.length, dnnl_bf16, dnnl_ab);
    if (done == dnnl_success)
        done = describe(&p->b, s.length, s.columns, dnnl_bf16, dnnl_BA16a64b2a);
    if (done == dnnl_success)
        done = describe(&p->c, s.rows, s.columns, dnnl_f32, dnnl_ab);
    if (done == dnnl_success)
        done = plan_product(p, x->engine, x->attributes[s.adds]);
    if (done == dnnl_success)
        done = dnnl_primitive_create(&p->run, p->plan);
    return done;
}

static scratch_query scratch_of(const primitive *p) {
    return dnnl_primitive_desc_query_md(p->plan, dnnl_query_scratchpad_md, 0);
}

qg_status qg_matmul_bf16_prepare(matmul_bf16 *x, matmul_bf16_shape shape) {
    primitive **slot = &x->shapes[place_of(shape)];
    if (*slot)
        return QG_OK;
    void *room;
    qg_status status = qg_allocate(&room, 1, (int64_t)sizeof(primitive), "a oneDNN primitive");
    if (status != QG_OK)
        return status;
    *slot = room;
    dnnl_status_t done = make(x, shape, *slot);
    if (done != dnnl_success) {
        close_primitive(*slot);
        *slot = NULL;
        return refused(done);
    }
    int64_t bytes = (int64_t)dnnl_memory_desc_get_size(scratch_of(*slot));
    x->scratch = bytes > x->scratch ? bytes : x->scratch;
    return QG_OK;
}

// ------------------------------------------------------------------------------------- one thread

qg_status qg_matmul_bf16_enter(matmul_bf16 *x, matmul_bf16_thread **out) {
    void *room;
    *out = NULL;
    qg_status status = qg_allocate(&room, 1, (int64_t)sizeof(matmul_bf16_thread), "a stream");
    if (status != QG_OK)
        return status;
    matmul_bf16_thread *t = room;
    t->x = x;
    status = qg_allocate(&t->scratch, x->scratch, 1, "oneDNN's scratch memory");
    dnnl_status_t done = dnnl_success;
    if (status == QG_OK)
        done = dnnl_stream_create(&t->stream, x->engine, dnnl_stream_default_flags);
    if (status != QG_OK || done != dnnl_success) {
        qg_matmul_bf16_leave(t);
        return status != QG_OK ? status : refused(done);
    }
    *out = t;
    return QG_OK;
}

void qg_matmul_bf16_leave(matmul_bf16_thread *t) {
    if (!t)
        return;
    if (t->stream)
        dnnl_stream_destroy(t->stream);
    qg_release(t->scratch);
    qg_release(t);
}

// The C interface takes what it only reads as void *.
static void *writable(const void *pointer) {
    union {
        const void *in;
        void *out;
    } u = {pointer};
    return u.out;
}

qg_status qg_matmul_bf16_run(matmul_bf16_thread *t, matmul_bf16_shape shape, const uint16_t *a,
                             const uint16_t *b, float *c) {
    const primitive *p = t->x->shapes[place_of(shape)];
    described what[4] = {as_described(&p->a), as_described(&p->b), as_described(&p->c),
                         scratch_of(p)};
    void *where[4] = {writable(a), writable(b), c, t->scratch};
    dnnl_exec_arg_t arguments[4] = {
        {DNNL_ARG_SRC,        NULL},
        {DNNL_ARG_WEIGHTS,    NULL},
        {DNNL_ARG_DST,        NULL},
        {DNNL_ARG_SCRATCHPAD, NULL}
    };
    dnnl_status_t done = dnnl_success;
    for (int i = 0; i < 4 && done == dnnl_success; i++)
        done = dnnl_memory_create(&arguments[i].memory, what[i], t->x->engine, where[i]);
    if (done == dnnl_success)
        done = dnnl_primitive_execute(p->run, t->stream, 4, arguments);
    if (done == dnnl_success)
        done = dnnl_stream_wait(t->stream);
    for (int i = 0; i < 4; i++)
        if (arguments[i].memory)
            dnnl_memory_destroy(arguments[i].memory);
    return done == dnnl_success ? QG_OK : refused(done);
}

#else

// Without OpenMP there is no way to tell the library how many threads to use.
bool qg_matmul_bf16_answers(void) { return false; }

qg_status qg_matmul_bf16_open(matmul_bf16 **out) {
    *out = NULL;
    return qg_fail(QG_ERROR_UNSUPPORTED, "this build has no oneDNN");
}

void qg_matmul_bf16_close(matmul_bf16 *x) { (void)x; }

qg_status qg_matmul_bf16_prepare(matmul_bf16 *x, matmul_bf16_shape shape) {
    (void)x, (void)shape;
    return QG_ERROR_UNSUPPORTED;
}

qg_status qg_matmul_bf16_enter(matmul_bf16 *x, matmul_bf16_thread **out) {
    (void)x;
    *out = NULL;
    return QG_ERROR_UNSUPPORTED;
}

void qg_matmul_bf16_leave(matmul_bf16_thread *t) { (void)t; }

qg_status qg_matmul_bf16_run(matmul_bf16_thread *t, matmul_bf16_shape shape, const uint16_t *a,
                             const uint16_t *b, float *c) {
    (void)t, (void)shape, (void)a, (void)b, (void)c;
    return QG_ERROR_UNSUPPORTED;
}

#endif
