# Debian's cross compiler for Linux on arm64 (crossbuild: g++-aarch64-linux-gnu, zlib1g-dev:arm64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# What is of no architecture (nlohmann_json, fmt's headers, presets' tools) lies where Debian has it.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
