// Finds, loads and checks cuBLASLt.
#include <product_library.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qg_status product_fail(qg_cuda_error *error, qg_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}

static qg_status status_of(int code) {
    switch (code) {
    case LT_STATUS_SUCCESS: return QG_OK;
    case LT_STATUS_NOT_SUPPORTED: return QG_ERROR_UNSUPPORTED;
    case LT_STATUS_ALLOC_FAILED: return QG_ERROR_MEMORY;
    default: return QG_ERROR_ENVIRONMENT;
    }
}

qg_status lt_check(const lt_library *lt, int code, const char *call, qg_cuda_error *error) {
    if (code == LT_STATUS_SUCCESS)
        return QG_OK;
    const char *name = lt->status_name(code);
    return product_fail(error, status_of(code), "%s: %s (%d)", call, name ? name : "status", code);
}

// NULL with the reason in lt->missing.
static void *open_object(lt_library *lt) {
    static const char *const usual[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    const char *given = getenv("QG_CUBLASLT");
    if (given && given[0]) {
        void *object = dlopen(given, RTLD_NOW | RTLD_LOCAL);
        if (!object)
            snprintf(lt->missing, sizeof lt->missing, "QG_CUBLASLT: %s", dlerror());
        return object;
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        void *object = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
        if (object)
            return object;
    }
    snprintf(lt->missing, sizeof lt->missing, "no libcublasLt.so.13, .12 or .so was found");
    return NULL;
}

// ISO C has no conversion from void * to a function; its bytes are one.
static bool find_symbol(lt_library *lt, void *object, const char *symbol, void *field,
                        size_t bytes) {
    void *address = dlsym(object, symbol);
    if (!address) {
        snprintf(lt->missing, sizeof lt->missing, "the library has no %s", symbol);
        return false;
    }
    memcpy(field, &address, bytes);
    return true;
}

static bool find_symbols(lt_library *lt, void *object) {
#define LT_FUNCTION_FIND(field, symbol, type, parameters)                                          \
    if (!find_symbol(lt, object, symbol, &lt->field, sizeof lt->field))                            \
        return false;
    LT_FUNCTION_TABLE(LT_FUNCTION_FIND)
#undef LT_FUNCTION_FIND
    return true;
}

bool lt_load(lt_library *lt) {
    memset(lt, 0, sizeof *lt);
    void *object = open_object(lt);
    return object && find_symbols(lt, object);
}

void lt_open(lt_library *lt) {
    if (!lt_load(lt))
        return;
    int64_t version = (int64_t)lt->version();
    if (version < LT_VERSION_LEAST) {
        snprintf(lt->missing, sizeof lt->missing, "its version %d.%d is below 12.8",
                 (int)(version / 10000), (int)(version / 100 % 100));
        return;
    }
    qg_cuda_error error;
    if (lt_check(lt, lt->create(&lt->handle), "cublasLtCreate", &error) != QG_OK) {
        memcpy(lt->missing, error.text, sizeof lt->missing);
        return;
    }
    lt->loaded = version;
}

void lt_close(lt_library *lt) {
    if (lt->handle)
        (void)lt->destroy(lt->handle);
    memset(lt, 0, sizeof *lt);
}
