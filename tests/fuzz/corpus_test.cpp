// Every target's corpus, and some mutants of each input, as plain tests with sanitizers: always the
// same inputs. libFuzzer, which looks for new ones, runs at night (`./dev fuzz`). Where one ends
// the program it is left in build/fuzz/found.
#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#define LLVMFuzzerTestOneInput FuzzCalibrate
#include "fuzz/calibrate_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput FuzzImport
#include "fuzz/import_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput FuzzLink
#include "fuzz/link_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput FuzzPreset
#include "fuzz/preset_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput FuzzRun
#include "fuzz/run_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput FuzzScenario
#include "fuzz/scenario_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput FuzzStream
#include "fuzz/stream_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput FuzzTrace
#include "fuzz/trace_fuzz.cpp"
#undef LLVMFuzzerTestOneInput
#include "fuzz/document_mutator.cpp"

namespace servecast::fuzz {
namespace {

constexpr int kMutants = 20;  // of each input
constexpr std::size_t kMaxSize = 4096;

struct Target {
  const char* name;
  int (*run)(const std::uint8_t* data, std::size_t size);
  bool documents = false;
};

constexpr Target kTargets[] = {
    {"calibrate", FuzzCalibrate}, {"import", FuzzImport}, {"link", FuzzLink},
    {"preset", FuzzPreset},       {"run", FuzzRun, true}, {"scenario", FuzzScenario, true},
    {"stream", FuzzStream},       {"trace", FuzzTrace},
};

std::string root = SERVECAST_SOURCE_DIR, under_way, target_under_way;

void KeepInput() {
  const std::string folder = root + "/build/fuzz/found";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream(folder + "/" + target_under_way + "-of-corpus", std::ios::binary) << under_way;
}

void KeepInputAndAbort(int) {
  KeepInput();
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

void RunOn(const Target& target, std::string input) {
  under_way = std::move(input);
  target_under_way = target.name;
  // Of its own size, so that a byte beyond is noticed.
  const std::vector<std::uint8_t> bytes(under_way.begin(), under_way.end());
  target.run(bytes.data(), bytes.size());
}

std::vector<std::string> CorpusOf(const Target& target) {
  std::set<std::filesystem::path> files;
  for (const auto& file :
       std::filesystem::directory_iterator(root + "/tests/fuzz/corpus/" + target.name)) {
    files.insert(file.path());
  }
  std::vector<std::string> corpus;
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return corpus;
}

Dice byte_dice(1);

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, InputsAndMutants_BreakNoPromise) {
  __sanitizer_set_death_callback(KeepInput);
  std::signal(SIGABRT, KeepInputAndAbort);
  byte_dice = Dice(1);
  const std::vector<std::string> corpus = CorpusOf(GetParam());
  ASSERT_FALSE(corpus.empty());
  unsigned seed = 0;
  for (const std::string& input : corpus) {
    RunOn(GetParam(), input);
    for (int i = 0; i < kMutants; ++i) {
      std::string mutant = input.substr(0, kMaxSize);
      std::size_t size = mutant.size();
      mutant.resize(kMaxSize);
      const auto data = reinterpret_cast<std::uint8_t*>(mutant.data());
      size = GetParam().documents ? LLVMFuzzerCustomMutator(data, size, kMaxSize, ++seed)
                                  : LLVMFuzzerMutate(data, size, kMaxSize);
      mutant.resize(size);
      RunOn(GetParam(), mutant);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Corpus, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace servecast::fuzz

// Some bytes changed, left out, moved or written twice.
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  using servecast::fuzz::byte_dice;
  std::string text(reinterpret_cast<const char*>(data), size);
  do {
    const std::size_t at = byte_dice.Below(text.size() + 1);
    const std::size_t length = byte_dice.Below(std::min<std::size_t>(text.size() - at, 32) + 1);
    const std::string piece = text.substr(at, length);
    switch (byte_dice.Below(5)) {
      case 0:
        text.insert(at, 1, static_cast<char>(byte_dice.Below(256)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(byte_dice.Below(256));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(byte_dice.Below(text.size() + 1), piece);
        break;
      default:
        text.insert(at,
                    std::string_view("0123456789-.eE{}[]\",:\n").substr(byte_dice.Below(22), 1));
    }
  } while (byte_dice.Below(3) > 0);
  text.resize(std::min(text.size(), max_size));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
