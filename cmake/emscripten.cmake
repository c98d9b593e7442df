# Toolchain file: the Emscripten that is active. An emsdk (EMSDK is set, or its em++ comes first in
# PATH) wins over Debian's package.
find_program(
  SERVECAST_EM_CONFIG em-config
  HINTS $ENV{EMSDK}/upstream/emscripten
  NO_CMAKE_FIND_ROOT_PATH)
if(NOT SERVECAST_EM_CONFIG)
  message(FATAL_ERROR "Emscripten not found: ./dev setup installs it, or activate an emsdk.")
endif()
execute_process(
  COMMAND ${SERVECAST_EM_CONFIG} EMSCRIPTEN_ROOT
  OUTPUT_VARIABLE EMSCRIPTEN_ROOT_PATH
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
include(${EMSCRIPTEN_ROOT_PATH}/cmake/Modules/Platform/Emscripten.cmake)
