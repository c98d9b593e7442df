// Functions of libc as the page's module needs them (the linker's --wrap): libc's own bring
// quadruple precision and all of printf, 11 KB of the page's budget.
#include <emscripten.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// JavaScript rounds numbers correctly, as libc does.
EM_JS(double, ServecastNumber, (const char* text), { return Number(UTF8ToString(text)); });

EM_JS(void, ServecastError, (const char* text), { err(UTF8ToString(text)); });

extern "C" {

// Requires: all of text is one number. So it is where nlohmann's lexer asks, the only caller.
double __wrap_strtod(const char* text, char** end) {
  if (end != nullptr) *end = const_cast<char*>(text) + std::strlen(text);
  return ServecastNumber(text);
}

// Knows the one format that is in use, of control characters in nlohmann's lexer. fmt's own call is
// for hexadecimal doubles, which are never printed.
int __wrap_snprintf(char* text, std::size_t size, const char* format, ...) {
  if (std::string_view(format) != "<U+%.4X>" || size < 9) return 0;
  std::va_list arguments;
  va_start(arguments, format);
  const unsigned value = va_arg(arguments, unsigned);
  va_end(arguments);
  std::memcpy(text, "<U+0000>", 9);
  for (int i = 0; i < 4; ++i) text[6 - i] = "0123456789ABCDEF"[value >> (4 * i) & 15];
  return 8;
}

// Two callers: a broken invariant, "%s" and "%d", and a type without a name, which there is none
// of.
int __wrap_fiprintf(void*, const char* format, ...) {
  std::string text;
  std::va_list arguments;
  va_start(arguments, format);
  for (const char* at = format; *at != '\0'; ++at) {
    if (*at != '%') {
      text += *at;
    } else if (*++at == 's') {
      text += va_arg(arguments, const char*);
    } else {
      text += std::to_string(va_arg(arguments, int));
    }
  }
  va_end(arguments);
  ServecastError(text.c_str());
  return 0;
}

// embind's: "%p", as the name of a type.
int __wrap_siprintf(char* text, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const auto value = reinterpret_cast<std::uintptr_t>(va_arg(arguments, const void*));
  va_end(arguments);
  std::strcpy(text, std::to_string(value).c_str());
  return static_cast<int>(std::strlen(text));
}

}  // extern "C"
