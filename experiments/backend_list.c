// The backends by name: those of the runtime's table, and those to come. See qg_backend_list.h.
#include <qg_backend_list.h>

#include <qg_backend.h>

#include <string.h>

static const char CUDA[] = "cuda";

// Named, so that asking for it is no mistake: a table without it is a build without it.
static bool lacks_cuda(void) { return !qg_backend_find(CUDA); }

const char *qg_backend_named(size_t i) {
    size_t count = 0;
    while (qg_backend_at(count))
        count++;
    if (i < count)
        return qg_backend_at(i)->name;
    return i == count && lacks_cuda() ? CUDA : NULL;
}

const char *qg_backend_listed(size_t i) {
    for (size_t b = 0; qg_backend_at(b); b++)
        if (!qg_backend_at(b)->unavailable() && i-- == 0)
            return qg_backend_at(b)->name;
    return NULL;
}

const char *qg_backend_unavailable(const char *name) {
    const qg_backend *backend = qg_backend_find(name);
    if (backend)
        return backend->unavailable();
    return strcmp(name, CUDA) == 0 ? "this version has no cuda backend" : "no such backend";
}

bool qg_backend_is_emulator(const char *name) { return strcmp(name, "emulator") == 0; }

bool qg_backend_multiplies(const char *name) {
    const qg_backend *backend = qg_backend_find(name);
    return !backend || backend->scaled_matmul;
}
