# The CUDA toolkit, as far as the tests use it: its headers as an oracle for number formats, and
# nvcc to prove that the shared headers are CUDA C++ too. Both are optional.

include(CheckCSourceCompiles)

find_program(QG_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
set(hints $ENV{CUDA_PATH} $ENV{CUDA_HOME} /usr/local/cuda)
if(QG_NVCC)
    get_filename_component(toolkit ${QG_NVCC} REALPATH)
    get_filename_component(toolkit ${toolkit}/../.. ABSOLUTE)
    list(PREPEND hints ${toolkit})
endif()
find_path(QG_CUDA_INCLUDE_DIR cuda_fp8.h HINTS ${hints} PATH_SUFFIXES include)

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
if(QG_NVCC)
    set(QG_NVCC_SUMMARY ${QG_NVCC})
else()
    set(QG_NVCC_SUMMARY "none: test cuda_compiles_headers skipped")
endif()
if("$ENV{QG_REQUIRE_CUDA}" STREQUAL "1" AND NOT (QG_NVCC AND QG_HAVE_CUDA_HEADERS))
    message(FATAL_ERROR "QG_REQUIRE_CUDA=1, but no CUDA toolkit with nvcc and cuda_fp8.h was found")
endif()
