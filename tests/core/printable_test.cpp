// What others wrote is safe to show.
#include "base/printable.h"

#include <string>

#include "gtest/gtest.h"

namespace servecast {
namespace {

TEST(Printable, OrdinaryText_Stays) {
  for (const char* text :
       {"", "plain", "\xC3\xBC", "\xE4\xB8\xAD", "\xF0\x9F\x98\x80", "a\\b\"c"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, WhatATerminalOrAReaderWouldObey_IsEscaped) {
  EXPECT_EQ(Printable("\x1b[31m"), "\\u001b[31m");
  EXPECT_EQ(Printable(std::string("a\0b\nc\x7F", 6)), "a\\u0000b\\u000ac\\u007f");
  EXPECT_EQ(Printable("\xC2\x9B"), "\\u009b");
  EXPECT_EQ(Printable("\xE2\x80\xAA\xE2\x80\xAE"), "\\u202a\\u202e");
  EXPECT_EQ(Printable("\xE2\x81\xA6\xE2\x81\xA9"), "\\u2066\\u2069");
  EXPECT_EQ(Printable("\xF3\xA0\x81\x81"), "\\U000e0041");
}

TEST(Printable, BytesThatAreNoUtf8_AreEscapedOneByOne) {
  EXPECT_EQ(Printable("\xFF\xC3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("\xC0\x80"), "\\xc0\\x80");           // too long for its value
  EXPECT_EQ(Printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(Printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(ShownText, TooLong_IsCutBetweenCharacters) {
  EXPECT_EQ(ShownText("12345678", 8), "12345678");
  EXPECT_EQ(ShownText("123456789", 8), "12345...");
  EXPECT_EQ(ShownText("1234\xC3\xBC"
                      "6789",
                      8),
            "1234...");
  EXPECT_EQ(ShownText("12\x1b"
                      "456789",
                      8),
            "12...");
  EXPECT_LE(ShownText(std::string(1'000'000, '\x1b')).size(), 60u);
}

}  // namespace
}  // namespace servecast
