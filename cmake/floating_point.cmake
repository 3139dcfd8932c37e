# Floating-point discipline: results are the same bytes on every machine, so nothing may
# re-associate, fuse or flush, neither when compiling nor when linking (fast-math links start-up
# code that sets FTZ).

set(unsafe fast-math Ofast unsafe-math-optimizations associative-math reciprocal-math
           finite-math-only fp-contract=fast use_fast_math)
foreach(variable CMAKE_C_FLAGS CMAKE_C_FLAGS_DEBUG CMAKE_C_FLAGS_RELEASE
                 CMAKE_C_FLAGS_RELWITHDEBINFO CMAKE_C_FLAGS_MINSIZEREL CMAKE_CXX_FLAGS CMAKE_CUDA_FLAGS
                 CMAKE_EXE_LINKER_FLAGS CMAKE_SHARED_LINKER_FLAGS)
    foreach(word IN LISTS unsafe)
        if(" ${${variable}} " MATCHES " --?f?${word} ")
            message(FATAL_ERROR "${variable} holds ${word} (\"${${variable}}\"): quantgauge does "
                                "not give correct results with it. Remove it, also from CFLAGS.")
        endif()
    endforeach()
endforeach()

add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>)
