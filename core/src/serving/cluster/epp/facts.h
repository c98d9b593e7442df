// What the endpoint picker knows when it schedules a request: the request, and each candidate
// endpoint. Reported values are as old as `age`; in-flight counters are live.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace servecast::epp {

// Value of the label llm-d.ai/role.
enum class Role {
  kNone,  // no label
  kPrefill,
  kDecode,
  kPrefillDecode,
  kBoth,
  kEncode,
  kEncodePrefill,
  kEncodePrefillDecode,
  kOther,
};
Role RoleOf(std::string_view label);

// Whether an endpoint of the role takes prefills, or decodes. Only decodes need no label.
bool TakesPrefill(Role role);
bool TakesDecode(Role role);

// Context lengths that an endpoint is meant for, both ends included.
struct ContextRange {
  enum class Kind { kNone, kUnreadable, kRange };
  Kind kind = Kind::kNone;
  std::int64_t least = 0, most = 0;
};
ContextRange ContextRangeOf(std::string_view label);  // "min-max"; "" is no label

// LoRA adapters of an endpoint, by number.
struct Adapters {
  std::vector<std::int32_t> active, waiting;
  std::int64_t most = 0;
};

inline constexpr std::int64_t kUnknown = -1;

struct Endpoint {
  std::int32_t id = 0;  // remembered between cycles

  // Reported by its server.
  std::int64_t waiting = 0, running = 0;
  double kv = 0;  // share of the KV cache in use
  TimeNs age = 0;
  const Adapters* adapters = nullptr;  // null: reports none

  // Counted by the gateway.
  std::int64_t inflight_requests = 0, inflight_tokens = 0;

  // Of the request that is scheduled. kUnknown: no record.
  std::int64_t matched_blocks = kUnknown;
  std::int64_t cached_blocks = kUnknown;  // without weights of tiers; else as matched_blocks
  std::int64_t uncached_tokens = 0;

  Role role = Role::kNone;
  ContextRange context;
};

struct Request {
  std::int64_t tokens = 0;
  std::int32_t adapter = -1;               // asked for; -1: an unknown name, or the base model
  std::int64_t session = kUnknown;         // x-session-id
  std::int64_t named_endpoint = kUnknown;  // x-session-token: an id, which may not exist
  std::int64_t total_blocks = 0, block_tokens = 0;  // of the prefix match
  TimeNs time = 0;
};

// Ids of the endpoints that a cycle chose.
struct Choice {
  std::int32_t primary = -1;
  std::int32_t prefill = -1;  // -1: the primary endpoint prefills, too
};

}  // namespace servecast::epp
