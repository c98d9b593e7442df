// What texts have said of a scenario so far: members, which words they came from, and what was left
// out. Readers put in; Finish makes the document.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/left_layers.h"
#include "servecast/import.h"

namespace servecast {

inline constexpr std::size_t kShown = 120;  // bytes of others' words in a note

class Draft {
 public:
  // What follows is of another text; its name, where there are several. Servers of a text are pools
  // beside each other; those of the next text are the same pools again, said anew, or `beside`
  // those that there are.
  void BeginText(std::string name, bool beside = false);
  // Whether the text gave a pool another role than it had in `before`: its servers are other ones.
  bool TurnsRolesOf(const Draft& before) const;

  // Something that can be imported: "a command of vLLM". Nothing is understood without one.
  void Found(std::string kind);
  bool found() const { return !out_.kinds.empty(); }
  // Of this text, so far.
  std::size_t servers() const { return servers_; }
  std::size_t kinds() const { return out_.kinds.size(); }
  // Something of a kind that is known, and what is wrong with it: said if nothing else is found.
  void Refuse(Issue issue) { refused_.push_back(std::move(issue)); }
  Issues TakeRefusals() { return std::exchange(refused_, {}); }

  // A member by its path ("workload.arrivals.rate_per_s", lists by number). Another value that an
  // earlier text gave it is replaced, and a remark says so.
  void Take(std::string_view path, nlohmann::json value, std::string_view from);
  // The same without words that say it: a default of the program that the text is for.
  void Assume(std::string_view path, nlohmann::json value, std::string_view why);
  void Ignore(std::string_view what, std::string_view why);
  void Remark(std::string text);
  // A value by its name (MeasuredValue); one that no server can have measured (negative, beyond
  // 1e12) is ignored with words; false then.
  bool Measure(std::string_view name, double value, std::string_view from);
  // What changes the answer as much as a model or a rate, and is not as its text has it.
  void Warn(std::string text);
  // Words of an option whose value is not known. What is taken instead is said at the end: the
  // member at `path`, or `otherwise` where it has none of its own.
  void Unread(std::string words, std::string_view why, std::string path, std::string_view otherwise,
              bool warn);

  // A model by its name on Hugging Face, or by its figures, which are worth more whenever they
  // come. Of two servers with different models the first counts: false for the second.
  bool TakeModelName(std::string_view name, std::string_view from);
  void TakeModelFigures(nlohmann::json figures, std::string_view from);
  // A member of the model that a server's options say. A scenario has one model: that of the first
  // server; what another one says differently is left out.
  void TakeModelMember(std::string_view path, nlohmann::json value, std::string_view from);
  // The KV cache of the present server: "fp8", "auto", or "" where its option leaves it to the
  // model, whose files may say it.
  void TakeKvCache(std::string_view type, std::string_view from);
  void TakeModelKvCache(std::string_view type, std::string_view from);
  // Of a quantised checkpoint: what is not as the type of its weights says.
  void TakeLeftLayers(LeftLayers left) { left_ = std::move(left); }
  // Whether clients' requests are sampled by top-p or top-k: they overrule what servers and the
  // model's files say, whichever comes first.
  void TakeSampling(bool top_p, std::string_view from);
  // A model that answers with what it pools of a prompt (embeddings, scores, classes) and decodes
  // nothing: requests get one output token, and no target is of more.
  void TakePooling(std::string_view from);
  bool Pools() const { return !pooling_.empty(); }
  // A server that is told to generate does, whatever its model's name says.
  void TakeGenerating() { generates_ = true; }
  // A GPU by what its maker or a cloud calls it.
  void TakeGpu(std::string_view name, std::string_view from);
  // A text asks for a part of a GPU ("nvidia.com/mig-3g.40gb", "shared"): no preset is one, and a
  // whole one is forecast.
  void TakeGpuShare(std::string_view from);
  // GPUs of this text's machine by their numbers that the present server may use ("0,1"). Warns
  // where an earlier server of the text has one of them: here each has GPUs of its own.
  void TakeDevices(std::string_view server, const std::vector<std::string>& devices);
  // So many of them are in the machine that a text describes.
  void TakeGpuCount(std::int64_t count, std::string_view from);

  // One more server of this text: what it is ("a command of vLLM"). Its members are below "pool"
  // and "engine": "pool.tensor_parallel", "engine.max_num_seqs". False: more than a scenario can
  // have.
  bool BeginServer(std::string kind);
  // Data-parallel ranks of the present server: replicas that share the experts, if the model has
  // any.
  void TakeDataParallel(std::int64_t ranks);
  // A router's servers of a role ("" serves whole requests): how many, and of how many ranks each
  // where the server does not say it. Their place in the order of texts does not matter.
  void TakeWorkers(std::string_view role, std::int64_t count, std::int64_t ranks,
                   std::string_view from);
  // A router sends each request to a server for prefill, then to one for decode.
  void TakeSplit(std::string_view from);
  // Whether the present server's GPUs reach each other through the host alone.
  void TakeLinks(bool through_host, std::string_view from);
  // The path of such a member for the present server.
  std::string ServerPath(std::string_view path) const;
  std::size_t Pool() const;  // of the current server
  // The latest server is started by the object of this name.
  void NameServer(std::string name);
  // A scaler by its kind of object, which counts for the server whose object it names.
  void AddScaler(std::string kind, nlohmann::json spec);

  // A preset's document; nullptr: none of that id, or it is not here, and Finish asks for its file.
  const nlohmann::json* Preset(std::string_view kind, std::string_view id);
  // nullptr: no text said it.
  const nlohmann::json* Find(std::string_view path) const;
  void Drop(std::string_view path);
  // Whether another draft was read to the same members and notes.
  bool ReadsAs(const Draft& other) const;
  // Whether other servers say the same of all members.
  bool SaysTheSame(const Draft& other) const {
    return said_ == other.said_ && model_name_ == other.model_name_;
  }

  Imported Finish(std::string_view base) &&;

 private:
  nlohmann::json& At(std::string_view path);
  void Put(std::string_view path, nlohmann::json value, std::string_view from, bool said);
  void Settle(const nlohmann::json& base);
  void SettlePooling();
  void DropDecodes(nlohmann::json& document);
  void SettleModel();
  void SettleVision();
  void SettleLinks();
  void SettleWorkers(const nlohmann::json& base);
  void SplitPools(const std::string& words);
  void SettleRole(std::string_view role);
  void SettlePools(const nlohmann::json& base);
  void UndoRanks(nlohmann::json& pool);
  void DropLockStep(nlohmann::json& pools);
  void SettleEngine(const std::string& path);
  void SettleVllm(const std::string& path, const std::string& gpu, double memory_gib);
  void SettleSglang(const std::string& path, const std::string& gpu, double memory_gib);
  void SettleGpuCount();
  void TakeScalers();
  void SettleScaling();
  void SettleRouters();
  bool HasExperts(const nlohmann::json& base);
  void SettleKvCache();
  void SettleUnread();
  void NameUnread(const nlohmann::json& resolved);
  void Complete(nlohmann::json& base);

  Imported out_;
  Issues refused_;
  Issues missing_;  // files of presets
  nlohmann::json said_ = nlohmann::json::object();
  std::string text_;
  std::size_t first_ = 0;                                  // pool of this text's first server
  std::size_t servers_ = 0;                                // of this text
  std::map<std::string, std::size_t, std::less<>> named_;  // pools, by the object that starts them
  struct Scaler {
    std::string text, kind;
    nlohmann::json spec;
  };
  std::vector<Scaler> scalers_;
  std::string model_name_, model_from_, unknown_gpu_, gpu_of_base_, model_kv_, model_kv_from_;
  nlohmann::json figures_;
  std::optional<LeftLayers> left_;
  std::optional<std::pair<bool, std::string>> sampling_;
  std::string pooling_;     // the words that say it
  bool generates_ = false;  // other words say the opposite
  struct Links {
    bool through_host = false;
    std::string from;
  };
  std::map<std::size_t, Links> links_;  // of servers with several GPUs, by pool
  struct Workers {
    std::int64_t count = 0, ranks = 1;
    std::string from;
    friend bool operator==(const Workers&, const Workers&) = default;
  };
  std::map<std::string, Workers, std::less<>> workers_;  // by role
  std::string split_;                                    // the words that say it
  bool pools_of_base_ = false;  // no text starts a server: replicas of the base's by a router
  struct UnreadValue {
    std::string words, why, path, otherwise;
    bool warn;
  };
  std::vector<UnreadValue> unread_;
  std::map<std::string, std::string> devices_;  // of this text: which server has each
  std::int64_t gpu_count_ = 0;
  std::size_t ignored_beyond_ = 0;
};

// "128", "0.9" as a number, "32k" too where `units` are allowed: 32k 32,000, 32K 32,768, as vLLM
// has them. nullopt for anything else.
std::optional<double> NumberIn(std::string_view text, bool units = false);

// nullptr: no member at this path, lists by number, or it is null.
const nlohmann::json* MemberAt(const nlohmann::json& document, std::string_view path);

// A whole number as an integer, others as doubles.
nlohmann::json NumberJson(double value);

}  // namespace servecast
