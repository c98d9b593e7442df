# Third-party code: nlohmann_json and fmt (by their headers, in both worlds), GoogleTest (from
# source), zlib (the native commands only), libcurl (servecast-observe only; observe/CMakeLists.txt).
#
# The headers are reached through a private folder of links: em++ must not see /usr/include, which
# holds the headers of another C library.

set(deps_include ${PROJECT_BINARY_DIR}/deps/include)
file(MAKE_DIRECTORY ${deps_include})
foreach(header nlohmann/json.hpp fmt/format.h)
  get_filename_component(folder ${header} DIRECTORY)
  find_path(
    SERVECAST_${folder}_INCLUDE ${header}
    HINTS $ENV{SERVECAST_DEPS}/include
    PATHS /usr/include /usr/local/include /opt/homebrew/include
    NO_CMAKE_FIND_ROOT_PATH)
  if(NOT SERVECAST_${folder}_INCLUDE)
    message(FATAL_ERROR "${header} not found. ./dev setup installs it (Debian: "
                        "nlohmann-json3-dev libfmt-dev; Homebrew: nlohmann-json fmt).")
  endif()
  file(CREATE_LINK ${SERVECAST_${folder}_INCLUDE}/${folder} ${deps_include}/${folder} SYMBOLIC)
endforeach()

add_library(servecast_deps INTERFACE)
target_include_directories(servecast_deps SYSTEM INTERFACE ${deps_include})
# JSON_NOEXCEPTION: a bad document must come back as a value; nlohmann then aborts on misuse.
target_compile_definitions(servecast_deps INTERFACE FMT_STATIC_THOUSANDS_SEPARATOR=0x2c FMT_USE_FLOAT=0
                                                    FMT_USE_LONG_DOUBLE=0 FMT_USE_INT128=0 JSON_NOEXCEPTION
                                                    JSON_DIAGNOSTICS=0)
set(SERVECAST_FMT_SOURCE ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
add_library(servecast_fmt STATIC ${SERVECAST_FMT_SOURCE})
target_include_directories(servecast_fmt SYSTEM PRIVATE ${deps_include})
target_compile_definitions(servecast_fmt PRIVATE $<TARGET_PROPERTY:servecast_deps,INTERFACE_COMPILE_DEFINITIONS>)
target_link_libraries(servecast_fmt PRIVATE servecast_base_flags)
target_link_libraries(servecast_deps INTERFACE servecast_fmt)

function(servecast_find_googletest)
  find_path(
    SERVECAST_GOOGLETEST src/gtest-all.cc
    HINTS $ENV{SERVECAST_GOOGLETEST_DIR}/googletest
    PATHS /usr/src/googletest/googletest
    NO_CMAKE_FIND_ROOT_PATH)
endfunction()

# GoogleTest from its sources: the prebuilt library has exceptions and RTTI, and there is none for
# wasm. Not optimised: compiling it would take longer than running it.
function(servecast_add_googletest)
  add_library(servecast_googletest STATIC EXCLUDE_FROM_ALL ${SERVECAST_GOOGLETEST}/src/gtest-all.cc
                                          ${SERVECAST_GOOGLETEST}/src/gtest_main.cc)
  target_include_directories(servecast_googletest SYSTEM PUBLIC ${SERVECAST_GOOGLETEST}/include)
  target_include_directories(servecast_googletest PRIVATE ${SERVECAST_GOOGLETEST})
  target_compile_definitions(servecast_googletest PUBLIC GTEST_HAS_PTHREAD=0)
  target_compile_options(servecast_googletest PRIVATE -w -O0 -g0)
  target_link_libraries(servecast_googletest PUBLIC servecast_base_flags)
endfunction()
