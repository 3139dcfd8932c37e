# Run at every build (cmake -DSOURCE= -DTEMPLATE= -DOUTPUT= -P): writes qg_build_info.h, only when
# commit or state of the tree changed. Outside a git checkout of its own the commit is "unknown".

set(QG_BUILD_COMMIT unknown)
set(QG_BUILD_DIRTY 0)

find_program(git git NO_CACHE)
if(git)
    execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-prefix
                    OUTPUT_VARIABLE prefix RESULT_VARIABLE failed ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed AND prefix STREQUAL "") # not unpacked inside another project's checkout
        execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --verify HEAD
                        OUTPUT_VARIABLE commit RESULT_VARIABLE failed ERROR_QUIET
                        OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(NOT failed)
            set(QG_BUILD_COMMIT ${commit})
            # What a binary is made of, untracked files included: they are compiled too.
            execute_process(COMMAND ${git} --no-optional-locks -C ${SOURCE} status --porcelain
                                    -- CMakeLists.txt cmake lib kernels experiments
                            OUTPUT_VARIABLE changes ERROR_QUIET)
            if(changes)
                set(QG_BUILD_DIRTY 1)
            endif()
        endif()
    endif()
endif()

configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
