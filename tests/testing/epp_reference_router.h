// The router epp the slow and obvious way: prompts token by token, loads added up anew for each
// request, plugins and index of epp_reference.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "testing/epp_reference.h"
#include "testing/reference_sights.h"
#include "testing/router_choice.h"
#include "workload/request_table.h"

namespace servecast::testing {

class ReferencePickerRouter {
 public:
  ReferencePickerRouter(const RouterChoice& router, const RequestTable& requests,
                        const std::vector<ServedBy>& replicas);

  // Where the request goes; `session` is the first request of its conversation.
  std::size_t Choose(std::size_t request, std::size_t session,
                     const std::vector<ReplicaSight>& sights, TimeNs time);
  // What a detector sees.
  ReferencePicker::Endpoints LoadsOf(const std::vector<ReplicaSight>& sights) const;

 private:
  // A producer's parameter, or `otherwise`.
  double Setting(const char* type, const char* parameter, double otherwise) const;
  ReferencePickerIndex::Prompt TokensOf(std::size_t request) const;
  std::int64_t MostBlocks() const;

  const RouterChoice& router_;
  const RequestTable& requests_;
  std::vector<ServedBy> replicas_;
  EppConfig config_;
  std::int64_t block_;
  bool estimates_;
  ReferencePicker picker_;
  ReferencePickerIndex index_;
  std::map<std::size_t, std::int64_t> tokens_;       // in flight when it was placed, by request
  std::map<std::size_t, std::int32_t> of_sessions_;  // the latest replica
};

}  // namespace servecast::testing
