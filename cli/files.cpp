// See files.h.
#include "files.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

namespace servecast {

Result<std::string> ReadFile(const std::string& path, std::size_t most_bytes) {
  const gzFile file = path == "-" ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path.c_str(), "rb");
  if (file == nullptr) return Issue{path, kCannotOpen};
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16);
  std::optional<Issue> issue;
  while (!issue) {
    const int got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()));
    if (got == 0) break;
    if (got < 0) {
      issue = Issue{path, "cannot be read: damaged gzip, or not a file"};
    } else if (text.size() + static_cast<std::size_t>(got) > most_bytes) {
      issue = Issue{path, fmt::format("larger than {} MiB when decompressed", most_bytes >> 20)};
    } else {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  // A gzip file that ends too early only shows now.
  if (gzclose(file) == Z_BUF_ERROR && !issue) issue = Issue{path, "the gzip data ends too early"};
  if (issue) return *issue;
  return text;
}

bool WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (file.good()) return true;
  fmt::print(stderr, "{}: cannot be written\n", path);
  return false;
}

std::vector<std::string> FilesBelow(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    paths.push_back(at->path().lexically_relative(folder).generic_string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace servecast
