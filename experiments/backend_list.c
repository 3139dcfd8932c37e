// The backends of the runtime's table by name, and which of them answer. See qg_backend_list.h.
#include <qg_backend_list.h>

#include <device_probe.h>
#include <qg_backend.h>

#include <string.h>

static bool is_cuda(const char *name) { return strcmp(name, "cuda") == 0; }

const char *qg_backend_named(size_t i) {
    const qg_backend *backend = qg_backend_at(i);
    return backend ? backend->name : NULL;
}

// Of cuda through a child process: its own answer would open the device here.
const char *qg_backend_unavailable(const char *name) {
    const qg_backend *backend = qg_backend_find(name);
    if (!backend)
        return "no such backend";
    if (!is_cuda(name))
        return backend->unavailable();
    const device_probe *probe = device_probe_cuda();
    return probe->answers ? NULL : qg_cuda_absence_text(probe->absence);
}

const char *qg_backend_why_unavailable(const char *name) {
    const char *short_reason = qg_backend_unavailable(name);
    return short_reason && is_cuda(name) ? device_probe_cuda()->reason : short_reason;
}

bool qg_backend_is_emulator(const char *name) { return strcmp(name, "emulator") == 0; }

bool qg_backend_multiplies(const char *name) {
    const qg_backend *backend = qg_backend_find(name);
    return !backend || backend->scaled_matmul;
}

bool qg_backend_is_remote(const char *name) { return is_cuda(name); }
