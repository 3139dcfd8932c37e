# The floors of cmake/floors.txt as CMake targets.

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/floors.txt rows REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/floors.txt)
set(QG_FLOORS "") # the folders that exist, low to high
foreach(row IN LISTS rows)
    separate_arguments(row)
    list(POP_FRONT row folder)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
        get_filename_component(name ${folder} NAME)
        list(APPEND QG_FLOORS ${folder})
        set(QG_FOLDER_${name} ${folder})
        set(QG_BELOW_${name} ${row})
    endif()
endforeach()

# The include directories of a floor: its own and those of the floors that it may use, each as
# source folder and as build folder (generated headers).
function(qg_floor_includes out name)
    set(includes "")
    foreach(floor IN ITEMS ${name} LISTS QG_BELOW_${name})
        if(DEFINED QG_FOLDER_${floor})
            list(APPEND includes ${PROJECT_SOURCE_DIR}/${QG_FOLDER_${floor}}
                                 ${PROJECT_BINARY_DIR}/${QG_FOLDER_${floor}})
        endif()
    endforeach()
    set(${out} ${includes} PARENT_SCOPE)
endfunction()

# The C files of the current folder; a folder of headers alone gets one that includes them all.
function(qg_floor_sources out name)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    if(NOT sources)
        file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
        list(TRANSFORM headers REPLACE ".*/" "#include <")
        list(TRANSFORM headers APPEND ">\n")
        list(JOIN headers "" text)
        set(sources ${CMAKE_CURRENT_BINARY_DIR}/${name}_headers.c)
        file(CONFIGURE OUTPUT ${sources} CONTENT "${text}typedef int qg_${name}_headers;\n" @ONLY)
    endif()
    set(${out} ${sources} PARENT_SCOPE)
endfunction()

# qg_floor([OWN_LIBRARY] [LINK library...] [DEFINE macro...]): the current folder as target
# qg_<folder>: objects of the library quantgauge, or with OWN_LIBRARY a static library beside it.
# LINK names imported targets or system libraries.
function(qg_floor)
    cmake_parse_arguments(PARSE_ARGV 0 arg "OWN_LIBRARY" "" "LINK;DEFINE")
    get_filename_component(name ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    qg_floor_sources(sources ${name})
    qg_floor_includes(includes ${name})
    if(arg_OWN_LIBRARY)
        add_library(qg_${name} STATIC ${sources})
        # By its users alone: the include directories of quantgauge are all of its floors, and an
        # archive links nothing.
        target_link_libraries(qg_${name} INTERFACE quantgauge_static)
    else()
        add_library(qg_${name} OBJECT ${sources})
        set_property(GLOBAL APPEND PROPERTY QG_LIBRARY_FLOORS ${name})
        set_property(GLOBAL APPEND PROPERTY QG_LIBRARY_LINKS ${arg_LINK})
    endif()
    target_include_directories(qg_${name} PRIVATE ${includes})
    target_compile_definitions(qg_${name} PRIVATE ${arg_DEFINE})
    target_link_libraries(qg_${name} PRIVATE ${arg_LINK})
endfunction()
