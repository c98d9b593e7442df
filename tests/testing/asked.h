// What the environment asks of a test.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace servecast::testing {

// A whole number, as SERVECAST_CASES has it; `fallback` where none is given.
inline std::int64_t Asked(const char* variable, std::int64_t fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? fallback : std::strtoll(text, nullptr, 10);
}

}  // namespace servecast::testing
