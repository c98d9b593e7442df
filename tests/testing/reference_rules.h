// How a gateway places requests, the slow and obvious way: by the rules as docs/model.md has them,
// from what it can see at that moment, which others count anew for each request (reference_router
// from a finished run, pd_reference as it goes). No code of the routers, of their index of prompts
// or of the cluster is in it, but for a router whose rule is not written here: that one is asked
// itself, with loads and contents as this gateway counts them.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "serving/cluster/router.h"
#include "testing/epp_reference_router.h"
#include "testing/reference_sights.h"
#include "testing/router_choice.h"
#include "workload/request_table.h"

namespace servecast::testing {

class ReferenceRules {
 public:
  ReferenceRules(const RouterChoice& router, const RequestTable& requests,
                 std::vector<ServedBy> replicas);

  // Where the request goes, which it notes; nullopt: nowhere for now.
  std::optional<std::size_t> Choose(std::size_t request, const std::vector<ReplicaSight>& sights,
                                    TimeNs time = 0);
  // Of the router epp.
  ReferencePickerRouter& Picker();

 private:
  using Block = std::pair<std::int32_t, std::int64_t>;  // segment, number

  // What a replica was sent, as a gateway remembers it: segments, the latest used last.
  struct SentPrompts {
    std::list<std::pair<std::int32_t, std::set<std::int64_t>>> segments;

    bool Has(const Block& block) const;
    void Add(const std::vector<Block>& prompt);
    void Trim(std::int64_t capacity);
    std::int64_t Size() const;
  };

  // Parts of so many tokens, up to that token.
  std::vector<Block> PartsOf(std::size_t request, std::int64_t size, std::int64_t end) const;
  std::vector<Block> TokensOf(std::size_t request) const;
  std::int64_t Matched(const std::vector<Block>& blocks, std::size_t replica) const;
  std::vector<double> CostsOf(std::size_t request, const std::vector<Block>& blocks,
                              const std::vector<ReplicaSight>& sights, TimeNs time);
  std::vector<double> PowerOfTwo(std::size_t request,
                                 const std::vector<ReplicaSight>& sights) const;
  std::vector<double> PrefixAffinity(const std::vector<Block>& blocks,
                                     const std::vector<ReplicaSight>& sights) const;
  std::vector<double> KvAware(std::size_t request, const std::vector<Block>& blocks,
                              const std::vector<ReplicaSight>& sights) const;
  std::vector<double> Weighted(const std::vector<Block>& blocks,
                               const std::vector<ReplicaSight>& sights) const;
  std::vector<double> CacheAware(std::size_t request, const std::vector<ReplicaSight>& sights,
                                 TimeNs time);
  std::vector<double> PrefixAware(std::size_t request) const;
  std::vector<double> KvLookup(std::size_t request, const std::vector<Block>& blocks,
                               TimeNs time) const;
  std::vector<double> VllmDp(const std::vector<ReplicaSight>& sights, TimeNs time) const;
  std::vector<double> AskRouter(std::size_t request, const std::vector<Block>& blocks,
                                const std::vector<ReplicaSight>& sights);
  std::vector<double> CentralQueue(const std::vector<ReplicaSight>& sights) const;
  std::vector<double> Only(std::size_t replica) const;
  std::size_t FirstTurn(std::size_t request) const;  // of its session
  std::size_t SessionHash(std::size_t request) const;

  const RouterChoice& router_;
  const RequestTable& requests_;
  std::vector<ServedBy> replicas_;
  std::int64_t block_size_;  // that the gateway counts prompts in: the least of any
  std::size_t routed_ = 0;
  std::map<std::size_t, std::int64_t> added_;  // blocks to compute of a request where it went
  std::vector<SentPrompts> sent_;
  std::vector<SentPrompts> trees_;                      // by replica, in tokens
  TimeNs trimmed_ = 0;                                  // intervals until trees_ were
  std::vector<std::vector<std::vector<Block>>> texts_;  // by replica, each prompt's tokens
  std::vector<std::vector<TimeNs>> times_;              // by replica, of each request sent there
  std::map<std::int32_t, std::size_t> homes_;           // by segment
  std::unique_ptr<Router> asked_;                       // AskRouter's
  std::unique_ptr<ReferencePickerRouter> picker_;       // of the router epp
  std::vector<std::set<std::size_t>> placed_;  // by replica, what asked_ has not heard the end of
};

}  // namespace servecast::testing
