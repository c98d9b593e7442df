// See names.h.
#include "import/names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/presets.h"

namespace servecast {
namespace {

using Words = std::vector<std::string>;

bool IsNumber(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), IsDigit);
}

template <std::size_t n>
bool OneOf(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// In lower case, cut at everything but letters, digits and dots between digits.
Words WordsOf(std::string_view text) {
  const std::string lower = LowerCase(text);
  Words words(1);
  for (std::size_t i = 0; i < lower.size(); ++i) {
    const char c = lower[i];
    const bool dot =
        c == '.' && i > 0 && i + 1 < lower.size() && IsDigit(lower[i - 1]) && IsDigit(lower[i + 1]);
    if ((c >= 'a' && c <= 'z') || IsDigit(c) || dot) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string Joined(const Words& words) {
  std::string joined;
  for (const std::string& word : words) joined += word;
  return joined;
}

// Whether some words of `text` in a row, written together, are `wanted`.
bool Contains(const Words& text, std::string_view wanted) {
  for (std::size_t from = 0; from < text.size(); ++from) {
    std::string joined;
    for (std::size_t to = from; to < text.size() && joined.size() < wanted.size(); ++to) {
      joined += text[to];
      if (joined == wanted) return true;
    }
  }
  return false;
}

// --- models

// Of the weights, in a model's name: the word, and the type of a scenario; none is not modelled.
struct WeightWord {
  std::string_view word;
  const char* type;
};
constexpr std::array<WeightWord, 24> kWeightWords = {{
    {"mxfp4", "mxfp4"},    {"nvfp4", "nvfp4"},
    {"nvfp4a16", "nvfp4"}, {"fp4", "nvfp4"},
    {"fp8", "fp8"},        {"int4", "int4"},
    {"w4a16", "int4"},     {"awq", "int4"},
    {"gptq", "int4"},      {"bf16", ""},
    {"fp16", ""},          {"int8", "int8"},
    {"w8a8", "int8"},      {"w8a16", "int8_w8a16"},
    {"w4a8", nullptr},     {"int3", nullptr},
    {"int2", nullptr},     {"8bit", nullptr},
    {"4bit", nullptr},     {"3bit", nullptr},
    {"2bit", nullptr},     {"bnb", "nf4"},
    {"nf4", "nf4"},        {"gguf", nullptr},
}};

const WeightWord* FindWeightWord(std::string_view word) {
  const auto at = std::find_if(kWeightWords.begin(), kWeightWords.end(),
                               [word](const WeightWord& w) { return w.word == word; });
  return at == kWeightWords.end() ? nullptr : &*at;
}

// What a name says beside architecture and size: tuning, date, weights.
bool IsVariant(const std::string& word) {
  static constexpr std::array<std::string_view, 19> kVariants = {
      "instruct", "hf", "chat",    "it",       "base",      "dynamic", "block",
      "thinking", "kv", "preview", "meta",     "quantized", "marlin",  "sym",
      "g128",     "pt", "128k",    "terminus", "unsloth"};
  const bool date = word.size() == 4 && IsNumber(word);
  return date || OneOf(word, kVariants) || FindWeightWord(word) != nullptr;
}

// "meta-llama/Llama-3.1-8B", "meta-llama__Llama-3.1-8B" -> Llama-3.1-8B.
std::string_view WithoutOwner(std::string_view name) {
  const std::size_t slash = name.find_last_of('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  const std::size_t two = name.find("__");
  return two == std::string_view::npos ? name : name.substr(two + 2);
}

// "Llama-3_3" -> "Llama-3.3".
std::string WithPoints(std::string_view name) {
  std::string out(name);
  for (std::size_t i = 1; i + 1 < out.size(); ++i) {
    if (out[i] == '_' && IsDigit(out[i - 1]) && IsDigit(out[i + 1])) out[i] = '.';
  }
  return out;
}

// "llama3.18b" of "meta-llama/Llama-3.1-8B-Instruct".
std::string ModelWord(std::string_view name) {
  Words words = WordsOf(WithPoints(WithoutOwner(name)));
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "v2" && FindWeightWord(words[i - 1]) != nullptr) words[i] = words[i - 1];
  }
  words.erase(std::remove_if(words.begin(), words.end(), IsVariant), words.end());
  // "Qwen_Qwen3-32B", "NVIDIA-Nemotron-3": an owner before the family.
  if (words.size() > 1 && (words[0] == "nvidia" ||
                           (words[1].size() > words[0].size() && words[1].find(words[0]) == 0))) {
    words.erase(words.begin());
  }
  // The first release, where there is no other of the name.
  if (!words.empty() && words.back() == "v0.1") words.pop_back();
  return Joined(words);
}

// Names without a size, and equal architectures.
struct ModelAlias {
  std::string_view word, preset;
};
constexpr std::array<ModelAlias, 27> kModelAliases = {{
    // Tuned from them: other words in the vocabulary are 0.1 % of the weights.
    {"qwen3embedding0.6b", "qwen3-0.6b"},
    {"qwen3embedding4b", "qwen3-4b"},
    {"qwen3embedding8b", "qwen3-8b"},
    {"qwen3reranker0.6b", "qwen3-0.6b"},
    {"qwen3reranker4b", "qwen3-4b"},
    {"qwen3reranker8b", "qwen3-8b"},
    {"mistralnemo", "mistral-nemo-12b"},
    {"mistrallarge", "mistral-large"},
    {"llama4scout", "llama-4-scout-17b-16e"},
    {"llama4maverick", "llama-4-maverick-17b-128e"},
    {"deepseekr1", "deepseek-v3"},
    {"deepseekv3.1", "deepseek-v3"},
    {"kimik2.6", "kimi-k2.5"},
    {"llama3.3nemotronsuper49bv1", "llama-3.3-nemotron-super-49b"},
    {"deepseekr1distillllama8b", "llama-3.1-8b"},
    {"deepseekr1distillllama70b", "llama-3.3-70b"},
    {"deepseekr1distillqwen14b", "qwen2.5-14b"},
    {"deepseekr1distillqwen32b", "qwen2.5-32b"},
    {"qwq32b", "qwen2.5-32b"},
    {"qwen27b", "qwen2.5-7b"},
    {"qwen272b", "qwen2.5-72b"},
    {"qwen2.5coder7b", "qwen2.5-7b"},
    {"qwen2.5coder14b", "qwen2.5-14b"},
    {"qwen2.5coder32b", "qwen2.5-32b"},
    {"qwen3coder30ba3b", "qwen3-30b-a3b"},
    {"yi1.534b", "yi-34b"},
    {"yi1.56b", "yi-6b"},
}};

// --- GPUs

constexpr std::array<std::string_view, 3> kForms = {"sxm", "pcie", "nvl"};

struct Gpu {
  Words words;  // what is no form factor and no memory
  std::string form;
  double gib = 0;  // as advertised; 0: not said
};

// "sxm5" is sxm; "" for other words.
std::string FormOf(std::string_view word) {
  while (!word.empty() && IsDigit(word.back())) word.remove_suffix(1);
  return OneOf(word, kForms) ? std::string(word) : "";
}

// "80gb", "80gib", "81559mib"; 0 for other words.
double MemoryOf(std::string_view word) {
  const std::size_t unit = word.find_first_not_of("0123456789");
  if (unit == 0 || unit == std::string_view::npos) return 0;
  const std::string_view of = word.substr(unit);
  const auto number = static_cast<double>(ParseCount(word.substr(0, unit)).value_or(0));
  if (of == "gb" || of == "gib") return number;
  if (of == "g" && number > 7) return number;  // "2g": a slice of a GPU
  return of == "mib" || of == "mb" ? number / 1024 : 0;
}

// "8xh100", "h100x8" -> h100.
std::string WithoutCount(const std::string& word) {
  const std::size_t first = word.find_first_not_of("0123456789");
  if (first != std::string::npos && first > 0 && word[first] == 'x' && first + 1 < word.size()) {
    return word.substr(first + 1);
  }
  const std::size_t times = word.find_last_of('x');
  const bool counted = times != std::string::npos && times > 2 &&
                       IsNumber(word.substr(times + 1)) && IsDigit(word[times - 1]);
  return counted ? word.substr(0, times) : word;
}

Gpu GpuOf(std::string_view name) {
  Gpu gpu;
  const Words words = WordsOf(name);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = WithoutCount(words[i]);
    const std::string form = FormOf(word);
    double gib = MemoryOf(word);
    if (IsNumber(word) && i + 1 < words.size()) gib = MemoryOf(word + words[i + 1]);
    if (gib > 0) gpu.gib = gib;
    if (!form.empty()) gpu.form = form;
    if (gib > 0 || !form.empty()) continue;
    // "h100sxm"
    for (const std::string_view glued : kForms) {
      const std::size_t at = word.find(glued);
      if (at == std::string::npos || at == 0) continue;
      gpu.form = glued;
      word.resize(at);
    }
    if (word != "gb" && word != "gib") gpu.words.push_back(word);
  }
  return gpu;
}

// "RTX PRO 6000 Blackwell 96 GB": the card without maker, architecture and kind of memory.
std::string FamilyOf(const Gpu& gpu) {
  static constexpr std::array<std::string_view, 6> kBeside = {"nvidia",   "geforce", "blackwell",
                                                              "lovelace", "hopper",  "ampere"};
  std::string family;
  for (const std::string& word : gpu.words) family += OneOf(word, kBeside) ? "" : word;
  return family;
}

// Words behind a card's name that make it another card, or a part of one.
bool IsOtherCard(const std::string& word) {
  static constexpr std::array<std::string_view, 11> kOthers = {
      "laptop", "mobile", "max", "maxq", "ti", "super", "d", "mig", "grace", "cnx", "vgpu"};
  const bool slice = word.size() == 2 && IsDigit(word[0]) && word[1] == 'g';
  return slice || OneOf(word, kOthers);
}

// Cards that people call by another name than their maker.
struct GpuAlias {
  std::string_view name, family;
  double gib;  // that this name says; 0: none
};
constexpr std::array<GpuAlias, 3> kGpuAliases = {{
    {"dgxspark", "gb10", 0},
    {"h203e", "h20", 141},
    {"h20e", "h20", 141},
}};

Gpu Renamed(Gpu said) {
  for (const GpuAlias& alias : kGpuAliases) {
    if (FamilyOf(said) != alias.name) continue;
    said.words = {std::string(alias.family)};
    if (alias.gib > 0) said.gib = alias.gib;
  }
  // The smaller of two is meant where none is said; "GH200 480GB" says the memory of its CPU.
  const std::string family = FamilyOf(said);
  const bool unsaid = said.gib == 0 || (said.gib == 480 && family == "gh200");
  if (unsaid && (family == "h20" || family == "gh200")) said.gib = 96;
  return said;
}

// The preset's card as its name describes it.
struct Card {
  std::string_view id;
  std::string family;
  Gpu gpu;
  bool stated;  // scenarios may name it
};

std::vector<Card> Cards() {
  std::vector<Card> cards;
  for (const std::string_view id : AllPresetIds("hardware")) {
    // The card's own name, which is known of files that are not here, too.
    const PresetName preset = NameOfPreset("hardware", id);
    Gpu gpu = GpuOf(preset.name);
    std::string family = FamilyOf(gpu);
    const bool stated = preset.in_menu;
    cards.push_back({id, std::move(family), std::move(gpu), stated});
  }
  // What is meant when nothing is said comes last.
  std::sort(cards.begin(), cards.end(), [](const Card& a, const Card& b) {
    return std::tuple(a.stated, a.gpu.form == "sxm", a.gpu.gib) <
           std::tuple(b.stated, b.gpu.form == "sxm", b.gpu.gib);
  });
  return cards;
}

bool Fits(const Gpu& said, const Card& card) {
  // Advertised sizes differ by what is reserved: 180, 183 and 192 GB are one card.
  const bool memory =
      said.gib == 0 || card.gpu.gib == 0 || std::fabs(said.gib / card.gpu.gib - 1) < 0.1;
  const bool form = said.form.empty() || card.gpu.form.empty() || said.form == card.gpu.form;
  return memory && form;
}

// --- engines

// The whole number that the first digits of a text are; nullopt without one.
std::optional<double> FirstCount(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  const std::size_t end = text.find_first_not_of("0123456789", digit);
  const auto count = ParseCount(text.substr(digit, end - digit));
  return count ? std::optional<double>(static_cast<double>(*count)) : std::nullopt;
}

// "0.15.1" and "vllm-0.15" give 15, "1.0.0rc3" 1000; -1 without a number.
double VersionNumber(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string_view::npos) return -1;
  const std::string_view version = text.substr(digit);
  const std::size_t dot = version.find('.');
  const std::optional<double> major = FirstCount(version.substr(0, dot));
  if (!major) return -1;
  if (dot == std::string_view::npos) return 1000 * *major;
  return 1000 * *major + FirstCount(version.substr(dot + 1)).value_or(0);
}

// "TensorRT-LLM" is trtllm, "dynamo-trt" too: what spreads requests over servers is no engine. ""
// for an engine that no preset is of.
std::string EngineWord(std::string_view engine) {
  std::string word = Joined(WordsOf(engine));
  for (const std::string_view before : {"dynamo", "mori"}) {
    if (word.find(before) == 0) word.erase(0, before.size());
  }
  if (word.find("tensorrt") != std::string::npos || word.find("trtllm") != std::string::npos ||
      word == "trt") {
    return "trtllm";
  }
  for (const std::string_view known : {"vllm", "sglang"}) {
    if (word.find(known) == 0) return std::string(known);
  }
  return "";
}

}  // namespace

std::string ModelPresetOf(std::string_view name) {
  // A tuning that was published with weights of another type.
  if (Joined(WordsOf(WithoutOwner(name))).find("kimik2thinking") == 0) return "kimi-k2.5";
  const std::string wanted = ModelWord(name);
  if (wanted.empty()) return "";
  for (const std::string_view id : AllPresetIds("models")) {
    if (Joined(WordsOf(id)) == wanted) return std::string(id);
  }
  for (const ModelAlias& alias : kModelAliases) {
    if (alias.word == wanted) return std::string(alias.preset);
  }
  return "";
}

bool PoolsByName(std::string_view model) {
  const Words words = WordsOf(WithoutOwner(model));
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "embedding" || word == "reranker" || word == "embed" || word == "rerank";
  });
}

bool SameModel(std::string_view a, std::string_view b) {
  return !ModelWord(a).empty() && ModelWord(a) == ModelWord(b);
}

std::string HardwarePresetOf(std::string_view name) {
  const Gpu said = Renamed(GpuOf(name));
  if (std::any_of(said.words.begin(), said.words.end(), IsOtherCard)) return "";
  std::string found, family;
  for (const Card& card : Cards()) {
    // "4090" of "RTX 4090".
    const bool rtx = card.family.substr(0, 3) == "rtx";
    const bool named =
        Contains(said.words, card.family) || (rtx && Contains(said.words, card.family.substr(3)));
    if (!named) continue;
    if (!family.empty() && family != card.family) return "";  // two cards: which one?
    family = card.family;
    if (Fits(said, card)) found = card.id;
  }
  return found;
}

EngineName EnginePresetOf(std::string_view engine, std::string_view version) {
  const std::string wanted = engine.empty() ? std::string(kDefaultEngine) : EngineWord(engine);
  if (wanted.empty()) return {};
  const double number = VersionNumber(version);
  std::string nearest, any;
  double best = -1;
  for (const std::string_view id : PresetIds("engines")) {
    const Words words = WordsOf(id);
    if (words[0] != wanted) continue;
    if (words.size() == 1) any = id;
    if (words.size() != 2) continue;
    const double of = VersionNumber(words[1]);
    const bool nearer = best < 0 || std::fabs(of - number) < std::fabs(best - number) ||
                        (std::fabs(of - number) == std::fabs(best - number) && of < best);
    if (!nearer) continue;
    best = of;
    nearest = id;
  }
  if (number >= 0 && !nearest.empty()) return {nearest, best == number};
  return {any.empty() ? nearest : any, false};
}

bool IsFrom(std::string_view version, int major, int minor) {
  return VersionNumber(version) >= 1000.0 * major + minor;
}

std::optional<std::string> WeightsOf(std::string_view precision) {
  const std::string word = Joined(WordsOf(precision));
  for (const char* plain : {"", "bf16", "fp16", "bfloat16", "float16", "torchbfloat16",
                            "torchfloat16", "half", "auto", "16bit", "16bits"}) {
    if (word == plain) return "";
  }
  const auto has = [&word](const char* part) { return word.find(part) != std::string::npos; };
  if (has("mxfp4")) return "mxfp4";
  if (has("fp4")) return "nvfp4";
  if (has("fp8") || has("float8")) return "fp8";
  if (has("int4") || has("w4a16") || has("awq")) return "int4";
  if (has("w8a8")) return "int8";
  if (has("w8a16")) return "int8_w8a16";
  if (has("bitsandbytes") || has("nf4")) return "nf4";
  if (has("gptq") && !has("8")) return "int4";
  return std::nullopt;
}

std::optional<std::string> WeightsInName(std::string_view model) {
  std::string found;
  const Words words = WordsOf(WithoutOwner(model));
  const auto has = [&words](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (has("gptq") && (has("int8") || has("8bit"))) return "int8_w8a16";
  if (has("bnb") && (has("4bit") || has("8bit"))) return has("8bit") ? "int8" : "nf4";
  for (const std::string& word : words) {
    const WeightWord* weights = FindWeightWord(word);
    if (weights == nullptr) continue;
    if (weights->type == nullptr) return std::nullopt;
    if (weights->type[0] != '\0') found = weights->type;
  }
  return found;
}

bool SaysSixteenBits(std::string_view model) {
  const Words words = WordsOf(WithoutOwner(model));
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    const WeightWord* weights = FindWeightWord(word);
    return weights != nullptr && weights->type != nullptr && weights->type[0] == '\0';
  });
}

std::string ModelIn(std::string_view folder) {
  const Words words = WordsOf(folder);
  std::string found;
  for (const std::string_view id : AllPresetIds("models")) {
    if (Contains(words, Joined(WordsOf(id))) && id.size() > found.size()) found = id;
  }
  return found;
}

EngineIn EngineInName(std::string_view folder) {
  const Words words = WordsOf(folder);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string engine = EngineWord(words[i]);
    if (engine.empty()) continue;
    const std::size_t digit = words[i].find_first_of("0123456789");  // "vllm0.16", "vllm16"
    if (digit != std::string::npos) return {engine, words[i].substr(digit)};
    const bool version = i + 1 < words.size() && IsDigit(words[i + 1][0]);
    return {engine, version ? words[i + 1] : ""};
  }
  return {};
}

}  // namespace servecast
