// See results_hdf5_internal.h.
#include <results_hdf5_internal.h>

#include <stdio.h>
#include <string.h>

qg_hdf5_silence qg_hdf5_silence_begin(void) {
    qg_hdf5_silence saved = {0};
    H5Eget_auto2(H5E_DEFAULT, &saved.function, &saved.context);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return saved;
}

void qg_hdf5_silence_restore(qg_hdf5_silence saved) {
    H5Eset_auto2(H5E_DEFAULT, saved.function, saved.context);
}

// Of a failed system call HDF5 tells the time, the buffer's address and more: its message will do.
static void shorten(const char *description, char *reason) {
    static const char before[] = "error message = '";
    const char *message = strstr(description, before);
    snprintf(reason, QG_HDF5_REASON_SIZE, "%s", message ? message + strlen(before) : description);
    if (message)
        reason[strcspn(reason, "'")] = 0;
}

static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *reason) {
    if (n == 0 && error->desc)
        shorten(error->desc, reason);
    return 0;
}

void qg_hdf5_reason(char reason[QG_HDF5_REASON_SIZE]) {
    snprintf(reason, QG_HDF5_REASON_SIZE, "HDF5 gives no reason");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, reason);
}

hid_t qg_hdf5_file_access(void) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
#if H5_VERSION_GE(1, 10, 7)
    if (access >= 0)
        H5Pset_file_locking(access, false, true);
#endif
    return access;
}

hid_t qg_hdf5_text_type(size_t width) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && (H5Tset_size(type, width) < 0 || H5Tset_strpad(type, H5T_STR_NULLPAD) < 0 ||
                      H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        H5Tclose(type);
        return -1;
    }
    return type;
}

hid_t qg_hdf5_number_type(qg_column_type type) {
    switch (type) {
    case QG_COLUMN_F64: return H5T_NATIVE_DOUBLE;
    case QG_COLUMN_I64: return H5T_NATIVE_INT64;
    case QG_COLUMN_U64: return H5T_NATIVE_UINT64;
    default: return H5T_NATIVE_UINT8;
    }
}
