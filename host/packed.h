// gzip and deflate, of files and of texts. packed.cpp has them by zlib,
// wasm/packed_node.cpp by node's own for the command of the npm package.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "servecast/result.h"

namespace servecast {

// Calls `take` with the pieces of a file in order, decompressed when it is gzip, until it returns
// false. "-" is stdin. Returns what is wrong with the file: kCannotOpen (files.h), damaged gzip, or
// more than `most_bytes` when decompressed.
std::optional<Issue> ReadPieces(const std::string& path, std::size_t most_bytes,
                                const std::function<bool(std::string_view)>& take);

enum class Inflating { kWhole, kDamaged, kTooLong };
// What raw deflate (no header) unpacks to, into `text`. kDamaged: cut short, damaged, or with bytes
// behind its end; kTooLong: more than `most_bytes`.
Inflating Inflate(std::string_view packed, std::size_t most_bytes, std::string& text);

// As raw deflate, as small as zlib makes it. Another zlib may choose other bytes, which unpack to
// the same text.
std::string Deflated(std::string_view text);

}  // namespace servecast
