#include "testing/data_files.h"

#ifndef __EMSCRIPTEN__
#include <zlib.h>
#endif

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace servecast::testing {

std::string DataFolder(const char* variable, const char* beside) {
  const char* folder = std::getenv(variable);
  if (folder != nullptr && *folder != '\0') return folder;
  return std::string(SERVECAST_SOURCE_DIR) + "/../shared/" + beside;
}

#ifdef __EMSCRIPTEN__

std::optional<std::string> ReadFile(const std::string& path) {
  if (path.ends_with(".gz")) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in.good() || !text.good()) return std::nullopt;
  return text.str();
}

#else

std::optional<std::string> ReadFile(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return std::nullopt;
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16);
  int got = 0;
  while ((got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  const bool good = got == 0 && gzclose(file) == Z_OK;
  if (!good) return std::nullopt;
  return text;
}

#endif

}  // namespace servecast::testing
