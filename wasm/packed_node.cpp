// host/packed.h under node. Emscripten on a machine without a network has no zlib, and node brings
// its own.
#include <emscripten.h>

#include <cstdio>
#include <memory>

#include "host/files.h"
#include "host/packed.h"

namespace servecast {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

constexpr int kNodeDamaged = -1, kNodeShort = -2, kNodeTooLong = -3;

// Keeps what `how` makes of the bytes for TakeKept(), and returns its size, or one of the three
// above. `how`: 0 gzip, 1 raw deflate to be unpacked, 2 to be packed.
EM_JS(int, ServecastZlib, (int how, const char* bytes, int size, double most), {
  const zlib = require("zlib");
  const given = HEAPU8.subarray(bytes, bytes + size);
  try {
    if (how == 2) {
      Module["kept"] = zlib.deflateRawSync(given, {level : 9, memLevel : 9});
    } else if (how == 1) {
      const {buffer, engine} = zlib.inflateRawSync(given, {maxOutputLength : most, info : true});
      if (engine.bytesWritten != size) return -1;
      Module["kept"] = buffer;
    } else {
      Module["kept"] = zlib.gunzipSync(given, {maxOutputLength : most});
    }
    return Module["kept"].length;
  } catch (error) {
    if (error.code == "ERR_BUFFER_TOO_LARGE") return -3;
    return error.code == "Z_BUF_ERROR" ? -2 : -1;
  }
});
EM_JS(void, ServecastKept, (char* to), {
  HEAPU8.set(Module["kept"], to);
  Module["kept"] = null;
});

int Kept(int size, std::string& text) {
  if (size < 0) return size;
  text.resize(static_cast<std::size_t>(size));
  ServecastKept(text.data());
  return 0;
}

int ByNode(int how, std::string_view bytes, std::size_t most_bytes, std::string& text) {
  return Kept(ServecastZlib(how, bytes.data(), static_cast<int>(bytes.size()),
                            static_cast<double>(most_bytes)),
              text);
}

}  // namespace

std::optional<Issue> ReadPieces(const std::string& path, std::size_t most_bytes,
                                const std::function<bool(std::string_view)>& take) {
  const std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin
                                                               : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return Issue{path, kCannotOpen};
  std::string buffer(std::size_t{1} << 18, '\0'), packed;
  std::size_t total = 0;
  bool gzip = false;
  for (;;) {
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (got == 0) break;
    const std::string_view piece(buffer.data(), got);
    if (total == 0) gzip = piece.substr(0, 2) == "\x1f\x8b";
    total += got;
    if (total > most_bytes) return Issue{path, TooLargeFile(most_bytes)};
    if (gzip) {
      packed += piece;
    } else if (!take(piece)) {
      return std::nullopt;
    }
  }
  if (std::ferror(file.get()) != 0) return Issue{path, kDamagedFile};
  if (!gzip) return std::nullopt;
  std::string text;
  switch (ByNode(0, packed, most_bytes, text)) {
    case kNodeDamaged:
      return Issue{path, kDamagedFile};
    case kNodeShort:
      return Issue{path, kShortFile};
    case kNodeTooLong:
      return Issue{path, TooLargeFile(most_bytes)};
    default:
      take(text);
      return std::nullopt;
  }
}

Inflating Inflate(std::string_view packed, std::size_t most_bytes, std::string& text) {
  const int end = ByNode(1, packed, most_bytes, text);
  if (end == kNodeTooLong) return Inflating::kTooLong;
  return end == 0 ? Inflating::kWhole : Inflating::kDamaged;
}

std::string Deflated(std::string_view text) {
  std::string packed;
  ByNode(2, text, text.size(), packed);
  return packed;
}

}  // namespace servecast
