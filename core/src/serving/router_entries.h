// What menus say of routers that the page's first module leaves out (wasm/left_out.cpp), for there
// and for their own files.
#pragma once

#include "serving/router.h"

namespace servecast {

using MakeRouter = decltype(RouterEntry::make);

inline constexpr ParamSpec kPrefixAffinityParams[] = {
    {"load_factor", "1", 1, 1000, 1.25,
     "most requests on a replica, relative to the mean with the new one, rounded up"},
    kStaleness};
constexpr RouterEntry PrefixAffinityEntry(MakeRouter make) {
  return {"prefix_affinity",
          "where the longest known beginning of its prompt was sent, unless that one has too many",
          make,
          false,
          kPrefixAffinityParams,
          true};
}

inline constexpr ParamSpec kKvAwareParams[] = {
    {"overlap_weight", "1", 0, 1000, 1,
     "weight of a KV block to compute, beside one of the requests on a replica"},
    kStaleness};
constexpr RouterEntry KvAwareEntry(MakeRouter make) {
  return {"kv_aware",
          "the least overlap_weight x KV blocks to compute + KV blocks of what it has with these",
          make,
          false,
          kKvAwareParams,
          true};
}

inline constexpr ParamSpec kWeightedParams[] = {
    {"prefix_weight", "1", 0, 1000, 3, "weight of the share of its prompt that was sent there"},
    {"queue_depth_weight", "1", 0, 1000, 2, "weight of a short queue, among the replicas"},
    {"kv_utilization_weight", "1", 0, 1000, 2, "weight of the share of free KV blocks"},
    {"load_weight", "1", 0, 1000, 0, "weight of 1 / (1 + requests waiting or running)"},
    kStaleness};
constexpr RouterEntry WeightedEntry(MakeRouter make) {
  return {"weighted",
          "the highest sum of weighted scores: prefix, queue depth, free KV, load",
          make,
          false,
          kWeightedParams,
          true,
          true};
}

inline constexpr ParamSpec kCentralQueueParams[] = {
    {"max_outstanding", "requests", 0, 65536, 0,
     "most on a replica at a time; the others wait at the gateway; 0: its engine.max_num_seqs",
     true}};
constexpr RouterEntry CentralQueueEntry(MakeRouter make) {
  return {"central_queue",
          "first come, first served, by the replica that first has room; until then at the gateway",
          make,
          false,
          kCentralQueueParams,
          false,
          false,
          true};
}

}  // namespace servecast
