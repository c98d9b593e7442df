# Plants faults in a copy of the engine's hot loop, so that a test can show that the differential
# test would notice them. Each fault is an exact piece of core/src/serving/replica.cpp and what
# stands there instead while `Planted(number)`; a piece that does not occur exactly once fails the
# configuration: the engine changed there, and the fault has to be planted anew.
#
# Sets faulty_replica (the copy) and planted_faults (how many).

set(replica ${PROJECT_SOURCE_DIR}/core/src/serving/replica.cpp)
set(faulty_replica ${PROJECT_BINARY_DIR}/generated/faulty/replica.cpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${replica})
file(READ ${replica} faulty_text)
set(planted_faults 0)

# A fault may need several pieces: they share its number.
function(plant number name find replace)
  string(FIND "${faulty_text}" "${find}" first)
  string(FIND "${faulty_text}" "${find}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "tests/faults: fault ${number} (${name}) looks for text that does not "
                        "occur exactly once in ${replica}:\n${find}")
  endif()
  string(REPLACE "${find}" "${replace}" text "${faulty_text}")
  set(faulty_text "${text}" PARENT_SCOPE)
  set(planted_faults ${number} PARENT_SCOPE)
endfunction()

plant(1 "blocks are due one step late"
  [==[(slot.join_step - slot.computed) % size]==]
  [==[(slot.join_step - slot.computed + (Planted(1) ? 1 : 0)) % size]==])

plant(2 "a request ends one decode step late"
  [==[decode_step_ + OutputLimit(slot.request) - generated - 1,]==]
  [==[decode_step_ + OutputLimit(slot.request) - generated - (Planted(2) ? 0 : 1),]==])

plant(3 "the victim is the last but one"
  [==[const SlotId victim = last_;]==]
  [==[const SlotId before_last = SlotAt(last_).previous;
      const bool other = Planted(3) && id != last_ && SlotAt(before_last).decoding;
      const SlotId victim = other ? before_last : last_;]==])

plant(4 "a step that preempted admits"
  [==[  if (plan.preempted) {
    plan.blocked]==]
  [==[  if (plan.preempted && !Planted(4)) {
    plan.blocked]==])

plant(5 "the watermark is a share of the usable blocks"
  [==[static_cast<double>(input.pool_blocks)]==]
  [==[static_cast<double>(input.pool_blocks - (Planted(5) ? 1 : 0))]==])

plant(6 "the test of the full prompt is left out"
  [==[in_.engine.scheduler_reserve_full_isl ? known]==]
  [==[in_.engine.scheduler_reserve_full_isl && !Planted(6) ? known]==])

plant(7 "unchunked prefill is tested before the threshold cuts"
  [==[!in_.engine.enable_chunked_prefill && wanted > budget]==]
  [==[!in_.engine.enable_chunked_prefill && (Planted(7) ? known : wanted) > budget]==])

plant(8 "a resumed request recomputes its prompt only"
  [==[const std::int64_t known = Known(request);]==]
  [==[const std::int64_t known =
        Planted(8) ? std::int64_t{in_.requests.prompt_tokens[r]} : Known(request);]==])

plant(9 "a preempted request goes to the back of the queue"
  [==[return preempted_.empty() ?]==]
  [==[return preempted_.empty() || (Planted(9) && admitted_ < arrived_) ?]==])
plant(9 "a preempted request goes to the back of the queue"
  [==[  if (preempted_.empty()) {]==]
  [==[  if (preempted_.empty() || (Planted(9) && admitted_ < arrived_)) {]==])

plant(10 "a decode that leaves leaves the tokens it made in the context"
  [==[decode_context_ -= ComputedNow(slot);]==]
  [==[decode_context_ -= Planted(10) ? slot.computed : ComputedNow(slot);]==])

plant(11 "who comes on a step's end joins one step late"
  [==[time <= now_; time = NextEnqueue()]==]
  [==[time < now_ || (time == now_ && !(Planted(11) && running_ > 0)); time = NextEnqueue()]==])

plant(12 "a decode run passes over an arrival when one seat is left"
  [==[blocked != BlockedBy::kNothing || running_ >= seats_;]==]
  [==[blocked != BlockedBy::kNothing || running_ + (Planted(12) ? 1 : 0) >= seats_;]==])

plant(13 "a decode run starts a step at the horizon"
  [==[ran < max_steps && now_ < in_.horizon]==]
  [==[ran < max_steps && (Planted(13) ? now_ <= in_.horizon : now_ < in_.horizon)]==])

plant(14 "the gap after a preemption is that of its last step"
  [==[in_.recorder.InterTokenGap(end, end - last_token_[r] + token_delay_, 1);]==]
  [==[in_.recorder.InterTokenGap(end, end - (Planted(14) ? now_ : last_token_[r]) + token_delay_, 1);]==])

file(CONFIGURE OUTPUT ${faulty_replica} CONTENT
  [==[// Made by tests/faults/faults.cmake from core/src/serving/replica.cpp.
#include "faults/planted.h"
using servecast::testing::Planted;
@faulty_text@]==] @ONLY)
