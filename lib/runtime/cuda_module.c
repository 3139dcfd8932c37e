// Finds, checks and loads the CUDA module, once a process. See qg_cuda.h.
//
// The module is never unloaded: the CUDA runtime and cuBLASLt leave threads and exit handlers behind.
// Every way to be without it has a line of its own, which says what to do.
#include <qg_cuda.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FILE_NAME[] = "quantgauge_cuda.so";

enum { PATH_SIZE = 4096, REASON_SIZE = 3 * PATH_SIZE };

static struct {
    pthread_once_t once;
    const qg_cuda_module *module; // NULL: absent
    pid_t process;                // that opened it
    qg_cuda_device device;
    qg_cuda_absence absence;
    char reason[REASON_SIZE];
} opened = {.once = PTHREAD_ONCE_INIT};

const char *qg_cuda_absence_text(qg_cuda_absence absence) {
    static const char *const texts[] = {
#define ABSENCE_TEXT(ID, text) text,
        QG_CUDA_ABSENCE_TABLE(ABSENCE_TEXT)
#undef ABSENCE_TEXT
    };
    return absence >= 0 && absence < QG_CUDA_ABSENT_COUNT ? texts[absence] : "";
}

__attribute__((format(printf, 2, 3))) static void set_absent(qg_cuda_absence absence,
                                                             const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(opened.reason, sizeof opened.reason, format, values);
    va_end(values);
    for (char *c = opened.reason; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    opened.absence = absence;
}

// ---------------------------------------------------------------------------------------- the file

// Drops the last component: "/a/b" becomes "/a".
static void cut_component(char *path) {
    char *slash = strrchr(path, '/');
    *(slash ? slash : path) = 0;
}

static bool find_program(char folder[PATH_SIZE]) {
    ssize_t length = readlink("/proc/self/exe", folder, PATH_SIZE - 1);
    folder[length > 0 ? length : 0] = 0;
    cut_component(folder);
    return *folder != 0;
}

// Where libquantgauge.so lies; nothing where the library is linked statically.
static bool find_library(char folder[PATH_SIZE]) {
    static const char prefix[] = "libquantgauge.so";
    Dl_info info;
    if (!dladdr(&opened, &info) || !info.dli_fname || !strrchr(info.dli_fname, '/') ||
        strncmp(strrchr(info.dli_fname, '/') + 1, prefix, sizeof prefix - 1) != 0)
        return false;
    snprintf(folder, PATH_SIZE, "%s", info.dli_fname);
    cut_component(folder);
    return true;
}

// path: FOLDER/RELATIVE/quantgauge_cuda.so, "../" resolved by name. Whether there is such a file; if
// not, it is added to what was tried.
static bool try_place(const char *folder, const char *relative, char path[PATH_SIZE], char *tried,
                      size_t size) {
    char base[PATH_SIZE];
    snprintf(base, sizeof base, "%s", folder);
    for (; strncmp(relative, "../", 3) == 0; relative += 3)
        cut_component(base);
    if (snprintf(path, PATH_SIZE, "%s/%s/%s", base, relative, FILE_NAME) >= PATH_SIZE)
        return false;
    if (access(path, F_OK) == 0)
        return true;
    size_t length = strlen(tried);
    if (!strstr(tried, path))
        snprintf(tried + length, size - length, "%s%s", length ? " and " : "", path);
    return false;
}

// A build folder is laid out as QG_CUDA_BUILD_PLACE says, an installed tree as QG_CUDA_PLACE; both
// relative to the program. Beside the shared library it is one folder below.
static bool find_module(char path[PATH_SIZE]) {
    char folder[PATH_SIZE], tried[2 * PATH_SIZE] = "";
    if (find_program(folder) &&
        (try_place(folder, QG_CUDA_BUILD_PLACE, path, tried, sizeof tried) ||
         try_place(folder, QG_CUDA_PLACE, path, tried, sizeof tried)))
        return true;
    if (find_library(folder) && try_place(folder, "quantgauge", path, tried, sizeof tried))
        return true;
    set_absent(QG_CUDA_ABSENT_NO_MODULE,
               "the CUDA module was not found: there is no %s; build with nvcc and QG_CUDA=ON, or "
               "name the "
               "module in QG_CUDA_MODULE",
               tried);
    return false;
}

static bool name_module(const char *named, char path[PATH_SIZE]) {
    // Without a slash dlopen would look through the library path.
    const char *here = strchr(named, '/') ? "" : "./";
    struct stat status;
    bool is_there =
        snprintf(path, PATH_SIZE, "%s%s", here, named) < PATH_SIZE && stat(path, &status) == 0;
    if (is_there && S_ISREG(status.st_mode))
        return true;
    // A pipe would keep dlopen waiting.
    set_absent(QG_CUDA_ABSENT_NO_MODULE,
               "the CUDA module was not found: QG_CUDA_MODULE names %.1000s, and %s", named,
               is_there ? "that is no regular file" : "there is no such file");
    return false;
}

// ----------------------------------------------------------------------------------------- loading

static const qg_cuda_module *load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        set_absent(QG_CUDA_ABSENT_NO_MODULE, "the CUDA module cannot be loaded: %s",
                   why ? why : path);
        return NULL;
    }
    qg_cuda_module_function function;
    void *symbol = dlsym(library, QG_CUDA_SYMBOL);
    _Static_assert(sizeof function == sizeof symbol, "POSIX: a function fits an object pointer");
    memcpy(&function, &symbol, sizeof function);
    if (symbol)
        return function();
    set_absent(QG_CUDA_ABSENT_NO_MODULE, "%s is no CUDA module: it has no symbol %s", path,
               QG_CUDA_SYMBOL);
    return NULL;
}

static bool is_ours(const char *path, const qg_cuda_module *module) {
    if (module->abi != QG_CUDA_ABI) {
        set_absent(
            QG_CUDA_ABSENT_WRONG_ABI,
            "the CUDA module %s has ABI %d, this program needs %d: build both from one source",
            path, (int)module->abi, QG_CUDA_ABI);
        return false;
    }
    if (module->size != (int32_t)sizeof *module) {
        set_absent(QG_CUDA_ABSENT_WRONG_ABI,
                   "the CUDA module %s has a table of %d bytes, this program's has %d, both of ABI "
                   "%d: build both from one source",
                   path, (int)module->size, (int)sizeof *module, QG_CUDA_ABI);
        return false;
    }
    return true;
}

// ------------------------------------------------------------------------------------------ device

static void version_text(int32_t version, char text[24]) {
    if (version > 0)
        snprintf(text, 24, "%d.%d", (int)version / 1000, (int)version % 1000 / 10);
    else
        snprintf(text, 24, "none");
}

static void explain(qg_cuda_absence absence, const qg_cuda_error *error) {
    const qg_cuda_device *d = &opened.device;
    const char *text = qg_cuda_absence_text(absence);
    char driver[24], runtime[24];
    version_text(d->driver, driver);
    version_text(d->runtime, runtime);
    switch (absence) {
    case QG_CUDA_ABSENT_NO_DRIVER:
        set_absent(absence, "%s: the runtime is of CUDA %s, the driver of %s; install or update it",
                   text, runtime, driver);
        return;
    case QG_CUDA_ABSENT_STUB_DRIVER:
        set_absent(absence, "%s: take its folder out of LD_LIBRARY_PATH", text);
        return;
    case QG_CUDA_ABSENT_NO_DEVICE:
        set_absent(absence, "%s: nvidia-smi and CUDA_VISIBLE_DEVICES may tell why", text);
        return;
    case QG_CUDA_ABSENT_NO_IMAGE:
        set_absent(absence, "%s (%s, sm_%d): build it with CMAKE_CUDA_ARCHITECTURES=%d-real", text,
                   d->name, (int)d->architecture, (int)d->architecture);
        return;
    case QG_CUDA_ABSENT_NO_MODULE:
    case QG_CUDA_ABSENT_WRONG_ABI: set_absent(absence, "%s", text); return;
    default:
        set_absent(QG_CUDA_ABSENT_FAILED, "%s: %s", qg_cuda_absence_text(QG_CUDA_ABSENT_FAILED),
                   error->text);
    }
}

static void open_module(void) {
    static char path[PATH_SIZE];
    const char *named = getenv("QG_CUDA_MODULE");
    qg_cuda_error error = {""};
    if (!(named && *named ? name_module(named, path) : find_module(path)))
        return;
    const qg_cuda_module *module = load(path);
    if (!module || !is_ours(path, module))
        return;
    qg_cuda_absence absence = (module->open)(&opened.device, &error);
    if (absence != QG_CUDA_ABSENT_NONE) {
        explain(absence, &error);
        return;
    }
    opened.process = getpid();
    opened.module = module;
}

static void tell(qg_cuda_absence absence, const char *reason, qg_cuda_absence *absence_out,
                 const char **reason_out) {
    if (absence_out)
        *absence_out = absence;
    if (reason_out)
        *reason_out = reason;
}

const qg_cuda_module *qg_cuda_open(const qg_cuda_device **device, qg_cuda_absence *absence,
                                   const char **reason) {
    pthread_once(&opened.once, open_module);
    bool is_there = opened.module != NULL;
    tell(opened.absence, opened.reason, absence, reason);
    // A device's context does not survive fork.
    if (is_there && opened.process != getpid()) {
        is_there = false;
        tell(QG_CUDA_ABSENT_FAILED, "the CUDA module was opened before this process was forked",
             absence, reason);
    }
    if (device)
        *device = is_there ? &opened.device : NULL;
    return is_there ? opened.module : NULL;
}

const char *qg_cuda_unavailable(void) {
    const char *reason;
    return qg_cuda_open(NULL, NULL, &reason) ? NULL : reason;
}
