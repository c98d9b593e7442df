// What the fuzz targets have in common: how an input is made of texts, and what holds of every
// scenario and every refusal, whatever was read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast::fuzz {

// The line that ends one text of an input and begins the next. No JSON has it.
inline constexpr std::string_view kCut = "\n%%\n";

inline std::string_view TextOf(const std::uint8_t* data, std::size_t size) {
  return size == 0 ? std::string_view()
                   : std::string_view(reinterpret_cast<const char*>(data), size);
}

// The texts of an input; at least one.
std::vector<std::string_view> Parts(std::string_view input);

// Ends the program unless there are issues and each of them says something.
void CheckIssues(const Issues& issues);

// Ends the program unless the scenario's texts read as the same scenario again, or the issues are
// as they must be.
void CheckRead(const Result<Scenario>& read);

}  // namespace servecast::fuzz
