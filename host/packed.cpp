// See packed.h.
#include "host/packed.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <vector>

#include "host/files.h"

namespace servecast {
namespace {

constexpr int kRaw = -MAX_WBITS;  // deflate without a header

// zlib's structure has no const input, and writes none.
Bytef* InputOf(std::string_view text) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
}

}  // namespace

std::optional<Issue> ReadPieces(const std::string& path, std::size_t most_bytes,
                                const std::function<bool(std::string_view)>& take) {
  const gzFile file = path == "-" ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path.c_str(), "rb");
  if (file == nullptr) return Issue{path, kCannotOpen};
  std::vector<char> buffer(std::size_t{1} << 18);
  std::optional<Issue> issue;
  std::size_t total = 0;
  bool enough = false;
  while (!issue && !enough) {
    const int got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()));
    if (got == 0) break;
    if (got < 0) {
      issue = Issue{path, kDamagedFile};
      break;
    }
    total += static_cast<std::size_t>(got);
    if (total > most_bytes) {
      issue = Issue{path, TooLargeFile(most_bytes)};
    } else {
      enough = !take({buffer.data(), static_cast<std::size_t>(got)});
    }
  }
  // A gzip file that ends too early only shows now.
  if (gzclose(file) == Z_BUF_ERROR && !issue && !enough) issue = Issue{path, kShortFile};
  return issue;
}

Inflating Inflate(std::string_view packed, std::size_t most_bytes, std::string& text) {
  z_stream stream{};
  if (inflateInit2(&stream, kRaw) != Z_OK) return Inflating::kDamaged;
  stream.next_in = InputOf(packed);
  stream.avail_in = static_cast<uInt>(packed.size());
  // One byte more than there may be, so that a text that is too long shows.
  text.assign(most_bytes + 1, '\0');
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const int end = inflate(&stream, Z_FINISH);
  const std::size_t size = text.size() - stream.avail_out;
  const bool all = end == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (size > most_bytes) return Inflating::kTooLong;
  text.resize(size);
  return all ? Inflating::kWhole : Inflating::kDamaged;
}

std::string Deflated(std::string_view text) {
  z_stream stream{};
  constexpr int kMemory = 9;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kRaw, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return "";
  }
  stream.next_in = InputOf(text);
  stream.avail_in = static_cast<uInt>(text.size());
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace servecast
