// The endpoint picker the slow and obvious way: a plugin is a case of a chain, all is computed anew
// for each request, the prefix index is lists and sets of whole prompts. Of the engine's room it
// has the data types only.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "servecast/epp.h"
#include "serving/cluster/epp/facts.h"

namespace servecast::testing {

class ReferencePicker {
 public:
  using Positions = std::vector<std::int32_t>;
  using Endpoints = std::vector<epp::Endpoint>;
  struct Run {
    std::string profile;
    std::vector<Positions> filters = {};
    Positions survivors = {};
    std::vector<std::vector<double>> scores = {};
    std::vector<double> totals = {}, chances = {};
  };
  struct Outcome {
    epp::Choice choice;
    std::vector<Run> runs;  // in the order in which they ran
  };

  explicit ReferencePicker(EppConfig config) : config_(std::move(config)) {}

  // Of survivors as likely as `u` in (0, 1) says. Also what the picker remembers changes.
  Outcome Schedule(const epp::Request& request, const Endpoints& endpoints, double u);
  double Saturation(const std::string& plugin, const Endpoints& endpoints) const;

  // The survivor at `u` of the cumulated chances.
  static std::int32_t PickAt(const Positions& survivors, const std::vector<double>& chances,
                             double u);

 private:
  struct Binding {
    std::int32_t endpoint = -1;
    TimeNs used = 0;
  };
  struct Memory {  // of a plugin
    std::map<std::int64_t, Binding> sessions;
    std::int64_t sweeps = 0;
    bool bound_was_there = false;
    std::list<std::int32_t> cold;  // endpoints, the oldest first
    bool was_cold = false;
  };

  const EppPlugin& PluginOf(const std::string& name) const;
  double Number(const EppPlugin& plugin, const std::string& path, double otherwise) const;
  std::string Text(const EppPlugin& plugin, const std::string& path,
                   const std::string& otherwise) const;
  Run RunProfile(const EppProfile& profile, const epp::Request& request,
                 const Endpoints& endpoints);
  std::optional<Positions> Filtered(const EppPlugin& plugin, const epp::Request& request,
                                    const Endpoints& endpoints, const Positions& before);
  std::optional<std::vector<double>> Scored(const EppPlugin& plugin, const epp::Request& request,
                                            const Endpoints& endpoints, const Positions& of);
  std::vector<double> ColdScores(const EppPlugin& plugin, const Endpoints& endpoints,
                                 const Positions& of);
  std::int64_t Bound(const EppPlugin& plugin, const epp::Request& request,
                     const Endpoints& endpoints, const Positions& of);
  bool Disaggregates(const epp::Request& request, const epp::Endpoint& decode) const;
  void Remember(const epp::Request& request, const epp::Choice& choice);
  const EppProfile* ProfileOf(const std::string& name) const;

  EppConfig config_;
  std::map<std::string, Memory> memories_;  // of plugins that have run, by name
};

// Which endpoint was sent which prompts, token by token.
class ReferencePickerIndex {
 public:
  using Token = std::pair<std::int64_t, std::int64_t>;
  using Prompt = std::vector<Token>;

  explicit ReferencePickerIndex(std::size_t endpoints) : lrus_(endpoints) {}

  std::vector<std::int64_t> Match(const Prompt& prompt, std::int64_t block) const;
  void Add(const Prompt& prompt, std::int64_t block, std::size_t endpoint, std::int64_t capacity);
  void Remove(std::size_t endpoint);
  static std::size_t Blocks(const Prompt& prompt, std::int64_t block) {
    const auto size = static_cast<std::size_t>(block);
    return (prompt.size() + size - 1) / size;
  }

 private:
  using Block = std::pair<std::int64_t, Prompt>;  // its size, and all tokens up to its end
  static std::vector<Block> BlocksOf(const Prompt& prompt, std::int64_t block);

  std::map<Block, std::set<std::size_t>> holders_;
  struct Lru {
    bool used = false;
    std::int64_t capacity = 0;
    std::list<Block> oldest_first;
  };
  std::vector<Lru> lrus_;
};

}  // namespace servecast::testing
