// Numbers as text and back. The expected texts of NumberText are what JavaScript's String() gives.
#include "base/text.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "base/random.h"
#include "gtest/gtest.h"

namespace servecast {
namespace {

TEST(NumberText, JavaScriptsForms_AreReproduced) {
  const struct {
    double value;
    const char* text;
  } known[] = {
      {14, "14"},
      {0.001, "0.001"},
      {1e-6, "0.000001"},
      {1e-7, "1e-7"},
      {2e-7, "2e-7"},
      {1.5e-6, "0.0000015"},
      {1.5e-7, "1.5e-7"},
      {1e20, "100000000000000000000"},
      {1e21, "1e+21"},
      {1.25e22, "1.25e+22"},
      {123456789012345680000.0, "123456789012345680000"},
      {-2.5, "-2.5"},
      {-1e-9, "-1e-9"},
      {0.1, "0.1"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1.0 / 3, "0.3333333333333333"},
      {4.35, "4.35"},
      {100, "100"},
      {9007199254740992.0, "9007199254740992"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {2.2250738585072014e-308, "2.2250738585072014e-308"},
      {0.0, "0"},
      {-0.0, "0"},
  };
  for (const auto& k : known) EXPECT_EQ(NumberText(k.value), k.text);
}

TEST(NumberText, AnyDouble_ReadsBackToTheSameBits) {
  for (std::int64_t i = 0; i < 50000; ++i) {
    const std::uint64_t bits = RandomBits(5, Stream::kArrival, i);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!(value - value == 0)) continue;  // infinities and NaN have no text
    const std::string text = NumberText(value);
    const double back = std::strtod(text.c_str(), nullptr);
    EXPECT_EQ(std::memcmp(&back, &value, sizeof back), 0) << text;
  }
}

TEST(ShortNumber, AnySize_HasAboutThreeDigits) {
  const struct {
    double value;
    const char* text;
  } known[] = {
      {0, "0"},
      {0.123456, "0.123"},
      {12.345, "12.3"},
      {1230, "1,230"},
      {1234567, "1,234,567"},
      {999.6, "1,000"},
      {-1234.4, "-1,234"},
      {-0.00001, "0"},
      {0.5, "0.5"},
      {2.0, "2"},
      {100, "100"},
      {0.0042, "0.0042"},
      {-999.4, "-999"},
  };
  for (const auto& k : known) EXPECT_EQ(ShortNumber(k.value), k.text);
}

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(ParseDecimalNs, PlainAndExponentNumbers_AreExact) {
  const struct {
    const char* text;
    std::int64_t ns;
  } known[] = {
      {"0", 0},
      {"0.0", 0},
      {"1", kSecond},
      {"+1", kSecond},
      {"1.", kSecond},
      {".5", kSecond / 2},
      {"0.1", 100'000'000},
      {"0.3", 300'000'000},  // as a double this would be 299,999,999.99999994
      {"46.6805900", 46'680'590'000},
      {"1e3", 1000 * kSecond},
      {"1E-3", kSecond / 1000},
      {"1.5e+2", 150 * kSecond},
      {"2500000e-6", 2'500'000'000},
      {"0000000000000000000000000000000001", kSecond},
      {"0.0000000000000000000000000000000000000000000000000001", 0},
      {"0e1000", 0},
      {"1e-1000", 0},
      {"0.000000001", 1},
      {"123456789.123456789", 123'456'789'123'456'789},
      {"0.12345678912345678912345678912345678912345", 123'456'789},
  };
  for (const auto& k : known) {
    const auto ns = ParseDecimalNs(k.text, kSecond);
    ASSERT_TRUE(ns) << k.text;
    EXPECT_EQ(*ns, k.ns) << k.text;
  }
}

TEST(ParseDecimalNs, HalvesOfANanosecond_RoundAwayFromZero) {
  const struct {
    const char* text;
    std::int64_t ns;
  } known[] = {
      {"0.0000000004", 0}, {"0.00000000049999999999999999999999999999999999", 0},
      {"0.0000000005", 1}, {"0.0000000014999999", 1},
      {"0.0000000015", 2}, {"0.0000000025", 3},
      {"4.9e-10", 0},      {"5e-10", 1},
  };
  for (const auto& k : known) {
    const auto ns = ParseDecimalNs(k.text, kSecond);
    ASSERT_TRUE(ns) << k.text;
    EXPECT_EQ(*ns, k.ns) << k.text;
  }
}

TEST(ParseDecimalNs, OtherUnits_AreScaled) {
  EXPECT_EQ(ParseDecimalNs("1.5", 1'000'000), 1'500'000);
  EXPECT_EQ(ParseDecimalNs("1.5", 1), 2);
  EXPECT_EQ(ParseDecimalNs("7", 1), 7);
}

TEST(ParseDecimalNs, AroundTheLargest_KeepsOrRefuses) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 62;
  EXPECT_EQ(ParseDecimalNs("4611686018.427387904", kSecond), kLargest);
  EXPECT_EQ(ParseDecimalNs("4611686018.4273879044", kSecond), kLargest);
  EXPECT_FALSE(ParseDecimalNs("4611686018.427387905", kSecond));
  EXPECT_FALSE(ParseDecimalNs("4611686018.4273879045", kSecond));
  EXPECT_FALSE(ParseDecimalNs("1e10", kSecond));
  EXPECT_FALSE(ParseDecimalNs("1e400", kSecond));
  EXPECT_FALSE(ParseDecimalNs("99999999999999999999999999999999999999999999999999", kSecond));
  EXPECT_EQ(ParseDecimalNs("99999999999999999999e-16", kSecond), 10'000'000'000'000);
}

TEST(ParseDecimalNs, Junk_IsRefused) {
  for (const char* text :
       {"",      " ",   "-",          "+",     ".",           "e",   "e5",  ".e5",
        "-1",    "-0",  "1e",         "1e+",   "1e-",         "1 ",  " 1",  "1x",
        "1.2.3", "1,5", "0x10",       "1e5.0", "nan",         "NaN", "inf", "Infinity",
        "--1",   "+-1", "1e99999999", "1_000", "\xEF\xBC\x91"}) {
    EXPECT_FALSE(ParseDecimalNs(text, kSecond)) << text;
  }
  EXPECT_FALSE(ParseDecimalNs(std::string_view("1\0", 2), kSecond));
}

TEST(ParseCount, WholeNumbers_AreRead) {
  EXPECT_EQ(ParseCount("0"), 0);
  EXPECT_EQ(ParseCount("42"), 42);
  EXPECT_EQ(ParseCount("007"), 7);
  EXPECT_EQ(ParseCount("12.0"), 12);
  EXPECT_EQ(ParseCount("12.000"), 12);
  EXPECT_EQ(ParseCount("999999999999999999"), 999'999'999'999'999'999);
}

TEST(ParseCount, AnythingElse_IsRefused) {
  for (const char* text : {"", "-1", "+1", "1.5", "12.01", "1e3", " 1", "1 ", "x", ".0", "0x1",
                           "1000000000000000000", "99999999999999999999", "1.0.0"}) {
    EXPECT_FALSE(ParseCount(text)) << text;
  }
}

TEST(NearestWord, Typos_FindTheirWord) {
  const std::array<std::string, 4> words = {"max_num_seqs", "max_model_len", "block_size", "seed"};
  EXPECT_EQ(NearestWord("max_num_seq", words), "max_num_seqs");
  EXPECT_EQ(NearestWord("blocksize", words), "block_size");
  EXPECT_EQ(NearestWord("sead", words), "seed");
  EXPECT_EQ(NearestWord("temperature", words), "");
  EXPECT_EQ(NearestWord("", words), "");
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("same", "same"), 0);
}

}  // namespace
}  // namespace servecast
