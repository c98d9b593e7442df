# How our own code is compiled. `servecast_flags` is linked by every target of ours;
# `servecast_base_flags` (what changes an ABI or a result) by third-party sources as well.

add_library(servecast_base_flags INTERFACE)
target_compile_options(servecast_base_flags INTERFACE -ffp-contract=off -fno-exceptions -fno-rtti)
target_link_options(servecast_base_flags INTERFACE -fno-exceptions -fno-rtti)

add_library(servecast_flags INTERFACE)
target_link_libraries(servecast_flags INTERFACE servecast_base_flags)
target_compile_options(
  servecast_flags
  INTERFACE -Wall
            -Wextra
            -Wconversion
            # g++ leaves it out of -Wconversion for C++, clang does not: both alike.
            -Wno-sign-conversion
            -Wdouble-promotion
            -Wshadow
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wcast-align
            -Wimplicit-fallthrough
            -Wundef
            -Wvla)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 at -O3 sees overlapping copies in its own std::string (GCC bug 105651).
  target_compile_options(servecast_flags INTERFACE -Wno-restrict)
endif()
if(SERVECAST_WERROR)
  target_compile_options(servecast_flags INTERFACE -Werror)
endif()

if(SERVECAST_SANITIZE)
  # vptr needs RTTI, which no target of ours has. Of a target with SERVECAST_UNWATCHED
  # only the containers' indices are checked.
  set(sanitize -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all)
  if(NOT SERVECAST_FUZZ)
    # They would be a fourth of the time to compile. The address sanitizer sees a null pointer that is used and most of
    # what lies beyond an object; `./dev fuzz` has them.
    list(APPEND sanitize -fno-sanitize=null,alignment,object-size)
  endif()
  target_compile_options(servecast_flags
                         INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:SERVECAST_UNWATCHED>>>:${sanitize}>
                                   -fno-omit-frame-pointer)
  target_link_options(servecast_flags INTERFACE ${sanitize})
  target_compile_definitions(servecast_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()

if(SERVECAST_FUZZ)
  # Coverage for libFuzzer; and a double that its integer cannot hold is undefined, too, though
  # clang's "undefined" leaves it out.
  target_compile_options(servecast_flags INTERFACE -fsanitize=fuzzer-no-link,float-cast-overflow
                                                   -fno-sanitize-recover=float-cast-overflow)
endif()

if(EMSCRIPTEN)
  # A stack as on a small thread, in the words of both Emscripten ages.
  if(EMSCRIPTEN_VERSION VERSION_LESS 3.1.25)
    set(stack -sTOTAL_STACK=1MB)
  else()
    set(stack -sSTACK_SIZE=1MB)
  endif()
  target_link_options(servecast_base_flags INTERFACE -sALLOW_MEMORY_GROWTH=1
                      -sMAXIMUM_MEMORY=4GB ${stack})
  # Of programs for node, which are started as any other: arguments, files and environment are those of the process.
  set(SERVECAST_NODE_LINK_OPTIONS -sENVIRONMENT=node -sNODERAWFS=1 -sEXIT_RUNTIME=1
                                  "SHELL:--pre-js ${CMAKE_CURRENT_LIST_DIR}/node_environment.js")
  # The linker's JavaScript optimiser needs acorn. An emsdk carries it; Debian keeps it in a
  # folder where node does not look by itself.
  if(NOT EXISTS ${EMSCRIPTEN_ROOT_PATH}/node_modules/acorn AND EXISTS /usr/share/nodejs/acorn)
    set_property(GLOBAL PROPERTY RULE_LAUNCH_LINK
                                 "${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs")
  endif()
endif()

# servecast_precompile(TARGET HEADER... [FROM OTHER]): the target's sources begin with these headers
# and the library's that most of ours include, read once: with OTHER, which has the same flags, by that
# one. Only headers that are not ours, for a change of ours would compile everything anew. Only clang
# and em++ have them: of a precompiled header they load what a source uses, g++ all, and g++ 12 with -O3 takes
# strings for too long when their header was, and warns. The preset clang has none and shows that every
# file includes what it uses.
function(servecast_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FROM" "")
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  if(arg_FROM)
    target_precompile_headers(${target} REUSE_FROM ${arg_FROM})
    return()
  endif()
  target_precompile_headers(
    ${target}
    PRIVATE
    <algorithm>
    <array>
    <cmath>
    <cstdint>
    <cstdlib>
    <functional>
    <map>
    <memory>
    <optional>
    <span>
    <string>
    <string_view>
    <utility>
    <variant>
    <vector>
    <fmt/format.h>
    <nlohmann/json.hpp>
    ${arg_UNPARSED_ARGUMENTS})
endfunction()

# servecast_unite(TARGET [SIZE n] [COLD regex COLD_OPTION option] SOURCE...): with SERVECAST_UNITE, so many sources of
# a folder, or 8, are compiled as one, which halves a build from nothing: most of it is the reading of the library's
# headers. Names in the anonymous namespaces of a folder's files must then differ. Sources that match COLD are apart, with
# that option more. Every file stays alone in clang, which shows that it stands by itself.
function(servecast_unite target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SIZE;COLD;COLD_OPTION" "")
  if(NOT arg_SIZE)
    set(arg_SIZE 8)
  endif()
  if(NOT SERVECAST_UNITE)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes a source that is included for a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(folder ${source} DIRECTORY)
    # A group's place among the others hangs on its name, so the name must not hang on where the project lies.
    string(REPLACE "${PROJECT_SOURCE_DIR}/" "" folder "${folder}")
    string(MAKE_C_IDENTIFIER "in_${folder}" folder)
    # Policies are written from each other, with the same names in namespaces of their own: a kind is a group. So is
    # what a reference of a scheduler is made of.
    if(source MATCHES "(policies)/([a-z]+)_|(testing)/(epp|pd|scheduled|sglang|trtllm)_")
      set_source_files_properties(
        ${source} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1}${CMAKE_MATCH_3}_${CMAKE_MATCH_2}${CMAKE_MATCH_4})
      continue()
    endif()
    if(arg_COLD AND source MATCHES "${arg_COLD}")
      string(APPEND folder _cold)
    endif()
    math(EXPR group "0${${folder}} / ${arg_SIZE}")
    math(EXPR ${folder} "0${${folder}} + 1")
    set(group ${folder}_${group})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    # An option of a source would leave it alone, so what is written of its group has it.
    if(folder MATCHES "_cold$")
      set_source_files_properties(
        ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${group}_cxx.cxx
        PROPERTIES COMPILE_OPTIONS "${arg_COLD_OPTION}" SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()
