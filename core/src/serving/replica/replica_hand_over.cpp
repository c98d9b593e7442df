// Prefill here, decode there: blocks that are withheld until their KV has moved (vllm_hand_over.cpp
// says how vLLM's scheduler takes it).
#include <algorithm>
#include <utility>

#include "serving/replica/replica.h"

namespace servecast {

void Machine::HandOn(Withheld blocks, TimeNs end) {
  const RequestId request = blocks.request;
  const auto r = static_cast<std::size_t>(request);
  in_.recorder->Left(end);
  Withhold(std::move(blocks));
  in_.results.state[r] = RequestState::kQueued;
  in_.results.generated[r] = in_.first_token_from_decode ? 0 : 1;
  in_.scratch.last_token[r] = end;
  HandOver& hand_over = in_.results.hand_overs[r];
  hand_over.prefilled = end;
  hand_over.prefill_replica = static_cast<std::int32_t>(in_.number);
  in_.inbox->Report({Inbox::HandOverEvent::Kind::kPrefilled, request, end});
}

void Machine::Encoded(RequestId request, TimeNs end) {
  const auto r = static_cast<std::size_t>(request);
  in_.recorder->Left(end);
  in_.results.state[r] = RequestState::kQueued;
  Encoding& encoding = in_.results.encodings[r];
  encoding.encoded = end;
  encoding.replica = static_cast<std::int32_t>(in_.number);
  in_.results.AddEncode(r, end - encoding.started);
  in_.inbox->Report({Inbox::HandOverEvent::Kind::kEncoded, request, end});
}

void Machine::Withhold(Withheld blocks) {
  withheld_room_ += kv_.RoomBehind(blocks.tokens);
  SERVECAST_CHECK(place_of_.Find(blocks.request) < 0, "blocks of a request are withheld once");
  place_of_.Insert(blocks.request, static_cast<std::int32_t>(withheld_.size()));
  withheld_.push_back(std::move(blocks));
}

void Machine::FreeWithheld(RequestId request, TimeNs time) {
  const auto at = static_cast<std::size_t>(place_of_.Find(request));
  SERVECAST_CHECK(at < withheld_.size(), "what is freed is withheld");
  Withheld& held = withheld_[at];
  kv_.Release(held.holding, request, held.blocks, held.computed ? held.tokens : 0,
              held.computed && in_.inbox->HasNextTurn(request));
  scheduler_->Freed(held.blocks, held.tokens);
  withheld_room_ -= kv_.RoomBehind(held.tokens);
  place_of_.Erase(request);
  if (&held != &withheld_.back()) {
    held = std::move(withheld_.back());
    place_of_.Erase(held.request);
    place_of_.Insert(held.request, static_cast<std::int32_t>(at));
  }
  withheld_.pop_back();
  woken_ = std::min(woken_, time);
}

void Machine::SendForKv(RequestId request, std::int64_t blocks) {
  ++expected_;
  in_.results.hand_overs[static_cast<std::size_t>(request)].reserved = now_;
  in_.inbox->Report({Inbox::HandOverEvent::Kind::kReserved, request, now_, blocks});
}

void Replica::Arrive(RequestId request, TimeNs time) {
  in_.results.hand_overs[static_cast<std::size_t>(request)].arrived = time;
  woken_ = std::min(woken_, time);
  scheduler_->Arrive(request, time);
}

void Machine::Resume(RequestId request) {
  HandOver& hand_over = in_.results.hand_overs[static_cast<std::size_t>(request)];
  SERVECAST_CHECK(hand_over.arrived >= 0 && hand_over.arrived <= now_,
                  "I14: no request decodes before its KV has arrived");
  hand_over.resumed = StartTime();
  --expected_;
}

}  // namespace servecast
