# cmake -DNAME=replica -DSOURCE=replica.cpp -DOUTPUT=copy.cpp -P faults.cmake
# Plants the faults of one source of the engine in a copy of it, so that a test can show that the
# differential tests would notice them. Each fault is an exact piece of the source and what stands
# there instead while `Planted(number)`. A piece that does not occur exactly once ends the build of
# the fault tests, and of nothing else: the engine changed there, and the fault has to be planted
# anew. faults_targets.cmake reads which sources and numbers there are from the calls below.
#
# Numbers say which differential test has to notice: from 1 on that of one replica, from 101 on of
# BLIS's rules, from 201 on of clusters, from 301 on of other schedulers, from 401 on of prefill and
# decode apart, from 501 on of one with drafts, from 601 on of SGLang's scheduler, from 701 on of models
# with windows, from 801 on of TensorRT-LLM's scheduler, from 851 on of its ranks in lock step, from
# 901 on of prompts with images, from 1001 on of models whose layers keep KV in groups, from 1051 on of
# clients that hedge, from 1101 on of warm replicas, from 1151 on of pools that scale apart, from 1181
# on of Dynamo's planner, from 1201 on of pools that fail, from 1251 on of replicas that encode images
# for others.

set(text "")
if(EXISTS "${SOURCE}")
  file(READ "${SOURCE}" text)
endif()
set(problems "")

# A fault may need several pieces: they share its number.
function(plant_in file number name find replace)
  if(NOT file STREQUAL NAME)
    return()
  endif()
  string(FIND "${text}" "${find}" first)
  string(FIND "${text}" "${find}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    set(problems "${problems}\n  fault ${number} (${name}) looks for\n${find}" PARENT_SCOPE)
  endif()
  string(REPLACE "${find}" "${replace}" text "${text}")
  set(text "${text}" PARENT_SCOPE)
endfunction()

plant_in(decode_group 1 "blocks are due one step late"
  [==[size - computed);]==]
  [==[size - computed) + (Planted(1) ? 1 : 0);]==])

plant_in(vllm_scheduler 2 "a request ends one decode step late"
  [==[OutputLimit(slot.request) - generated,]==]
  [==[OutputLimit(slot.request) - generated + (Planted(2) ? 1 : 0),]==])

plant_in(vllm_grants 3 "the victim is the last but one"
  [==[if (!victim_by_priority_) return last_;]==]
  [==[if (!victim_by_priority_ && Planted(3) && running_ > 1) return SlotAt(last_).previous;
  if (!victim_by_priority_) return last_;]==])

plant_in(vllm_grants 4 "a step that preempted admits"
  [==[  if (!plan.preempted.empty()) {]==]
  [==[  if (!plan.preempted.empty() && !Planted(4)) {]==])

plant_in(vllm_scheduler 5 "the watermark is a share of the usable blocks"
  [==[static_cast<double>(in_.pool_blocks)]==]
  [==[static_cast<double>(in_.pool_blocks - (Planted(5) ? 1 : 0))]==])

plant_in(vllm_grants 6 "the test of the full prompt is left out"
  [==[remote || engine.scheduler_reserve_full_isl)]==]
  [==[remote || (engine.scheduler_reserve_full_isl && !Planted(6)))]==])

plant_in(vllm_grants 7 "unchunked prefill is tested before the threshold cuts"
  [==[!engine.enable_chunked_prefill && wanted > budget]==]
  [==[!engine.enable_chunked_prefill && (Planted(7) ? known : wanted) > budget]==])

plant_in(vllm_grants 8 "a resumed request recomputes its prompt only"
  [==[slot.known = Known(request);]==]
  [==[slot.known = Planted(8) ? std::int64_t{in_.requests.prompt_tokens[static_cast<std::size_t>(request)]} : Known(request);]==])

plant_in(vllm_grants 9 "a preempted request goes to the back of the queue"
  [==[queue_.PushPreempted(]==]
  [==[(queue_.*(Planted(9) ? &WaitQueue::Push : &WaitQueue::PushPreempted))(]==])

plant_in(decode_group 10 "a decode that leaves leaves its latest token in the context"
  [==[members * computed;]==]
  [==[members * (computed - (Planted(10) && members < 0 ? 1 : 0));]==])

plant_in(replica 11 "who comes on a step's end joins one step late"
  [==[time <= last; time = in_.inbox->NextEnqueue()]==]
  [==[time < last || (time == last && !(Planted(11) && running() > 0));
       time = in_.inbox->NextEnqueue()]==])

plant_in(clients 48 "a request holds no server of the front end"
  [==[front_end_.Enter(arrival, times);]==]
  [==[front_end_.Enter(arrival, Planted(48) ? HostTimes{0, times.work + times.wait} : times);]==])
plant_in(clients 49 "whoever gives up before the queue takes no time of the front end"
  [==[  const bool comes = requests_.timeout.empty() ||]==]
  [==[  if (Planted(49) && !requests_.timeout.empty() && enqueue - arrival > requests_.timeout[r]) {
    front_end_ = TakeUp(before);
  }
  const bool comes = requests_.timeout.empty() ||]==])
plant_in(clients 49 "the same"
  [==[  const TimeNs arrival = requests_.arrival[r], enqueue =]==]
  [==[  const TakeUp before = front_end_;
  const TimeNs arrival = requests_.arrival[r], enqueue =]==])

plant_in(vllm_scheduler 12 "a decode run passes over an arrival when one seat is left"
  [==[run.closed = !seats ||]==]
  [==[run.closed = !seats || running_ + (Planted(12) ? 1 : 0) >= in_.engine.max_num_seqs ||]==])

plant_in(replica 13 "a decode run starts a step at the horizon"
  [==[now_ < stop && StartTime() < last_start_)]==]
  [==[now_ < stop &&
         (Planted(13) ? StartTime() <= last_start_ : StartTime() < last_start_))]==])

plant_in(vllm_scheduler 14 "the gap after a preemption is that of its last step"
  [==[step.end - output.previous);]==]
  [==[step.end - (Planted(14) ? step.start : output.previous));]==])

plant_in(kv_cache 15 "shared blocks are released from the first to the last"
  [==[= holding.pieces[i - 1];]==]
  [==[=
        holding.pieces[Planted(15) ? holding.pieces.size() - i : i - 1];]==])

plant_in(vllm_grants 16 "the blocks of an admission are findable one step late"
  [==[    Register(slot, slot.computed + slot.chunk);
    call]==]
  [==[    Register(slot, slot.computed + (Planted(16) ? 0 : slot.chunk));
    call]==])

plant_in(vllm_grants 17 "a victim that was in the step keeps its tokens"
  [==[if (SlotAt(victim).granted_call == calls_) call]==]
  [==[if (SlotAt(victim).granted_call == calls_ && !Planted(17)) call]==])

plant_in(vllm_grants 18 "a resumed request is admitted by the length of its prompt"
  [==[const std::int64_t known = Known(head);]==]
  [==[const std::int64_t known =
      Planted(18) ? std::int64_t{in_.requests.prompt_tokens[static_cast<std::size_t>(head)]}
                  : Known(head);]==])

plant_in(vllm_grants 19 "a token in flight completes a block before it is known"
  [==[decoded && machine_.in_flight() > 0 && !staged() ? 1 : 0]==]
  [==[decoded && machine_.in_flight() > 0 && !staged() && !Planted(19) ? 1 : 0]==])

plant_in(vllm_grants 20 "of equal victims the last of the running list goes"
  [==[arrival(id) > arrival(worst)]==]
  [==[(Planted(20) ? arrival(id) >= arrival(worst) : arrival(id) > arrival(worst))]==])

plant_in(kv_cache 21 "blocks without content go to the end of the free list"
  [==[PushFree(kBlank, held - full, options_.contentless_first);]==]
  [==[PushFree(kBlank, held - full, options_.contentless_first && !Planted(21));]==])

plant_in(replica 22 "a time-out at the start of a step is a step late"
  [==[while (in_.inbox->NextTimeout() <= now_)]==]
  [==[while (Planted(22) ? in_.inbox->NextTimeout() < now_ : in_.inbox->NextTimeout() <= now_)]==])

plant_in(kv_cache 23 "a prompt that is all cached is not computed again"
  [==[FullBlocks(known_tokens - 1)]==]
  [==[FullBlocks(known_tokens - (Planted(23) ? 0 : 1))]==])

plant_in(vllm_grants 24 "hit blocks that nobody holds are not counted"
  [==[- hit_.blocks + hit_.idle;]==]
  [==[- hit_.blocks + (Planted(24) ? 0 : hit_.idle);]==])

plant_in(kv_cache 25 "of two copies the later is found"
  [==[part.registered < At(best).registered) best = id;]==]
  [==[(part.registered < At(best).registered) != Planted(25)) best = id;]==])

plant_in(vllm_grants 26 "a garbage collection frees a block too few"
  [==[garbage_.blocks -= static_cast<std::int64_t>(freed);]==]
  [==[garbage_.blocks -= static_cast<std::int64_t>(freed) - (Planted(26) && freed > 1 ? 1 : 0);]==])

plant_in(vllm_grants 27 "the reserve holds for the first of an empty batch, too"
  [==[engine.admission_reserve > 0 && running_ > 0]==]
  [==[engine.admission_reserve > 0 && (running_ > 0 || Planted(27))]==])

plant_in(kv_tiers 28 "a tier pushes out what came last"
  [==[const RunId id = lists_[tier].front;]==]
  [==[const RunId id = Planted(28) ? lists_[tier].back : lists_[tier].front;]==])

plant_in(vllm_grants 29 "what is loaded from a tier costs no time"
  [==[plan.transfer += kv_.TransferTime(loaded);]==]
  [==[plan.transfer += Planted(29) ? 0 : kv_.TransferTime(loaded);]==])

plant_in(kv_cache 30 "the threshold counts the blocks in use before this one"
  [==[std::clamp<std::int64_t>(in_use - offload_from_ + 1, 0, count)]==]
  [==[std::clamp<std::int64_t>(in_use - offload_from_ + (Planted(30) ? 0 : 1), 0, count)]==])

plant_in(replica 31 "a decode run keeps the average of preemptions as it was"
  [==[    SmoothPreemptions(0, load_.running);]==]
  [==[    if (!Planted(31)) SmoothPreemptions(0, load_.running);]==])

plant_in(decode_group 32 "a decode that leaves leaves the block of its latest token"
  [==[members * blocks;]==]
  [==[members * (Planted(32) && members < 0 ? CeilDiv(computed - 1, size) : blocks);]==])

plant_in(replica 33 "an arrival at an engine at rest finds its last step"
  [==[if (in_flight_ == 0) load_.running]==]
  [==[if (in_flight_ == 0 && !Planted(33)) load_.running]==])

plant_in(vllm_grants 34 "an admission counts the blocks of its last load only"
  [==[      call.plan.shape.transfer_blocks += hit_.stored;]==]
  [==[      if (Planted(34)) call.plan.shape.transfer_blocks = 0;
      call.plan.shape.transfer_blocks += hit_.stored;]==])

plant_in(vllm_scheduler 35 "a decode that catches up forgets what prefills cost it"
  [==[if (!slot.decodes || output.generated == 1) CountPrefill(]==]
  [==[if (!slot.decodes || output.generated == 1 || Planted(35)) CountPrefill(]==])

plant_in(vllm_times 36 "a preemption counts from the schedule call, not from the step"
  [==[.preempted_at = end;]==]
  [==[.preempted_at = Planted(36) ? machine_.now() : end;]==])

plant_in(vllm_times 37 "what is loaded for a prefill again is computed, too"
  [==[s.recompute += end - slot.admitted - transfer;]==]
  [==[s.recompute += end - slot.admitted - (Planted(37) ? 0 : transfer);]==])

plant_in(pipeline 38 "a stage begins a batch before it is done with the one before"
  [==[const TimeNs from = std::max(ready, free_[i]);]==]
  [==[const TimeNs from = Planted(38) ? ready : std::max(ready, free_[i]);]==])

plant_in(vllm_stages 39 "a victim is admitted while a step of it is in flight"
  [==[held.until > machine_.now()) return &held;]==]
  [==[held.until > machine_.now() && !Planted(39)) return &held;]==])

plant_in(vllm_scheduler 40 "the gap between tokens is the step's time, though another group had its turn"
  [==[if (staged()) step.before]==]
  [==[if (staged() && !Planted(40)) step.before]==])

plant_in(vllm_grants 41 "a prefill leaves room for the decodes of the batch before"
  [==[if (staged() && !apart_.empty()) PlacePrefills();]==]
  [==[if (staged() && !apart_.empty() && !Planted(41)) PlacePrefills();]==])

plant_in(replica 42 "time that steps share counts for each of them"
  [==[in_flight_ > 1 ? std::min]==]
  [==[in_flight_ > 1 && !Planted(42) ? std::min]==])

plant_in(vllm_times 43 "a victim in flight loses the time until its token twice"
  [==[staged() ? std::max(machine_.StartTime(), BusyUntil(slot)) : machine_.StartTime();]==]
  [==[staged() && !Planted(43) ? std::max(machine_.StartTime(), BusyUntil(slot)) : machine_.StartTime();]==])

plant_in(vllm_stages 44 "a victim that times out in flight has had its token"
  [==[static_cast<std::int32_t>(held->delivered);]==]
  [==[static_cast<std::int32_t>(held->delivered + (Planted(44) ? 1 : 0));]==])

plant_in(machine 45 "a first token waits for itself only"
  [==[TimeNs late = step.made * delivery_delay_;]==]
  [==[TimeNs late = (Planted(45) ? 1 : step.made) * delivery_delay_;]==])

plant_in(machine 46 "the last token does not wait"
  [==[* token_delay_ + in_.results.Late(r),]==]
  [==[* token_delay_ + (Planted(46) ? 0 : in_.results.Late(r)),]==])

plant_in(machine 47 "a stall is over when the step ends, and not when the token is handed out"
  [==[stalls_.LeftAt(step.end + late);]==]
  [==[stalls_.LeftAt(Planted(47) ? step.end : step.end + late);]==])

plant_in(blis_step 101 "the tokens of a victim are lost to its step, today too"
  [==[if (era_.returns_budget) step.budget]==]
  [==[if (era_.returns_budget && !Planted(101)) step.budget]==])

plant_in(blis_step 102 "February's queue of events has no marks of preemptions"
  [==[if (!era_.orders_events) events_.Push]==]
  [==[if (!era_.orders_events && !Planted(102)) events_.Push]==])

plant_in(blis_step 103 "February's step passes over those that it preempted"
  [==[  if (era_.visits_evicted) {]==]
  [==[  if (era_.visits_evicted && !Planted(103)) {]==])

plant_in(blis_step 104 "an answer is capped two tokens before the limit"
  [==[std::min(last, limits_.model_len - 1)]==]
  [==[std::min(last, limits_.model_len - (Planted(104) ? 2 : 1))]==])

plant_in(blis_runs 105 "a block that is overwritten leaves its name to another that has it by now"
  [==[    if (!At(id).found) Lose(range);]==]
  [==[    if (!At(id).found && !Planted(105)) Lose(range);]==])

plant_in(blis_runs 106 "what an undone allocation claimed stays where it was in the free list"
  [==[    if (!IsFree(claimed)) continue;]==]
  [==[    if (!IsFree(claimed) || Planted(106)) continue;]==])

plant_in(blis_runs 116 "an undone allocation leaves all names as they were"
  [==[  for (std::size_t i = given.size(); i > 0; --i) {]==]
  [==[  for (std::size_t i = Planted(116) ? 0 : given.size(); i > 0; --i) {]==])

plant_in(blis_step 117 "the counted take their blocks after all others"
  [==[    TakeForCounted(counted, member, step);]==]
  [==[    if (!Planted(117) || next == std::size(lists)) TakeForCounted(counted, member, step);]==])

plant_in(replica 301 "a batch is recorded from its start, though others were in flight"
  [==[std::max(step.start, recorded_until_), step.end]==]
  [==[Planted(301) ? step.start : std::max(step.start, recorded_until_), step.end]==])

plant_in(replica 302 "a decode run passes over an arrival that could be admitted"
  [==[&& !run.closed) break;]==]
  [==[&& !run.closed && !Planted(302)) break;]==])

plant_in(job_scheduler 303 "the first gap of a decode run is that of the others"
  [==[CountGap(step, step.end - seat.last_token, 1);
  }]==]
  [==[CountGap(step, step.end - (Planted(303) ? step.start : seat.last_token), 1);
  }]==])

plant_in(job_scheduler 304 "decodes that wait for a batch of prompts are not held up by it"
  [==[} else if (!machine_.staged()) {]==]
  [==[} else if (!machine_.staged() && !Planted(304)) {]==])

plant_in(job_scheduler 305 "an output's length is known at admission"
  [==[(setup_.limits.as_vidur ? output]==]
  [==[(setup_.limits.as_vidur || Planted(305) ? output]==])

plant_in(batch_scheduler 306 "a prompt that is preempted in the middle is cut there"
  [==[limits_.as_vidur ? j.processed]==]
  [==[limits_.as_vidur || Planted(306) ? j.processed]==])

plant_in(batch_scheduler 307 "the victim is the first of the parked"
  [==[    const JobIndex victim = state.parked.back();]==]
  [==[    if (Planted(307)) std::swap(state.parked.front(), state.parked.back());
    const JobIndex victim = state.parked.back();]==])

plant_in(batch_scheduler 308 "a decode run passes over an arrival when one seat is left"
  [==[} else if (state.admitted() >= state.limits().max_num_seqs) {]==]
  [==[} else if (state.admitted() + (Planted(308) ? 1 : 0) >= state.limits().max_num_seqs) {]==])

plant_in(job_scheduler 309 "a first token waits for those of all that run"
  [==[if (!machine_.hides_tokens()) machine_.FirstToken(seat.request, step);]==]
  [==[if (Planted(309)) step.made = state_.admitted();
        if (!machine_.hides_tokens()) machine_.FirstToken(seat.request, step);]==])

plant_in(batch_scheduler 310 "a preempted request queues as one that comes anew"
  [==[queue_.PushPreempted(]==]
  [==[if (Planted(310)) return queue_.Push(policy_.KeyOf(j.request), j.arrival, j.request);
  queue_.PushPreempted(]==])

plant_in(batch_scheduler 311 "a decode run passes over an arrival that may overtake the head"
  [==[!state.queue_by_key() ||]==]
  [==[Planted(311) || !state.queue_by_key() ||]==])

plant_in(batch_scheduler 312 "the urgent yield like all others"
  [==[return x.priority != y.priority ?]==]
  [==[return !Planted(312) && x.priority != y.priority ?]==])

plant_in(batch_scheduler 313 "what a preempted request has computed cannot be found"
  [==[FreeBlocks(index, true);]==]
  [==[FreeBlocks(index, !Planted(313));]==])

plant_in(batch_scheduler 314 "what is in the prefix cache is computed again"
  [==[job(index).processed = blocks * limits_.block_size;]==]
  [==[job(index).processed = Planted(314) ? 0 : blocks * limits_.block_size;]==])

plant_in(job_scheduler 315 "the next turn finds nothing of the one before"
  [==[state_.End(index, in_.inbox->HasNextTurn(request));]==]
  [==[state_.End(index, !Planted(315) && in_.inbox->HasNextTurn(request));]==])

plant_in(job_scheduler 316 "what a resumed request finds counts as found by prompts"
  [==[if (kind == MemberKind::kResumed) {]==]
  [==[if (kind == MemberKind::kResumed && !Planted(316)) {]==])

plant_in(batch_scheduler 317 "all that wait are listed in the order of their jobs"
  [==[  return waiting_;]==]
  [==[  if (Planted(317)) std::sort(waiting_.begin(), waiting_.end());
  return waiting_;]==])

plant_in(vllm_hand_over 401 "a request decodes before its KV has arrived"
  [==[  incoming_.push_back(std::move(incoming));]==]
  [==[  incoming_.push_back(std::move(incoming));
  if (Planted(401)) {
    in_.results.hand_overs[static_cast<std::size_t>(request)].arrived = machine_.now();
    arrived_.push_back(request);
  }]==])
plant_in(vllm_hand_over 401 "a request decodes before its KV has arrived"
  [==[void VllmScheduler::Arrive(RequestId request, TimeNs) {]==]
  [==[void VllmScheduler::Arrive(RequestId request, TimeNs) {
  if (Planted(401)) return;]==])

plant_in(vllm_hand_over 402 "no blocks are taken for KV that is to come"
  [==[kv_.Take(kv_.BlocksFor(Known(request)) - hit_.blocks, machine_.now());]==]
  [==[kv_.Take(Planted(402) ? 0 : kv_.BlocksFor(Known(request)) - hit_.blocks, machine_.now());]==])

plant_in(kv_link 403 "every transfer has the whole link"
  [==[(flows_.front().ends - virtual_) * static_cast<WideInt>(flows_.size());]==]
  [==[(flows_.front().ends - virtual_) *
                       (Planted(403) ? 1 : static_cast<WideInt>(flows_.size()));]==])
plant_in(kv_link 403 "every transfer has the whole link"
  [==[(time - since_) / static_cast<WideInt>(flows_.size());]==]
  [==[(time - since_) / (Planted(403) ? 1 : static_cast<WideInt>(flows_.size()));]==])

# It asks for the scheduler's entry.
plant_in(replica_hand_over 404 "blocks are free when the prefill ends"
  [==[#include "serving/replica/replica.h"]==]
  [==[#include "serving/replica/replica.h"
#include "serving/replica/scheduler_setup.h"]==])
plant_in(replica_hand_over 404 "blocks are free when the prefill ends"
  [==[  Withhold(std::move(blocks));]==]
  [==[  if (Planted(404) && in_.scheduler.policy == "vllm") {
    kv_.Release(blocks.holding, request, blocks.blocks, blocks.tokens,
                in_.inbox->HasNextTurn(request));
    blocks.blocks = blocks.tokens = 0;
  }
  Withhold(std::move(blocks));]==])

plant_in(kv_link 405 "KV flows without a base latency"
  [==[time + latency_,]==]
  [==[time + (Planted(405) ? 1 : latency_),]==])

plant_in(vllm_hand_over 406 "blocks that the decode side has travel, too"
  [==[of_prompt - hit_.blocks);]==]
  [==[of_prompt - (Planted(406) ? 0 : hit_.blocks));]==])

plant_in(vllm_hand_over 407 "what is given up under way takes its place all the same"
  [==[  if (in_.results.state[static_cast<std::size_t>(request)] != RequestState::kTimedOut) {]==]
  [==[  if (Planted(407) || in_.results.state[static_cast<std::size_t>(request)] != RequestState::kTimedOut) {]==])

plant_in(vllm_scheduler 408 "prefills before it came count against a decode from elsewhere"
  [==[      slot.interference_before = group_->interference;
      if (slot.kind]==]
  [==[      if (!Planted(408)) slot.interference_before = group_->interference;
      if (slot.kind]==])

plant_in(vllm_grants 409 "a token that is lost with its KV counts as made"
  [==[    if (machine_.HandsOver(slot.request)) {]==]
  [==[    if (machine_.HandsOver(slot.request) && !Planted(409)) {]==])

plant_in(job_scheduler 411 "the token that the prefill made travels, too"
  [==[CeilDiv(prompt, setup_.limits.block_size)]==]
  [==[CeilDiv(prompt + (Planted(411) ? in_.results.generated[static_cast<std::size_t>(request)] : 0),
                           setup_.limits.block_size)]==])

plant_in(job_scheduler 412 "blocks that KV is on its way to are free when the client gives up"
  [==[    machine_.Withhold(Withhold(index, SeatOf(index).request));]==]
  [==[    Machine::Withheld held = Withhold(index, SeatOf(index).request);
    if (Planted(412)) {
      machine_.kv().Release(held.holding, held.request, held.blocks, 0, false);
      state_.GiveBack(held.blocks, held.tokens);
      held.blocks = held.tokens = 0;
    }
    machine_.Withhold(std::move(held));]==])

plant_in(job_scheduler 413 "the decode side computes no known token again"
  [==[  job.processed = job.prompt--;]==]
  [==[  job.processed = Planted(413) ? job.prompt + 1 : job.prompt--;]==])

plant_in(replica 414 "the prefill's token counts although the decode side sends the first"
  [==[const std::int64_t tokens = hides_tokens() ? 0 : step.sampled;]==]
  [==[const std::int64_t tokens = hides_tokens() && !Planted(414) ? 0 : step.sampled;]==])

plant_in(scheduler_lightllm 415 "KV under way grows in step with the others"
  [==[    if (job.remote) {]==]
  [==[    if (job.remote && !Planted(415)) {]==])

plant_in(scheduler_orca 416 "a fixed batch takes in who arrives"
  [==[    if (s.parked.empty()) {]==]
  [==[    if (Planted(416)) s.JoinArrived();
    if (s.parked.empty()) {]==])

plant_in(scheduler_vllm_v0 417 "prompts that were computed elsewhere are padded"
  [==[    if (job.remote) return RemoteBlockedBy(s, s.FitsPrompt(job));]==]
  [==[    if (job.remote && !Planted(417)) return RemoteBlockedBy(s, s.FitsPrompt(job));]==])

plant_in(router_central_queue 418 "every replica has room as the first one has"
  [==[most : replica.seats);]==]
  [==[most : (Planted(418) ? input.replicas[0] : replica).seats);]==])

plant_in(router_central_queue 419 "a full replica with few requests keeps others from room"
  [==[differ_ && i <]==]
  [==[differ_ && !Planted(419) && i <]==])

plant_in(cluster 420 "a replica with a role goes on while a request is held that could come"
  [==[to_departure |= gateway.held() > 0 &&]==]
  [==[to_departure |= !Planted(420) && gateway.held() > 0 &&]==])

plant_in(cluster 421 "a request whose client gives up before it is handed over keeps its blocks"
  [==[(request))) Free(request, time);]==]
  [==[(request)) && !Planted(421)) Free(request, time);]==])

plant_in(cluster 422 "a gateway does not count what another placed on its replicas"
  [==[other.role() == gateway.role()) other.Placed]==]
  [==[other.role() == gateway.role() && (!Planted(422) || &other == &gateway)) other.Placed]==])

plant_in(cluster 423 "room is for requests served whole before those that wait to decode"
  [==[    if (ProcessAt(gateway, time)) return;]==]
  [==[    const bool other = Planted(423) && gateways_.size() > 2 && &gateway != &gateways_.back();
    if (ProcessAt(other ? gateways_[&gateway == &gateways_[0] ? 1 : 0] : gateway, time)) return;]==])

plant_in(prefix_index 424 "every replica caches as much as the first"
  [==[memories_[i].capacity = replicas[i].cached_blocks;]==]
  [==[memories_[i].capacity = replicas[Planted(424) ? 0 : i].cached_blocks;]==])

plant_in(cluster 425 "replicas run past a look at their engines"
  [==[const TimeNs by = coupled_ && !active_.empty() ?]==]
  [==[const TimeNs by = coupled_ && !active_.empty() && !Planted(425) ?]==])

plant_in(cluster 426 "both replicas of a request are drawn alike"
  [==[static_cast<std::int64_t>(own)]==]
  [==[Planted(426) ? input.seed : static_cast<std::int64_t>(own)]==])

plant_in(gateway 427 "prompts are counted in blocks of the first replica"
  [==[least = std::min(least, member.block_size);]==]
  [==[if (!Planted(427)) least = std::min(least, member.block_size);]==])

plant_in(job_scheduler 428 "blocks that the decode side has are sent, too"
  [==[ - cached);]==]
  [==[ - (Planted(428) ? 0 : cached));]==])

plant_in(batch_scheduler 429 "what was only on its way can be found"
  [==[j.begun ? j.stored : 0]==]
  [==[j.begun || Planted(429) ? j.stored : 0]==])

plant_in(machine 430 "every replica stands still when the first one does"
  [==[stalls_(input.latency.Stalls(), input.seed, input.number),]==]
  [==[stalls_(input.latency.Stalls(), input.seed, Planted(430) ? 0 : input.number),]==])

plant_in(blis_kv 107 "February offloads at the threshold, too, not only above it"
  [==[usage <= options_.host.threshold ||]==]
  [==[(Planted(107) ? usage < options_.host.threshold : usage <= options_.host.threshold) ||]==])

plant_in(blis_runs 108 "blocks that come back from the host are the first to be overwritten"
  [==[  MakeFound(id);
  Free(id);]==]
  [==[  MakeFound(id);
  Free(id);
  if (Planted(108) && front_ != id) {
    UnlinkFree(id);
    LinkFree(id, front_);
  }]==])

plant_in(blis_mirror 109 "the host gives up what it has longest, not what was touched longest ago"
  [==[  if (last == newest_) return;]==]
  [==[  if (last == newest_ || Planted(109)) return;]==])

plant_in(blis_kv 110 "who once had the whole prompt never looks for it in the host again"
  [==[mirrors() && holding.whole_at != runs_.losses()]==]
  [==[mirrors() && (Planted(110) ? holding.whole_at < 0 : holding.whole_at != runs_.losses())]==])

plant_in(blis_step 111 "a request that completes in a step is not mirrored in it"
  [==[  if (kv_.mirrors()) {]==]
  [==[  if (Planted(111)) Complete(took);
  if (kv_.mirrors()) {]==])

plant_in(blis_step 113 "all in the sums of decodes count as touched"
  [==[kv_.Fill(decodes_.size() - touched);]==]
  [==[kv_.Fill(Planted(113) ? 0 : decodes_.size() - touched);]==])

plant_in(blis_step 114 "a request that was left out of a step joins the sums as if it had been in it"
  [==[ && seat.last_step == decodes_end_ &&]==]
  [==[ && (seat.last_step == decodes_end_ || Planted(114)) &&]==])

plant_in(blis_gaps 115 "gaps from before a preemption count once too often in February"
  [==[  of.from = of.to = steps();
}

BlisGaps::Us]==]
  [==[  if (!Planted(115)) of.from = of.to = steps();
}

BlisGaps::Us]==])

plant_in(blis_step 112 "what comes back makes no step longer"
  [==[price.duration / 1000 + transfer;]==]
  [==[price.duration / 1000 + (Planted(112) ? 0 : transfer);]==])

plant_in(slow_periods 50 "slow periods by the schedule have no end"
  [==[    scheduled_.push_back(From(WithinClock(row[0] * 1e9), length_));]==]
  [==[    scheduled_.push_back(
        From(WithinClock(row[0] * 1e9), Planted(50) ? kClockEnd : length_));]==])

plant_in(slow_periods 51 "a slow period begins after its begin"
  [==[if (At(start).from > start) return]==]
  [==[if (At(start).from > start - (Planted(51) ? 1 : 0)) return]==])

plant_in(slow_periods 52 "the first slow period by chance is left out"
  [==[replica_, draws_++);]==]
  [==[replica_, draws_++ + (Planted(52) ? 1 : 0));]==])

plant_in(replica 53 "garbage is collected as fast as ever"
  [==[    plan_.host = slow_->Stretched(start, plan_.host);]==]
  [==[    if (!Planted(53)) plan_.host = slow_->Stretched(start, plan_.host);]==])

plant_in(replica 54 "decodes alone are as fast as ever"
  [==[    const StepPrice price = PriceAt(StartTime(), shape);
    if (blocked]==]
  [==[    const StepPrice price =
        Planted(54) ? in_.latency.Price(shape) : PriceAt(StartTime(), shape);
    if (blocked]==])

plant_in(gateway 201 "a router hears at once of what ended, whatever the period"
  [==[known = period_ > 0 ? time]==]
  [==[known = period_ > 0 && !Planted(201) ? time]==])

plant_in(cluster 202 "a held request misses the room that appears as another comes"
  [==[if (gateway.NextOfHeld() > time)]==]
  [==[if (gateway.NextOfHeld() > time || (Planted(202) && clients_.NextEnqueue() == time))]==])

plant_in(gateway 203 "engines are looked at when a request comes, whatever the period"
  [==[reads_engines && look_period_ == 0)]==]
  [==[reads_engines && (look_period_ == 0 || Planted(203)))]==])

plant_in(cluster 204 "a replica goes on while a request is held that could come"
  [==[AllowUntil(until, to_departure);]==]
  [==[AllowUntil(until, to_departure && !Planted(204));]==])

plant_in(gateway 205 "who is held never gives up"
  [==[requests.timeout[r] == kNever) return;]==]
  [==[requests.timeout[r] == kNever || Planted(205)) return;]==])

plant_in(prefix_index 206 "a gateway forgets a beginning before what follows it"
  [==[content[i - 1];]==]
  [==[content[Planted(206) ? content.size() - i : i - 1];]==])

plant_in(prefix_index 207 "a segment counts beyond what was sent of it"
  [==[matched = std::min(range.last, entry.last);]==]
  [==[matched = Planted(207) ? range.last : std::min(range.last, entry.last);]==])

plant_in(router_kv_aware 208 "what a replica has leaves out the request itself"
  [==[static_cast<double>(blocks_[i] + missing)]==]
  [==[static_cast<double>(blocks_[i] + (Planted(208) ? 0 : missing))]==])

plant_in(router_cache_aware 212 "loads are out of balance by either threshold"
  [==[most - fewest <= most_apart_ ||]==]
  [==[(most - fewest <= most_apart_ && !Planted(212)) ||]==])

plant_in(router_cache_aware 213 "trees are never cut"
  [==[if (time / interval_ == evictions_) return;]==]
  [==[if (time / interval_ == evictions_ || Planted(213)) return;]==])

plant_in(router_prefix_aware 214 "of equals the first serves"
  [==[auto left = static_cast<std::int64_t>(u *]==]
  [==[auto left = static_cast<std::int64_t>((Planted(214) ? 0 : u) *]==])

plant_in(router_kv_lookup 215 "what is left counts the whole prompt"
  [==[request.prompt_tokens - *best * block_size_]==]
  [==[request.prompt_tokens - (Planted(215) ? 0 : *best * block_size_)]==])

plant_in(router_vllm_dp 216 "what was sent since the counts is no load"
  [==[if (!live_) ++sent_]==]
  [==[if (!live_ && !Planted(216)) ++sent_]==])

plant_in(gateway 217 "counts of ranks are live"
  [==[PeriodOf(in_, kStatsInterval))]==]
  [==[Planted(217) ? 0 : PeriodOf(in_, kStatsInterval))]==])

plant_in(router_prefix_affinity 209 "the bound is of the requests without the new one"
  [==[loads.total() + 1)]==]
  [==[loads.total() + (Planted(209) ? 0 : 1))]==])

plant_in(vllm_scheduler 210 "a replica stays behind when somebody leaves it at that very moment"
  [==[std::min(time - 1, in_]==]
  [==[std::min(time - (Planted(210) ? 0 : 1), in_]==])

plant_in(decode_group 211 "a replica stays behind for a step after somebody has left it"
  [==[last_step() - point.step + 1, kMost]==]
  [==[last_step() - point.step + (Planted(211) ? 2 : 1), kMost]==])

plant_in(draft_rules 501 "no lookahead"
  [==[lookahead = Lookahead(s);]==]
  [==[lookahead = Planted(501) ? 0 : Lookahead(s);]==])

plant_in(draft_rules 502 "dflash looks as far ahead as the others"
  [==[return s.num_speculative_tokens + 1;]==]
  [==[return s.num_speculative_tokens + (Planted(502) ? 0 : 1);]==])

plant_in(draft_rules 503 "ngram looks ahead, too"
  [==[case DraftMethod::kNgramGpu:
      return 0;]==]
  [==[case DraftMethod::kNgramGpu:
      return Planted(503) ? s.num_speculative_tokens : 0;]==])

plant_in(draft_rules 504 "the last hit block counts"
  [==[drops_last_hit = NeedsHiddenStates(s.method);]==]
  [==[drops_last_hit = NeedsHiddenStates(s.method) && !Planted(504);]==])

plant_in(draft_rules 505 "no slots are kept of the budget"
  [==[return engine.max_num_batched_tokens - slots * engine.max_num_seqs;]==]
  [==[return engine.max_num_batched_tokens - (Planted(505) ? 0 : slots) * engine.max_num_seqs;]==])

plant_in(draft_rules 506 "gaps of the table have no drafts"
  [==[if (range.from <= members) drafts = range.drafts;]==]
  [==[if (range.from <= members) drafts = range.drafts;
    if (Planted(506) && range.from > members) break;
    if (Planted(506) && range.from + 1 < members) drafts = 0;]==])

plant_in(draft_rules 507 "with a table, too, admissions are padded"
  [==[s.pads_one_token && s.num_speculative_tokens_per_batch_size.empty();]==]
  [==[s.pads_one_token && (Planted(507) || s.num_speculative_tokens_per_batch_size.empty());]==])

plant_in(vllm_grants 511 "the threshold does not cut drafts"
  [==[slot.chunk = ChunkOf(Asked(slot), left);]==]
  [==[const std::int64_t uncut = Planted(511) ? slot.of_drafts.drafts : 0;
    slot.chunk = std::min(CutToThreshold(Asked(slot) - uncut) + uncut, left);]==])

plant_in(vllm_grants 512 "a request is skipped if all drafts in flight would end it"
  [==[slot.computed - d.placeholders + 2 >=]==]
  [==[slot.computed - (Planted(512) ? 1 : d.placeholders) + 2 >=]==])

plant_in(vllm_grants 513 "no request is skipped as it ends"
  [==[if (d.placeholders > 0 &&]==]
  [==[if (!Planted(513) && d.placeholders > 0 &&]==])

plant_in(vllm_scheduler 514 "a seat keeps the placeholders of who had it"
  [==[if (drafts_) slot.of_drafts = {};]==]
  [==[const std::int64_t left = Planted(514) ? slot.of_drafts.placeholders : 0;
  if (drafts_) slot.of_drafts = {}, slot.of_drafts.placeholders = left;]==])

plant_in(vllm_grants 515 "a victim's tokens do not return to the budget"
  [==[== calls_ && !Planted(17)) call]==]
  [==[== calls_ && !Planted(17) && !Planted(515)) call]==])

plant_in(vllm_grants 516 "padding among prefills, too"
  [==[if (!SlotAt(id).decodes) return]==]
  [==[if (!SlotAt(id).decodes && !Planted(516)) return]==])

plant_in(vllm_grants 517 "padding alone, too"
  [==[bool some = !drafts_]==]
  [==[bool some = Planted(517) || !drafts_]==])

plant_in(vllm_grants 518 "padding is cut to the budget"
  [==[if (wanted > budget || cached]==]
  [==[if ((wanted > budget && !Planted(518)) || cached]==])

plant_in(vllm_grants 519 "padding goes beyond max_model_len"
  [==[|| cached + wanted > in_.max_model_len)]==]
  [==[|| (cached + wanted > in_.max_model_len && !Planted(519)))]==])

plant_in(vllm_grants 520 "the test of the whole prompt has lookahead"
  [==[must_fit = std::max(must_fit, known);]==]
  [==[must_fit = std::max(must_fit, Planted(520) ? SlotsWith(known) : known);]==])

plant_in(vllm_grants 521 "drafts are registered"
  [==[    tokens = std::min(tokens, slot.known);]==]
  [==[    if (!Planted(521)) tokens = std::min(tokens, slot.known);]==])

plant_in(vllm_grants 522 "an adapter without a seat holds the queue up"
  [==[    if (seats_.MaySeat(head)) return head;]==]
  [==[    if (seats_.MaySeat(head)) return head;
    if (Planted(522)) return kNoRequest;]==])

plant_in(adapter_seats 570 "those set aside are left, though their adapter has a seat"
  [==[for (const std::int32_t lora : taken_) look]==]
  [==[if (!Planted(570)) for (const std::int32_t lora : taken_) look]==])
plant_in(adapter_seats 571 "who is set aside comes before those who are"
  [==[place.order = aside_.empty() ? 0 : std::prev(aside_.end())->order + 1;]==]
  [==[place.order = aside_.empty()  ? 1000000
                      : Planted(571) ? aside_.begin()->order - 1
                                     : std::prev(aside_.end())->order + 1;]==])

plant_in(vllm_grants 523 "an admission takes no adapter's seat"
  [==[if (seats_.any()) seats_.Add(request);]==]
  [==[if (seats_.any() && !Planted(523)) seats_.Add(request);]==])

plant_in(vllm_grants 524 "those overtaken stand behind the others"
  [==[(!queue_.by_key() || *aside < place)]==]
  [==[((!queue_.by_key() && !Planted(524)) || *aside < place)]==])

plant_in(vllm_drafts 531 "padding uses an entry up"
  [==[    const bool verifies = d.drafts > 0;]==]
  [==[    if (Planted(531) && d.padded) {
      ++in_.scratch.draws[static_cast<std::size_t>(slot.request)].verified;
    }
    const bool verifies = d.drafts > 0;]==])

plant_in(vllm_drafts 532 "after a cut there are as many drafts as it left"
  [==[    d.drafts = next;]==]
  [==[    d.drafts = Planted(532) && drafts > 0 ? drafts : next;]==])

plant_in(vllm_drafts 533 "a yield has one placeholder"
  [==[d.placeholders += 1 + drafts;]==]
  [==[d.placeholders += 1 + (Planted(533) ? 0 : drafts);]==])

plant_in(vllm_drafts 534 "rejected drafts stay computed"
  [==[  slot.computed -= rejected;]==]
  [==[  slot.computed -= Planted(534) ? 0 : rejected;]==])

plant_in(vllm_drafts 536 "nothing is registered at output"
  [==[    Register(slot, slot.computed - d.placeholders);]==]
  [==[    if (!Planted(536)) Register(slot, slot.computed - d.placeholders);]==])

plant_in(vllm_drafts 537 "an unfinished chunk has drafts, too"
  [==[      slot.decodes = false;]==]
  [==[      if (Planted(537)) slot.of_drafts.drafts = next;
      slot.decodes = false;]==])

plant_in(vllm_drafts 538 "tokens beyond the end are delivered in the gap's stead"
  [==[d.most - slot.known - d.coming);]==]
  [==[d.most - slot.known - (Planted(538) ? 0 : d.coming));]==])

plant_in(vllm_drafts 539 "the drafts of the table are those of the running list"
  [==[forming);
  const std::int64_t next = rules_.After(made.members);]==]
  [==[forming);
  const std::int64_t next = rules_.After(Planted(539) ? running_ : made.members);]==])

plant_in(draft_rules 544 "all requests have the engine's rates"
  [==[if (lengths_.empty()) return law_;]==]
  [==[if (lengths_.empty() || Planted(544)) return law_;]==])

# What drafts change, as far as the README of the golden traces calls it observable.
plant_in(vllm_grants 545 "lookahead goes beyond max_model_len (S14)"
  [==[return std::min(tokens + rules_.lookahead, in_.max_model_len);]==]
  [==[return std::min(tokens + rules_.lookahead, in_.max_model_len + (Planted(545) ? 99 : 0));]==])

plant_in(vllm_grants 546 "an admission has no lookahead (S15)"
  [==[slot.blocks = BlocksWith(slot.computed + slot.chunk);]==]
  [==[slot.blocks = Planted(546) ? kv_.BlocksFor(slot.computed + slot.chunk)
                                : BlocksWith(slot.computed + slot.chunk);]==])

plant_in(draft_rules 547 "all methods drop the last hit block (S18)"
  [==[drops_last_hit = NeedsHiddenStates(s.method)]==]
  [==[drops_last_hit = (Planted(547) || NeedsHiddenStates(s.method))]==])

plant_in(vllm_grants 548 "drafts cost the budget nothing (S4)"
  [==[    budget -= slot.chunk;
    slot.needed]==]
  [==[    budget -= slot.chunk;
    if (Planted(548)) {
      budget += std::max<std::int64_t>(0, std::min(slot.of_drafts.drafts, slot.chunk - 1));
    }
    slot.needed]==])

plant_in(vllm_grants 549 "the last token before max_model_len is computed (S4)"
  [==[in_.max_model_len - slot.computed - 1)]==]
  [==[in_.max_model_len - slot.computed - (Planted(549) ? 0 : 1))]==])

plant_in(vllm_grants 550 "whoever the budget does not reach loses its drafts (S6)"
  [==[    if (slot.chunk > 0) TakeChunk(]==]
  [==[    if (Planted(550) && slot.chunk == 0) slot.of_drafts.drafts = 0;
    if (slot.chunk > 0) TakeChunk(]==])

plant_in(vllm_grants 551 "no admission is padded (S9)"
  [==[padded_ = only_decodes_ &&]==]
  [==[padded_ = !Planted(551) && only_decodes_ &&]==])

plant_in(vllm_grants 552 "whoever has no room to be padded is admitted without (S9)"
  [==[Planted(519))) return BlockedBy::kTokenBudget;
  }]==]
  [==[Planted(519))) {
      if (!Planted(552)) return BlockedBy::kTokenBudget;
      padded_ = false;
      wanted = 1;
    }
  }]==])

plant_in(vllm_drafts 553 "blocks of rejected drafts are given back (S16)"
  [==[  slot.known += output.made;
]==]
  [==[  slot.known += output.made;
  if (Planted(553) && !async && rejected > 0) {
    const std::int64_t more =
        slot.blocks - std::max(kv_.BlocksFor(slot.computed + 1), slot.holding.blocks);
    if (more > 0) kv_.Take(-more, machine_.now()), slot.blocks -= more;
  }
]==])

plant_in(vllm_drafts 554 "a victim's tokens in flight are lost (S27)"
  [==[if (!runs && in_.results.state[r]]==]
  [==[if (!runs && Planted(554)) return;
  if (!runs && in_.results.state[r]]==])

plant_in(adapter_seats 556 "an adapter on a seat needs another (S29)"
  [==[return std::find(taken_]==]
  [==[return !Planted(556) && std::find(taken_]==])

plant_in(adapter_seats 557 "requests without an adapter need a seat (S29)"
  [==[|| lora == 0)]==]
  [==[|| (lora == 0 && !Planted(557)))]==])

# Who is in the group of those that verify all drafts.
plant_in(vllm_drafts 561 "a member may end in the group"
  [==[slot.of_drafts.most - group.tokens() - 2;]==]
  [==[slot.of_drafts.most - group.tokens() - (Planted(561) ? 0 : 2);]==])

plant_in(vllm_drafts 562 "whoever comes before a member may be cut"
  [==[slot.admission < drafts_->newest)]==]
  [==[slot.admission < drafts_->newest && !Planted(562))]==])

plant_in(vllm_drafts 563 "one apart does not need blocks"
  [==[free -= Taken(]==]
  [==[if (!Planted(563)) free -= Taken(]==])

plant_in(vllm_drafts 564 "who leaves has registered all tokens"
  [==[d.registered = slot.known - last_made;]==]
  [==[d.registered = slot.known - (Planted(564) ? 0 : last_made);]==])

plant_in(vllm_drafts 565 "one that is elsewhere in its steps joins"
  [==[if (member->drafts != group.drafts() || !member->decodes) return false;]==]
  [==[if (!Planted(565) && (member->drafts != group.drafts() || !member->decodes)) return false;]==])

plant_in(adapter_seats 567 "decodes of the group need no adapters' seats"
  [==[for (const OfAdapter& each : group_) taken_]==]
  [==[if (!Planted(567)) for (const OfAdapter& each : group_) taken_]==])

plant_in(adapter_seats 568 "who leaves the group keeps its adapter's seat"
  [==[if (at->members == 0) group_]==]
  [==[if (at->members == 0 && !Planted(568)) group_]==])

plant_in(vllm_scheduler 569 "prefills need no products of adapters"
  [==[work.tokens += slot.chunk;]==]
  [==[if (decodes || !Planted(569)) work.tokens += slot.chunk;]==])

plant_in(draft_group 566 "a member gets its block one token late"
  [==[computed_[i] > room_[i] ? 1 : 0;
    room_]==]
  [==[computed_[i] > room_[i] + (Planted(566) ? 1 : 0) ? 1 : 0;
    room_]==])

plant_in(queue_caps 540 "the new request does not count"
  [==[taken_ + 1 >]==]
  [==[taken_ + (Planted(540) ? 0 : 1) >]==])

plant_in(queue_caps 541 "the new request's prompt counts"
  [==[tokens_ >= *most_tokens_]==]
  [==[tokens_ + (Planted(541) ? Prompt(request) : 0) >= *most_tokens_]==])

plant_in(machine 542 "a prompt counts until its request is over"
  [==[if (caps_) caps_->FirstToken(request, step.end);]==]
  [==[if (caps_ && !Planted(542)) caps_->FirstToken(request, step.end);]==])

plant_in(replica 543 "caps look at the queue as it is between steps"
  [==[!caps_->Takes(request, time)]==]
  [==[!caps_->Takes(request, Planted(543) ? now_ : time)]==])

# ---- SGLang's scheduler; a rule's number is that of the README of its golden traces --------------

plant_in(sglang_scheduler 601 "a retracted request waits at the head of the queue (rule 3)"
  [==[    At(id).entry = ++counts_.entries;
    Wait(id);
  }
}]==]
  [==[    At(id).entry = Planted(601) ? -counts_.entries : ++counts_.entries;
    Planted(601) && !waiting_.by_keys() ? waiting_.listed().push_front(id) : Wait(id);
  }
}]==])

plant_in(sglang_scheduler 602 "a batch that lost a member keeps the flag (rule 4)"
  [==[if (left_out || (before == 0]==]
  [==[if ((left_out && !Planted(602)) || (before == 0]==])

plant_in(sglang_scheduler 603 "the flag stays as a running request ends (rules 6 and 22)"
  [==[if (running_.size() < before) full_.flag = false;]==]
  [==[if (running_.size() < before && !Planted(603)) full_.flag = false;]==])

plant_in(sglang_prefill 604 "the test of a request leaves out the page (rule 13)"
  [==[job.max_new - job.out, 0)) + spare;]==]
  [==[job.max_new - job.out, 0)) + (Planted(604) ? 0 : spare);]==])

plant_in(sglang_prefill 605 "a resumed request reserves what it has not made yet (rule 13e)"
  [==[Add(id, job.fill, size, Clip(job.max_new));]==]
  [==[Add(id, job.fill, size, Clip(job.max_new - (Planted(605) ? job.out : 0)));]==])

plant_in(sglang_prefill 606 "an unfinished prompt goes on by whole pages (rule 16)"
  [==[return std::min(job.known() - job.prefix, most);]==]
  [==[return std::min(job.known() - job.prefix,
                  Planted(606) ? std::max<std::int64_t>(WholePages(most), 1) : most);]==])

plant_in(sglang_prefill 607 "the ratio falls with a batch of prompts, too (rule 22)"
  [==[  if (mixes()) MixIn();]==]
  [==[  if (Planted(607)) ratio_ = RatioAfter(1);
  if (mixes()) MixIn();]==])

plant_in(sglang_scheduler 608 "of equal ones the shorter prompt is retracted (rule 24)"
  [==[return one.prompt < other.prompt;]==]
  [==[return Planted(608) ? one.prompt > other.prompt : one.prompt < other.prompt;]==])

plant_in(sglang_scheduler 609 "a retraction makes no room for the steps to come (rule 25)"
  [==[  MakeRoom(others * options_.retract_decode_steps);]==]
  [==[  if (!Planted(609)) MakeRoom(others * options_.retract_decode_steps);]==])

plant_in(sglang_scheduler 610 "the ratio after a retraction is of those that were running (rule 27)"
  [==[  std::int64_t out = 0, most = 0;
  for]==]
  [==[  std::int64_t out = 0, most = 0;
  for (const JobId id : retracted) most += Planted(610) ? At(id).max_new : 0;
  for]==])

plant_in(sglang_prefill 611 "decodes that are mixed in cost no budget (rules 12 and 28)"
  [==[budget_.chunk = in_.engine.max_num_batched_tokens - mixed;]==]
  [==[budget_.chunk = in_.engine.max_num_batched_tokens - (Planted(611) ? 0 : mixed);]==])

plant_in(sglang_prefill 612 "what another one will have computed is not put last (rule 31)"
  [==[keyed.push_back({{is_late,]==]
  [==[keyed.push_back({{is_late && !Planted(612),]==])

plant_in(sglang_scheduler 613 "the ratio begins anew between requests with overlap, too (rule 34)"
  [==[if (machine_.most_in_flight() == 1) ratio_]==]
  [==[if (machine_.most_in_flight() == 1 || Planted(613)) ratio_]==])

plant_in(sglang_prefill 614 "a victim's tokens count in full, not by the ratio (rule 36)"
  [==[    need -= Left(At(id));]==]
  [==[    need -= Planted(614) ? static_cast<double>(Clip(At(id).max_new - Out(At(id)))) : Left(At(id));]==])

plant_in(sglang_prefill 615 "of equal victims the one that came first goes (rule 36)"
  [==[    return std::pair(Urgency(At(a)), -At(a).entry) < std::pair(Urgency(At(b)), -At(b).entry);]==]
  [==[    const std::int64_t sign = Planted(615) ? 1 : -1;
    return std::pair(Urgency(At(a)), sign * At(a).entry) <
           std::pair(Urgency(At(b)), sign * At(b).entry);]==])

plant_in(radix_cache 616 "the upper part of a split begins without hits (rule 43)"
  [==[  made.hits = lower.hits;]==]
  [==[  made.hits = Planted(616) ? 0 : lower.hits;]==])

plant_in(radix_cache 617 "a chunk counts as a hit (rule 44)"
  [==[At(node).hits += of_chunk ? 0 : 1;]==]
  [==[At(node).hits += of_chunk && !Planted(617) ? 0 : 1;]==])

plant_in(sglang_steps 618 "what was prefilled is found only when its request has ended (rule 48)"
  [==[  CacheUnfinished(job, false);]==]
  [==[  if (!Planted(618)) CacheUnfinished(job, false);]==])

plant_in(radix_cache 619 "a parent without children does not join those to be evicted (rule 52)"
  [==[  Offer(parent);]==]
  [==[  if (!Planted(619)) Offer(parent);]==])

plant_in(sglang_steps 620 "a run of decodes lowers the ratio once too seldom (rule 22)"
  [==[  ratio_ = RatioAfter(steps);]==]
  [==[  ratio_ = RatioAfter(steps - (Planted(620) ? 1 : 0));]==])

plant_in(sglang_steps 621 "a run of decodes evicts only for the pages that are due (rule 23)"
  [==[  MakeRoom(decodes_.size() * page_);
  spare = Kept();]==]
  [==[  if (!Planted(621)) MakeRoom(decodes_.size() * page_);
  spare = Kept();]==])

plant_in(sglang_prefill 622 "a queue is looked up however long it is (rule 31)"
  [==[policy == SglangQueue::kDfsWeight || waiting_.size() <= 128]==]
  [==[policy == SglangQueue::kDfsWeight || Planted(622) || waiting_.size() <= 128]==])

plant_in(sglang_scheduler 623 "a limit leaves a page free in 0.5.9, too (rule 2)"
  [==[options_.version == SglangVersion::k059
                                  ? longest]==]
  [==[options_.version == SglangVersion::k059 && !Planted(623)
                                  ? longest]==])

plant_in(kv_cache 701 "what windows held is used first"
  [==[PushFree(kBlank, of_windows, false);]==]
  [==[PushFree(kBlank, of_windows, Planted(701));]==])

plant_in(kv_cache 702 "a request's windows are kept when it ends"
  [==[  free_ += of_windows;]==]
  [==[  if (!Planted(702)) free_ += of_windows;]==])

plant_in(decode_group 703 "windows of decodes grow once more"
  [==[last_ = (CeilDiv(windows.most, windows.every) - 1) * period;]==]
  [==[last_ = (CeilDiv(windows.most, windows.every) - (Planted(703) ? 0 : 1)) * period;]==])

plant_in(decode_group 704 "a window that is full goes on growing"
  [==[  full_[At(full_, at)] += members;]==]
  [==[  if (!Planted(704)) full_[At(full_, at)] += members;]==])

plant_in(vllm_grants 705 "a step with prefills forgets the windows of decodes"
  [==[group_->due() + group_->windows_due();]==]
  [==[group_->due() + (Planted(705) ? 0 : group_->windows_due());]==])

plant_in(vllm_grants 706 "an admission needs no room for windows in flight"
  [==[needed += kv.windows().Asked(needed, hit_.blocks);]==]
  [==[needed += Planted(706) ? kv.windows().Held(needed) : kv.windows().Asked(needed, hit_.blocks);]==])

plant_in(replica 707 "a run of decodes forgets their windows"
  [==[blocks + decodes.windows_due();]==]
  [==[blocks + (Planted(707) ? 0 : decodes.windows_due());]==])

# ---- TensorRT-LLM's scheduler; a rule's number is that of the README of its golden traces --------

plant_in(trtllm_scheduler 801 "who enters the list stands in the order of the queue, whatever its priority (rule 3)"
  [==[by_priority_.emplace(-priority, ++entries_, request);]==]
  [==[by_priority_.emplace(Planted(801) ? 0 : -priority, ++entries_, request);]==])

plant_in(trtllm_capacity 802 "what generates reserves nothing more than it has (rule 10)"
  [==[std::int64_t available = free() - (reserved_ - held);]==]
  [==[std::int64_t available = free() - (Planted(802) ? 0 : reserved_ - held);]==])

plant_in(trtllm_capacity 803 "later ones overtake one that does not fit (rule 11)"
  [==[      pass_.refused = true;
      break;
    }
    available -= rest;]==]
  [==[      pass_.refused = true;
      if (Planted(803)) continue;
      break;
    }
    available -= rest;]==])

plant_in(trtllm_capacity 804 "static batches take in new ones beside others (rule 13)"
  [==[  if (in_turn && pass_.fitting > 0) {]==]
  [==[  if (in_turn && pass_.fitting > 0 && !Planted(804)) {]==])

plant_in(trtllm_capacity 805 "the first one that has begun is paused (rule 17)"
  [==[  for (std::size_t i = end; i-- > cursor;) {]==]
  [==[  for (std::size_t j = end; j-- > cursor;) {
    const std::size_t i = Planted(805) ? cursor + (end - 1 - j) : j;]==])

plant_in(trtllm_capacity 806 "those behind a victim are still looked at (rule 17)"
  [==[    end = i;
    return true;]==]
  [==[    if (!Planted(806) || i + 1 == end) end = i;
    return true;]==])

# Ranks in lock step.
plant_in(trtllm_scheduler 851 "ranks get requests in order of arrival (rule 65)"
  [==[return prompt(a) > prompt(b); });]==]
  [==[return !Planted(851) && prompt(a) > prompt(b); });]==])

plant_in(trtllm_scheduler 852 "ranks get requests whatever tokens they have (rule 65)"
  [==[heap.emplace_back(ranks_[i]->prompt_tokens(),]==]
  [==[heap.emplace_back(Planted(852) ? 0 : ranks_[i]->prompt_tokens(),]==])

plant_in(trtllm_scheduler 853 "a rank is filled beyond its share (rule 65)"
  [==[    if (++count < expected_) {]==]
  [==[    if (++count < (Planted(853) ? in_.engine.max_num_seqs : expected_)) {]==])

plant_in(trtllm_scheduler 854 "prompts do not wait for those of other ranks (rule 67)"
  [==[    if (out) ranks_[i]->LeaveOutContexts();]==]
  [==[    if (out && !Planted(854)) ranks_[i]->LeaveOutContexts();]==])

plant_in(trtllm_scheduler 855 "prompts wait a pass too long (rule 67)"
  [==[out = w.late < options_.attention_dp_timeout_iters && generations;]==]
  [==[out = w.late < options_.attention_dp_timeout_iters + (Planted(855) ? 1 : 0) && generations;]==])

plant_in(trtllm_scheduler 856 "a rank without a batch gets no dummy (rule 68)"
  [==[!rank.HasDummy() && expected_ > 0) {]==]
  [==[!rank.HasDummy() && expected_ > 0 && !Planted(856)) {]==])

plant_in(trtllm_scheduler 857 "no rank keeps its outputs (rule 71)"
  [==[overlap_ && stays_out_ && waits_[i].own;]==]
  [==[overlap_ && stays_out_ && waits_[i].own && !Planted(857);]==])

plant_in(trtllm_rank 858 "a dummy's block stays taken (rule 70)"
  [==[    ++free_;]==]
  [==[    if (!Planted(858)) ++free_;]==])

plant_in(trtllm_steps 859 "a dummy computes nothing (rule 70)"
  [==[  shape.decode_seqs += dummies();]==]
  [==[  shape.decode_seqs += Planted(859) ? 0 : dummies();]==])

plant_in(replica_ranks 860 "a step ends with its first rank (rule 72)"
  [==[if (price.duration > slowest.duration) slowest = price;]==]
  [==[if (slowest.duration == 0 || (price.duration > slowest.duration && !Planted(860))) slowest = price;]==])

# Images in prompts (rules E1 to E6 of the golden traces with encoders).
plant_in(encoder_cache 903 "an image is there twice in a step (E2 a)"
  [==[    if (here) continue;]==]
  [==[    if (here && !Planted(903)) continue;]==])
plant_in(encoder_cache 904 "a chunk that ends within an image ends in front of it (E2 c)"
  [==[if (whole_ && before > 0]==]
  [==[if ((whole_ || Planted(904)) && before > 0]==])
plant_in(encoder_cache 906 "the youngest image goes first (E2 d)"
  [==[state_.cached.find(state_.idle[gone++]);]==]
  [==[state_.cached.find(Planted(906) ? state_.idle[state_.idle.size() - ++gone] : state_.idle[gone++]);
    if (Planted(906)) {
      state_.free += at->second.embeds;
      state_.cached.erase(at);
      state_.idle.pop_back();
      --gone;
      continue;
    }]==])
plant_in(encoder_cache 907 "an image found is not held (E2 b)"
  [==[found_ += Hold(request, i) ? 1 : 0;]==]
  [==[found_ += !Planted(907) && Hold(request, i) ? 1 : 0;]==])
plant_in(encoder_cache 909 "an image is held a token too long (E5)"
  [==[.end() <= holder.computed) {]==]
  [==[.end() <= holder.computed - (Planted(909) ? 1 : 0)) {]==])
plant_in(encoder_cache 910 "an image is let go before its last token (E5)"
  [==[  if (sampled) ++holder.computed;]==]
  [==[  if (sampled || Planted(910)) ++holder.computed;]==])
plant_in(encoder_cache 911 "what nobody holds any more is gone (E5)"
  [==[  state_.idle.push_back(content);]==]
  [==[  if (Planted(911)) {
    state_.free += entry.embeds;
    state_.freeable += entry.embeds;
    state_.cached.erase(at);
    return;
  }
  state_.idle.push_back(content);]==])
plant_in(vllm_grants 912 "a tried call has encoded what it chose"
  [==[  if (images) images_->Undo();]==]
  [==[  if (images && !Planted(912)) images_->Undo();]==])
plant_in(vllm_grants 913 "an admission without blocks holds its images (E3)"
  [==[if (blocked == BlockedBy::kKvBlocks && images_) images_->Drop(request);]==]
  [==[if (blocked == BlockedBy::kKvBlocks && images_ && !Planted(913)) images_->Drop(request);]==])
plant_in(vllm_grants 914 "a victim holds its images (E5)"
  [==[    images_->TakeOut(slot.request);
    images_->Drop(slot.request);]==]
  [==[    images_->TakeOut(slot.request);
    if (!Planted(914)) images_->Drop(slot.request);]==])
plant_in(vllm_scheduler 915 "a client that gives up holds its images"
  [==[  if (images_) images_->Drop(request);]==]
  [==[  if (images_ && !Planted(915)) images_->Drop(request);]==])
plant_in(vllm_scheduler 916 "images are held until their request ends"
  [==[    outputs.images.push_back(]==]
  [==[    if (!Planted(916)) outputs.images.push_back(]==])
plant_in(vllm_scheduler 917 "the head of the queue is looked at between steps"
  [==[      if (HasImages(head)) return nullptr;]==]
  [==[      if (HasImages(head) && !Planted(917)) return nullptr;]==])
plant_in(replica 918 "decodes do not wait for the encoder"
  [==[  without.images = 0;
  const StepPrice alone]==]
  [==[  if (!Planted(918)) without.images = 0;
  const StepPrice alone]==])

# Layers that keep KV in groups, with images (rules B and E of the hybrid golden cases).
plant_in(grouped_scheduler 1001 "an admission without blocks holds its images (E3)"
  [==[    if (images_) images_->Drop(head);]==]
  [==[    if (images_ && !Planted(1001)) images_->Drop(head);]==])
plant_in(grouped_scheduler 1002 "a victim holds its images (E5)"
  [==[    images_->Drop(slot.request);]==]
  [==[    if (!Planted(1002)) images_->Drop(slot.request);]==])
plant_in(grouped_scheduler 1003 "images are held until their request ends (E5)"
  [==[    if (images_) images_->Passed(]==]
  [==[    if (images_ && !Planted(1003)) images_->Passed(]==])
plant_in(grouped_scheduler 1004 "a running request holds no image that it has encoded (E4)"
  [==[    if (images) images_->Take(slot.request);]==]
  [==[    if (images && !Planted(1004)) images_->Take(slot.request);]==])
plant_in(grouped_scheduler 1005 "a chunk before an image is not split where a state is kept (B13)"
  [==[    if (tokens > 0) tokens = Split(slot.computed]==]
  [==[    if (tokens > 0 && !(images && Planted(1005))) tokens = Split(slot.computed]==])
plant_in(grouped_scheduler 1006 "a state of the same call is hit (B14)"
  [==[  if (hit.fresh_state) return false;]==]
  [==[  if (hit.fresh_state && !Planted(1006)) return false;]==])
plant_in(grouped_kv 1007 "a turn finds the block behind several images (E7)"
  [==[  if (OwnBehindImages(request, tokens)) {]==]
  [==[  if (!Planted(1007) && OwnBehindImages(request, tokens)) {]==])
plant_in(grouped_kv 1008 "a window is given up a token late (B3)"
  [==[computed - group.window + 1);]==]
  [==[computed - group.window + (Planted(1008) ? 0 : 1));]==])
plant_in(clients 1051 "a first token at the moment of a second attempt is too late"
  [==[(token >= 0 && token <= at)) return false;]==]
  [==[(token >= 0 && token <= at - (Planted(1051) ? 1 : 0))) return false;]==])
plant_in(clients 1052 "a second attempt sets out though its client is gone"
  [==[if (lost || gone ||]==]
  [==[if (lost || (gone && !Planted(1052)) ||]==])
plant_in(gateway 1053 "a second attempt may go to the replica of the first"
  [==[leaves_out = beside >= 0 &&]==]
  [==[leaves_out = !Planted(1053) && beside >= 0 &&]==])
plant_in(cluster 1054 "the other attempt is kept as long as it is queued"
  [==[    NodeAt(index).inbox.Cancel(other);]==]
  [==[    if (!Planted(1054) || state != RequestState::kQueued) NodeAt(index).inbox.Cancel(other);]==])
plant_in(cluster 1055 "at one moment the second attempt wins"
  [==[token >= 0 && std::pair(token, other) <]==]
  [==[token >= 0 && std::pair(token, Planted(1055) ? -other : other) <]==])
plant_in(replica 1056 "a replica runs ahead of who may end a request in it"
  [==[(FormsBetween() || next > in_.inbox->EndsBy())]==]
  [==[(FormsBetween() || (next > in_.inbox->EndsBy() && !Planted(1056)))]==])
plant_in(replica 1057 "likewise in a run of decodes"
  [==[std::min(in_.dies_at, in_.inbox->EndsBy());]==]
  [==[std::min(in_.dies_at, Planted(1057) ? kNever : in_.inbox->EndsBy());]==])

plant_in(membership 1101 "one that is about to be asleep is woken"
  [==[      if (from > time) continue;]==]
  [==[      if (from > time && !Planted(1101)) continue;]==])
plant_in(membership 1102 "a warm replica that is taken is there again at once"
  [==[      from = time + pool.cold_start;]==]
  [==[      if (!Planted(1102)) from = time + pool.cold_start;]==])
plant_in(membership 1103 "replicas come up in the order of their starts"
  [==[    starting_.insert(later, replica);]==]
  [==[    starting_.insert(Planted(1103) ? starting_.end() : later, replica);]==])
plant_in(membership 1104 "one that starts to be warm counts as asleep"
  [==[    starting += std::min(pool.cold_start, end - from);]==]
  [==[    if (!Planted(1104)) starting += std::min(pool.cold_start, end - from);]==])
plant_in(membership 1151 "a scaler sees what waits before another pool"
  [==[scrape{time, held[p],]==]
  [==[scrape{time, held[Planted(1151) ? 0 : p],]==])
plant_in(membership 1152 "a scaler removes another pool's replica"
  [==[      if (!Present(lives_[i]) || lives_[i].pool != pool) continue;]==]
  [==[      if (!Present(lives_[i]) || (lives_[i].pool != pool && !Planted(1152))) continue;]==])
plant_in(membership 1153 "a replica that prefills is down before its KV is gone"
  [==[  void Left(std::int32_t replica, TimeNs time, bool kv_stays) override {]==]
  [==[  void Left(std::int32_t replica, TimeNs time, bool kv_stays) override {
    if (Planted(1153)) kv_stays = false;]==])
plant_in(membership 1154 "all pools start as the first does"
  [==[    PoolState& of = pools_[pool];]==]
  [==[    PoolState& of = pools_[Planted(1154) ? 0 : pool];]==])
plant_in(cluster 1155 "one of the gateways before a replica goes on sending to it as it drains"
  [==[    if (gateway.role() == node.role) gateway.SetAvailable(node.place, available);]==]
  [==[    const bool hears = !Planted(1155) || available || &gateway == &gateways_.front();
    if (gateway.role() == node.role && hears) gateway.SetAvailable(node.place, available);]==])
plant_in(cluster 1156 "a scaler does not see what is held for decode"
  [==[gateway.role() == role ? gateway.held() : 0;]==]
  [==[gateway.role() == role && !(Planted(1156) && role == PoolRole::kDecode) ? gateway.held() : 0;]==])
plant_in(kv_link 1201 "a transfer that is stopped never had a share of the link"
  [==[  PassTo(time);
  flows_.erase(flow);]==]
  [==[  if (!Planted(1201)) PassTo(time);
  flows_.erase(flow);]==])
plant_in(cluster_failures 1202 "a request is lost though its client is gone"
  [==[  if (timeout.empty() ||]==]
  [==[  if (timeout.empty() || Planted(1202) ||]==])
plant_in(cluster_failures 1203 "routers do not hear of requests that are lost"
  [==[  TellGateways(index, time, request);]==]
  [==[  if (!Planted(1203)) TellGateways(index, time, request);]==])
plant_in(vllm_hand_over 1204 "blocks stay taken for KV that will not come"
  [==[machine_.ExpectNoMore();
  FreeIncoming(request);]==]
  [==[machine_.ExpectNoMore();
  if (!Planted(1204)) FreeIncoming(request);]==])
plant_in(kv_cache 1205 "a retry does not find what is held for the attempt before it"
  [==[  if (options_.outlives_attempts &&]==]
  [==[  if (options_.outlives_attempts && !Planted(1205) &&]==])
plant_in(cluster_failures 1206 "who waited for blocks is not told that KV will not come"
  [==[    Activate(index, time);]==]
  [==[    if (!Planted(1206)) Activate(index, time);]==])
plant_in(cluster_failures 1207 "KV is kept for a request that its decode replica refused"
  [==[  if (any().results.HandedOver(static_cast<std::size_t>(request))) Free(request, time);]==]
  [==[  if (any().results.HandedOver(static_cast<std::size_t>(request)) && !Planted(1207)) Free(request, time);]==])

plant_in(planner_view 1181 "an answer counts before its client has it"
  [==[      if (results.completion[r] >= time) return false;]==]
  [==[      if (results.completion[r] >= time && !Planted(1181)) return false;]==])
plant_in(planner_view 1182 "who was preempted waits for nothing"
  [==[    } else if (waits == Waits::kToDecode) {]==]
  [==[    } else if (waits == Waits::kToDecode && !Planted(1182)) {]==])
plant_in(membership 1183 "both pools of a planner get the first one's number"
  [==[      pool.decided = decided[i];]==]
  [==[      pool.decided = decided[Planted(1183) ? 0 : i];]==])
plant_in(membership 1184 "a planner does not see that a replica drains"
  [==[      view.drains |= lives_[i].state == State::kDraining;]==]
  [==[      view.drains |= lives_[i].state == State::kDraining && !Planted(1184);]==])
plant_in(replica 1185 "the last step of a run of decodes is not reported"
  [==[    last_step_ = {0, 0, context, size};]==]
  [==[    if (!Planted(1185)) last_step_ = {0, 0, context, size};]==])
plant_in(dynamo_scaler 1186 "traffic is all that there was"
  [==[before = std::exchange(served_, served);]==]
  [==[before = Planted(1186) ? ServedTotals{} : std::exchange(served_, served);]==])
plant_in(dynamo_scaler 1187 "a replica reports before it was scraped"
  [==[    if (!one.up || !one.serves) continue;]==]
  [==[    if ((!one.up && !Planted(1187)) || !one.serves) continue;]==])
plant_in(dynamo_scaler 1188 "a tick of throughput is one of load, too"
  [==[    seen.load = by_load_.Passes(now);]==]
  [==[    seen.load = by_load_.Passes(now) || Planted(1188);]==])

plant_in(encode_scheduler 1251 "a request overtakes one whose image has no room"
  [==[    if (w.next == images.size()) continue;]==]
  [==[    if (w.next == images.size() || Planted(1251)) continue;]==])
plant_in(encode_scheduler 1252 "images are held for ever"
  [==[    images_.Passed(w.request, false);]==]
  [==[    if (!Planted(1252)) images_.Passed(w.request, false);]==])
plant_in(encode_scheduler 1253 "a request waits until its last step there begins"
  [==[    if (!w.begun) in_.results]==]
  [==[    if (!w.begun || Planted(1253)) in_.results]==])
plant_in(replica_hand_over 1254 "the wait for the encoder counts as encoding"
  [==[  in_.results.AddEncode(r, end - encoding.started);]==]
  [==[  in_.results.AddEncode(r, end - (Planted(1254) ? in_.results.enqueue[r] : encoding.started));]==])
plant_in(cluster_encoders 1255 "the last image alone travels"
  [==[    encoding.bytes += image]==]
  [==[    if (Planted(1255)) encoding.bytes = 0;
    encoding.bytes += image]==])
plant_in(cluster 1256 "draws of encoders are those of decode replicas"
  [==[static_cast<std::int64_t>(Mix64(own)));]==]
  [==[static_cast<std::int64_t>(Planted(1256) ? own : Mix64(own)));]==])
plant_in(encoder_cache 1257 "prompts wait for an encoder behind the encoders, too"
  [==[|| !in.encodes_images) return nullptr;]==]
  [==[|| (!in.encodes_images && !Planted(1257))) return nullptr;]==])

if(problems)
  message(FATAL_ERROR "tests/faults/faults.cmake: what these look for does not occur exactly once "
                      "in ${NAME}.cpp (\"${SOURCE}\"):${problems}")
endif()
file(WRITE "${OUTPUT}" "// Made by tests/faults/faults.cmake from ${NAME}.cpp.
#include \"faults/planted.h\"
using servecast::testing::Planted;
${text}")
