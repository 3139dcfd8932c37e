# The CUDA toolkit, optional. nvcc compiles kernels/ into a module that is loaded at run time; its
# headers are an oracle for number formats in tests. QG_REQUIRE_CUDA=1 in the environment makes a
# missing toolkit an error.

include(CheckCSourceCompiles)
include(CheckLanguage)

option(QG_CUDA "build the CUDA module where nvcc is there" ON)
set(QG_CUDA_SUMMARY "no: QG_CUDA is off")

# On Debian-like machines the toolkit is not in PATH.
find_program(QG_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(QG_NVCC)
set(hints $ENV{CUDA_PATH} $ENV{CUDA_HOME} /usr/local/cuda)
if(QG_NVCC)
    get_filename_component(toolkit ${QG_NVCC} REALPATH)
    get_filename_component(toolkit ${toolkit}/../.. ABSOLUTE)
    list(PREPEND hints ${toolkit})
    if(NOT CMAKE_CUDA_COMPILER)
        set(CMAKE_CUDA_COMPILER ${QG_NVCC})
    endif()
endif()

# Any GPU from Ada on: Ada by PTX, the others as code of their own. Before the language is enabled,
# or CMake takes an architecture without FP8.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90a-real 100a-real 120a-real 89-virtual)
endif()
if(QG_CUDA)
    set(QG_CUDA_SUMMARY "no: nvcc not found, kernels/ is not compiled")
    if(QG_NVCC)
        enable_language(CUDA)
        set(QG_CUDA_SUMMARY "${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}")
        if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
            set(QG_CUDA_SUMMARY "no: nvcc ${CMAKE_CUDA_COMPILER_VERSION} is older than 12.8")
        else()
            set(QG_HAVE_CUDA_MODULE TRUE)
            set(CMAKE_CUDA_STANDARD 17)
            set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
            foreach(flag -fmad=false -ftz=false -prec-div=true -prec-sqrt=true
                         -Xcompiler=-ffp-contract=off -Xcompiler=-Wall)
                add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:${flag}>)
            endforeach()
            if(QG_WERROR)
                add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
            endif()
        endif()
    endif()
endif()

find_path(QG_CUDA_INCLUDE_DIR cuda_fp8.h HINTS ${hints} PATH_SUFFIXES include)
mark_as_advanced(QG_CUDA_INCLUDE_DIR)
if(QG_CUDA_INCLUDE_DIR)
    set(CMAKE_REQUIRED_INCLUDES ${QG_CUDA_INCLUDE_DIR})
    check_c_source_compiles("#include <cuda_fp8.h>\n#include <cuda_fp6.h>\n#include <cuda_fp4.h>
int main(void) { return 0; }" QG_HAVE_CUDA_HEADERS)
    unset(CMAKE_REQUIRED_INCLUDES)
endif()
if(QG_CUDA_INCLUDE_DIR AND QG_HAVE_CUDA_HEADERS)
    set(QG_CUDA_HEADERS_SUMMARY ${QG_CUDA_INCLUDE_DIR})
else()
    set(QG_CUDA_HEADERS_SUMMARY "none: tests against them are left out")
endif()
if("$ENV{QG_REQUIRE_CUDA}" STREQUAL "1" AND QG_CUDA
   AND NOT (QG_HAVE_CUDA_MODULE AND QG_HAVE_CUDA_HEADERS))
    message(FATAL_ERROR "QG_REQUIRE_CUDA=1, but no CUDA toolkit >= 12.8 with nvcc and cuda_fp8.h "
                        "was found")
endif()
