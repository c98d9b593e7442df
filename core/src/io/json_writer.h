// Writes JSON text: keys in the order given, numbers as JavaScript writes them (nlohmann's dump
// prints 14.0 for 14 and not always the shortest form, and canonical text must be canonical).
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace servecast {

class JsonWriter {
 public:
  // With indentation: one member a line; without: no white space at all.
  explicit JsonWriter(bool indented) : indented_(indented) {}

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view key) {
    Separate();
    Quote(key);
    text_ += indented_ ? ": " : ":";
    after_key_ = true;
  }
  void Text(std::string_view value) {
    Separate();
    Quote(value);
  }
  void Integer(std::int64_t value) { Raw(std::to_string(value)); }
  // NaN and infinities, which JSON cannot say, as null.
  void Number(double value) { Raw(std::isfinite(value) ? NumberText(value) : "null"); }
  void Boolean(bool value) { Raw(value ? "true" : "false"); }
  void Null() { Raw("null"); }
  // A value that is JSON text already.
  void Raw(std::string_view json) {
    Separate();
    text_ += json;
  }

  std::string Take() { return std::move(text_); }

 private:
  void Open(char bracket) {
    Separate();
    text_ += bracket;
    ++depth_;
    first_ = true;
  }
  void Close(char bracket) {
    --depth_;
    if (!first_) NewLine();
    text_ += bracket;
    first_ = false;
  }
  void Separate() {
    if (after_key_) {
      after_key_ = false;
      return;
    }
    if (depth_ > 0) {
      if (!first_) text_ += ',';
      NewLine();
    }
    first_ = false;
  }
  void NewLine() {
    if (!indented_) return;
    text_ += '\n';
    text_.append(static_cast<std::size_t>(2 * depth_), ' ');
  }
  void Quote(std::string_view value) {
    static constexpr char kHex[] = "0123456789abcdef";
    text_ += '"';
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (c == '\n') {
        text_ += "\\n";
      } else if (byte < 0x20) {
        text_ += "\\u00";
        text_ += kHex[byte >> 4];
        text_ += kHex[byte & 15];
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  bool indented_;
  bool first_ = true, after_key_ = false;
  int depth_ = 0;
  std::string text_;
};

}  // namespace servecast
