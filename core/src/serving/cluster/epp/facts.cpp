#include "serving/cluster/epp/facts.h"

#include <iterator>

#include "base/text.h"

namespace servecast::epp {
namespace {

constexpr std::string_view kRoles[] = {
    "",     "prefill", "decode",         "prefill-decode",
    "both", "encode",  "encode-prefill", "encode-prefill-decode"};

}  // namespace

Role RoleOf(std::string_view label) {
  for (std::size_t i = 0; i < std::size(kRoles); ++i) {
    if (kRoles[i] == label) return static_cast<Role>(i);
  }
  return Role::kOther;
}

bool TakesPrefill(Role role) {
  return role == Role::kPrefill || role == Role::kEncodePrefill || role == Role::kPrefillDecode ||
         role == Role::kBoth || role == Role::kEncodePrefillDecode;
}

bool TakesDecode(Role role) {
  return role == Role::kNone || role == Role::kDecode || role == Role::kPrefillDecode ||
         role == Role::kBoth || role == Role::kEncodePrefillDecode;
}

ContextRange ContextRangeOf(std::string_view label) {
  if (label.empty()) return {};
  const std::size_t dash = label.find('-');
  if (dash == std::string_view::npos) return {.kind = ContextRange::Kind::kUnreadable};
  const auto least = ParseCount(label.substr(0, dash)), most = ParseCount(label.substr(dash + 1));
  if (!least || !most || *least > *most) return {.kind = ContextRange::Kind::kUnreadable};
  return {ContextRange::Kind::kRange, *least, *most};
}

}  // namespace servecast::epp
