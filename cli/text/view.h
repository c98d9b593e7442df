// An answer of this command, which is JSON, as text and tables read it. One source for every form:
// what a person sees and what a script reads are the same figures.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servecast {

// A value inside a document, which must outlive it. What is not there reads as null.
class View {
 public:
  View() = default;
  explicit View(const nlohmann::ordered_json* at) : at_(at) {}

  View operator[](std::string_view key) const;  // a member
  View At(std::size_t index) const;             // an element
  std::vector<View> Elements() const;           // of an array; none of all else
  std::vector<std::string> Keys() const;        // of an object, in its order

  bool There() const { return at_ != nullptr; }
  bool Is() const;  // there, and not null
  bool IsObject() const;
  bool IsArray() const;
  bool IsText() const;
  std::optional<double> Number() const;
  double NumberOr(double other) const;
  bool Truth() const;         // false where it is none
  std::string Words() const;  // of a text, safe for a terminal; "" of all else

  // As a cell of a table: a text's words, a number as JavaScript writes it, JSON without white
  // space of objects and arrays, "" of null.
  std::string Plain() const;
  // As JSON without white space.
  std::string Json() const;
  std::string IndentedJson() const;

 private:
  const nlohmann::ordered_json* at_ = nullptr;
};

class ParsedAnswer {
 public:
  // Requires: `json` is JSON, as the writers of this project make it.
  explicit ParsedAnswer(std::string_view json);
  ParsedAnswer(ParsedAnswer&&) noexcept;
  ~ParsedAnswer();

  View root() const;

 private:
  std::unique_ptr<nlohmann::ordered_json> json_;
};

// JSON text without the white space between its parts; else the same bytes.
std::string WithoutSpace(std::string_view json);

}  // namespace servecast
