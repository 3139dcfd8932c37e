# The libraries that multiply plain matrices for lib/runtime, each optional: oneDNN (BF16) and
# OpenBLAS (binary32). Sets QG_BLAS_LINKS and QG_BLAS_DEFINITIONS.
include(CheckCSourceCompiles)

option(QG_ONEDNN "multiply BF16 with oneDNN where it is there" ON)
option(QG_OPENBLAS "multiply binary32 with OpenBLAS where it is there" ON)
if(QG_PARTS STREQUAL "device")
    set(QG_ONEDNN OFF)
    set(QG_OPENBLAS OFF)
endif()
set(QG_BLAS_LINKS "")
set(QG_BLAS_DEFINITIONS "")
set(QG_ONEDNN_SUMMARY "no: BF16 products in FP32. Debian package: libdnnl-dev")
set(QG_OPENBLAS_SUMMARY "no: FP32 products by a loop. Debian package: libopenblas-dev")

# Its threads must be OpenMP's, which qg_matmul_options.threads governs.
if(QG_ONEDNN AND QG_OPENMP_TARGET)
    find_path(QG_ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h)
    find_library(QG_ONEDNN_LIBRARY dnnl)
    mark_as_advanced(QG_ONEDNN_INCLUDE_DIR QG_ONEDNN_LIBRARY)
    if(QG_ONEDNN_INCLUDE_DIR AND QG_ONEDNN_LIBRARY)
        set(CMAKE_REQUIRED_INCLUDES ${QG_ONEDNN_INCLUDE_DIR})
        check_c_source_compiles("#include <oneapi/dnnl/dnnl.h>
#if DNNL_CPU_RUNTIME != DNNL_RUNTIME_OMP || DNNL_VERSION_MAJOR < 2 || DNNL_VERSION_MAJOR > 3
#error
#endif
int main(void) { return 0; }" QG_ONEDNN_USABLE)
        unset(CMAKE_REQUIRED_INCLUDES)
    endif()
    if(QG_ONEDNN_USABLE)
        set(QG_ONEDNN_SUMMARY ${QG_ONEDNN_LIBRARY})
        # By name where the linker finds it: installed files name no path of this machine then.
        get_filename_component(folder ${QG_ONEDNN_LIBRARY} DIRECTORY)
        if(folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
            list(APPEND QG_BLAS_LINKS dnnl)
        else()
            list(APPEND QG_BLAS_LINKS ${QG_ONEDNN_LIBRARY})
        endif()
        list(APPEND QG_BLAS_DEFINITIONS QG_HAVE_ONEDNN=1)
    endif()
endif()

if(QG_OPENBLAS)
    pkg_search_module(OPENBLAS IMPORTED_TARGET GLOBAL openblas)
    if(OPENBLAS_FOUND)
        set(QG_OPENBLAS_SUMMARY ${OPENBLAS_VERSION})
        list(APPEND QG_BLAS_LINKS PkgConfig::OPENBLAS)
        list(APPEND QG_BLAS_DEFINITIONS QG_HAVE_OPENBLAS=1)
    endif()
endif()
