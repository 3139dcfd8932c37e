# External libraries. What is missing is named with its Debian package; scripts/dependencies.sh
# installs them all.

find_program(QG_PKG_CONFIG NAMES pkg-config pkgconf)
if(NOT QG_PKG_CONFIG)
    message(FATAL_ERROR "pkg-config not found. Debian package: pkg-config")
endif()
set(PKG_CONFIG_EXECUTABLE ${QG_PKG_CONFIG} CACHE FILEPATH "pkg-config executable")
find_package(PkgConfig REQUIRED)

# qg_require(NAME package module...): PkgConfig::NAME from the first module that is there.
function(qg_require name package)
    pkg_search_module(${name} IMPORTED_TARGET GLOBAL ${ARGN})
    if(NOT ${name}_FOUND)
        list(JOIN ARGN " or " modules)
        message(FATAL_ERROR "${modules} not found by pkg-config. Debian package: ${package}")
    endif()
endfunction()

qg_require(XXHASH libxxhash-dev libxxhash)
qg_require(JANSSON libjansson-dev jansson)
qg_require(POPT libpopt-dev popt)
qg_require(HDF5 libhdf5-dev hdf5 hdf5-serial)
qg_require(ZLIB zlib1g-dev zlib)
if(BUILD_TESTING)
    qg_require(CHECK check check)
endif()

# Without OpenMP everything builds and runs on one thread.
option(QG_OPENMP "use OpenMP where the compiler has it" ON)
if(QG_OPENMP)
    find_package(OpenMP COMPONENTS C)
endif()
if(TARGET OpenMP::OpenMP_C)
    set(QG_OPENMP_TARGET OpenMP::OpenMP_C)
else()
    set(QG_OPENMP_TARGET "")
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Wno-unknown-pragmas>)
endif()
