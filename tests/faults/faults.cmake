# cmake -DNAME=replica -DSOURCE=replica.cpp -DOUTPUT=copy.cpp -P faults.cmake
# Plants the faults of one source of the engine in a copy of it, so that a test can show that the
# differential tests would notice them. Each fault is an exact piece of the source and what stands
# there instead while `Planted(number)`. A piece that does not occur exactly once ends the build of
# the fault tests, and of nothing else: the engine changed there, and the fault has to be planted
# anew. faults_targets.cmake reads which sources and numbers there are from the calls below.
#
# Numbers say which differential test has to notice: from 1 on that of one replica, from 101 on of
# BLIS's rules, from 201 on of clusters, from 301 on of other schedulers, from 401 on of prefill and
# decode apart.

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

plant_in(replica 2 "a request ends one decode step late"
  [==[OutputLimit(slot.request) - generated, slot.admission]==]
  [==[OutputLimit(slot.request) - generated + (Planted(2) ? 1 : 0), slot.admission]==])

plant_in(replica_schedule 3 "the victim is the last but one"
  [==[if (!victim_by_priority_) return last_;]==]
  [==[if (!victim_by_priority_ && Planted(3) && running_ > 1) return SlotAt(last_).previous;
  if (!victim_by_priority_) return last_;]==])

plant_in(replica_schedule 4 "a step that preempted admits"
  [==[  if (plan.preempted) {
    plan.blocked]==]
  [==[  if (plan.preempted && !Planted(4)) {
    plan.blocked]==])

plant_in(replica 5 "the watermark is a share of the usable blocks"
  [==[static_cast<double>(input.pool_blocks)]==]
  [==[static_cast<double>(input.pool_blocks - (Planted(5) ? 1 : 0))]==])

plant_in(replica_schedule 6 "the test of the full prompt is left out"
  [==[in_.engine.scheduler_reserve_full_isl ? known]==]
  [==[(in_.engine.scheduler_reserve_full_isl && !Planted(6)) ? known]==])

plant_in(replica_schedule 7 "unchunked prefill is tested before the threshold cuts"
  [==[!in_.engine.enable_chunked_prefill && wanted > budget]==]
  [==[!in_.engine.enable_chunked_prefill && (Planted(7) ? known : wanted) > budget]==])

plant_in(replica_schedule 8 "a resumed request recomputes its prompt only"
  [==[slot.known = Known(request);]==]
  [==[slot.known = Planted(8) ? std::int64_t{in_.requests.prompt_tokens[r]} : Known(request);]==])

plant_in(replica_schedule 9 "a preempted request goes to the back of the queue"
  [==[  queue_.PushPreempted(policy_.KeyOf(slot.request), in_.requests.arrival[r], slot.request);]==]
  [==[  if (Planted(9)) {
    queue_.Push(policy_.KeyOf(slot.request), in_.requests.arrival[r], slot.request);
  } else {
    queue_.PushPreempted(policy_.KeyOf(slot.request), in_.requests.arrival[r], slot.request);
  }]==])

plant_in(decode_group 10 "a decode that leaves leaves its latest token in the context"
  [==[members * computed;]==]
  [==[members * (computed - (Planted(10) && members < 0 ? 1 : 0));]==])

plant_in(replica 11 "who comes on a step's end joins one step late"
  [==[time <= now_; time = in_.inbox.NextEnqueue()]==]
  [==[time < now_ || (time == now_ && !(Planted(11) && running_ > 0));
       time = in_.inbox.NextEnqueue()]==])

plant_in(replica 12 "a decode run passes over an arrival when one seat is left"
  [==[const bool closed = running_ >= seats_ ||]==]
  [==[const bool closed = running_ + (Planted(12) ? 1 : 0) >= seats_ ||]==])

plant_in(replica 13 "a decode run starts a step at the horizon"
  [==[now_ < stop && StartTime() < in_.horizon)]==]
  [==[now_ < stop &&
         (Planted(13) ? StartTime() <= in_.horizon : StartTime() < in_.horizon))]==])

plant_in(replica 14 "the gap after a preemption is that of its last step"
  [==[batch.end - output.previous + token_delay_, 1);]==]
  [==[batch.end - (Planted(14) ? batch.start : output.previous) + token_delay_, 1);]==])

plant_in(kv_cache 15 "shared blocks are released from the first to the last"
  [==[= holding.pieces[i - 1];]==]
  [==[=
        holding.pieces[Planted(15) ? holding.pieces.size() - i : i - 1];]==])

plant_in(replica_schedule 16 "the blocks of an admission are findable one step late"
  [==[kv_.Register(slot.holding, request, slot.computed + slot.chunk);]==]
  [==[kv_.Register(slot.holding, request, slot.computed + (Planted(16) ? 0 : slot.chunk));]==])

plant_in(replica_schedule 17 "a victim that was in the step keeps its tokens"
  [==[if (SlotAt(victim).granted_call == calls_) plan]==]
  [==[if (SlotAt(victim).granted_call == calls_ && !Planted(17)) plan]==])

plant_in(replica_schedule 18 "a resumed request is admitted by the length of its prompt"
  [==[const std::int64_t known = Known(head);]==]
  [==[const std::int64_t known =
      Planted(18) ? std::int64_t{in_.requests.prompt_tokens[static_cast<std::size_t>(head)]}
                  : Known(head);]==])

plant_in(replica_schedule 19 "a token in flight completes a block before it is known"
  [==[decoded && in_flight_ > 0 && !staged() ? 1 : 0]==]
  [==[decoded && in_flight_ > 0 && !staged() && !Planted(19) ? 1 : 0]==])

plant_in(replica_schedule 20 "of equal victims the last of the running list goes"
  [==[arrival(id) > arrival(worst)]==]
  [==[(Planted(20) ? arrival(id) >= arrival(worst) : arrival(id) > arrival(worst))]==])

plant_in(kv_cache 21 "blocks without content go to the end of the free list"
  [==[PushFree(kBlank, held - full, options_.contentless_first);]==]
  [==[PushFree(kBlank, held - full, options_.contentless_first && !Planted(21));]==])

plant_in(replica 22 "a time-out at the start of a step is a step late"
  [==[while (in_.inbox.NextTimeout() <= now_)]==]
  [==[while (Planted(22) ? in_.inbox.NextTimeout() < now_ : in_.inbox.NextTimeout() <= now_)]==])

plant_in(kv_cache 23 "a prompt that is all cached is not computed again"
  [==[FullBlocks(known_tokens - 1)]==]
  [==[FullBlocks(known_tokens - (Planted(23) ? 0 : 1))]==])

plant_in(replica_schedule 24 "hit blocks that nobody holds are not counted"
  [==[- hit_.blocks + hit_.idle;]==]
  [==[- hit_.blocks + (Planted(24) ? 0 : hit_.idle);]==])

plant_in(kv_cache 25 "of two copies the later is found"
  [==[part.registered < At(best).registered) best = id;]==]
  [==[(part.registered < At(best).registered) != Planted(25)) best = id;]==])

plant_in(replica_schedule 26 "a garbage collection frees a block too few"
  [==[garbage_ -= static_cast<std::int64_t>(freed);]==]
  [==[garbage_ -= static_cast<std::int64_t>(freed) - (Planted(26) && freed > 1 ? 1 : 0);]==])

plant_in(replica_schedule 27 "the reserve holds for the first of an empty batch, too"
  [==[in_.engine.admission_reserve > 0 && running_ > 0]==]
  [==[in_.engine.admission_reserve > 0 && (running_ > 0 || Planted(27))]==])

plant_in(kv_tiers 28 "a tier pushes out what came last"
  [==[const RunId id = lists_[tier].front;]==]
  [==[const RunId id = Planted(28) ? lists_[tier].back : lists_[tier].front;]==])

plant_in(replica_schedule 29 "what is loaded from a tier costs no time"
  [==[transfer_ += kv_.TransferTime(loaded);]==]
  [==[transfer_ += Planted(29) ? 0 : kv_.TransferTime(loaded);]==])

plant_in(kv_cache 30 "the threshold counts the blocks in use before this one"
  [==[std::clamp<std::int64_t>(in_use - offload_from_ + 1, 0, count)]==]
  [==[std::clamp<std::int64_t>(in_use - offload_from_ + (Planted(30) ? 0 : 1), 0, count)]==])

plant_in(replica 31 "a decode run keeps the average of preemptions as it was"
  [==[    SmoothPreemptions(0);]==]
  [==[    if (!Planted(31)) SmoothPreemptions(0);]==])

plant_in(decode_group 32 "a decode that leaves leaves the block of its latest token"
  [==[members * blocks;]==]
  [==[members * (Planted(32) && members < 0 ? CeilDiv(computed - 1, size) : blocks);]==])

plant_in(replica 33 "an arrival at an engine at rest finds its last step"
  [==[if (next > now_) load_.running]==]
  [==[if (next > now_ && !Planted(33)) load_.running]==])

plant_in(replica_schedule 34 "an admission counts the blocks of its last load only"
  [==[transfer_blocks_ += hit_.stored;]==]
  [==[transfer_blocks_ = (Planted(34) ? 0 : transfer_blocks_) + hit_.stored;]==])

plant_in(replica 35 "a decode that catches up forgets what prefills cost it"
  [==[if (!slot.catches_up || output.generated == 1) CountPrefill(]==]
  [==[if (!slot.catches_up || output.generated == 1 || Planted(35)) CountPrefill(]==])

plant_in(replica_times 36 "a preemption counts from the schedule call, not from the step"
  [==[.preempted_at = end;]==]
  [==[.preempted_at = Planted(36) ? now_ : end;]==])

plant_in(replica_times 37 "what is loaded for a prefill again is computed, too"
  [==[s.recompute += end - slot.admitted - transfer;]==]
  [==[s.recompute += end - slot.admitted - (Planted(37) ? 0 : transfer);]==])

plant_in(pipeline 38 "a stage begins a batch before it is done with the one before"
  [==[const TimeNs from = std::max(ready, free_[i]);]==]
  [==[const TimeNs from = Planted(38) ? ready : std::max(ready, free_[i]);]==])

plant_in(replica_stages 39 "a victim is admitted while a step of it is in flight"
  [==[if (held.request == request && held.until > now_) return &held;]==]
  [==[if (held.request == request && held.until > now_ && !Planted(39)) return &held;]==])

plant_in(replica 40 "the gap between tokens is the step's time, though another group had its turn"
  [==[if (staged()) batch.before]==]
  [==[if (staged() && !Planted(40)) batch.before]==])

plant_in(replica_schedule 41 "a prefill leaves room for the decodes of the batch before"
  [==[if (staged() && !prefills_.empty()) PlacePrefills();]==]
  [==[if (staged() && !prefills_.empty() && !Planted(41)) PlacePrefills();]==])

plant_in(replica_stages 42 "time that batches share counts for each of them"
  [==[if (in_flight_ > 1) {]==]
  [==[if (in_flight_ > 1 && !Planted(42)) {]==])

plant_in(replica_times 43 "who is preempted in flight loses the time until his token twice"
  [==[staged() ? std::max(StartTime(), BusyUntil(slot)) : StartTime();]==]
  [==[staged() && !Planted(43) ? std::max(StartTime(), BusyUntil(slot)) : StartTime();]==])

plant_in(replica_stages 44 "a victim that times out in flight has had its token"
  [==[static_cast<std::int32_t>(held->delivered);]==]
  [==[static_cast<std::int32_t>(held->delivered + (Planted(44) ? 1 : 0));]==])

plant_in(replica 45 "a first token waits for itself only"
  [==[SetLate(r, batch.made * delivery_delay_);]==]
  [==[SetLate(r, (Planted(45) ? 1 : batch.made) * delivery_delay_);]==])

plant_in(replica 46 "the last token does not wait"
  [==[token_delay_ + in_.results.Late(r), WideInt{kNever}));]==]
  [==[token_delay_ + (Planted(46) ? 0 : in_.results.Late(r)), WideInt{kNever}));]==])

plant_in(blis_replica 101 "the tokens of a victim are lost to its step, today too"
  [==[if (era_.returns_budget) step.budget]==]
  [==[if (era_.returns_budget && !Planted(101)) step.budget]==])

plant_in(blis_replica 102 "February's queue of events has no marks of preemptions"
  [==[if (!era_.orders_events) events_.Push]==]
  [==[if (!era_.orders_events && !Planted(102)) events_.Push]==])

plant_in(blis_replica 103 "February's step passes over those whom it preempted"
  [==[  if (era_.visits_evicted) {]==]
  [==[  if (era_.visits_evicted && !Planted(103)) {]==])

plant_in(blis_replica 104 "an answer is capped two tokens before the limit"
  [==[max_model_len_ > 0 && seat.progress >= max_model_len_ - 1;]==]
  [==[max_model_len_ > 0 && seat.progress >= max_model_len_ - (Planted(104) ? 2 : 1);]==])

plant_in(blis_kv 105 "a block that is overwritten keeps its name if another owns it by now"
  [==[  Of(content).owner = kNone;]==]
  [==[  if (!Planted(105) || Of(content).owner == id) Of(content).owner = kNone;]==])

plant_in(blis_kv 106 "blocks of an allocation that is undone go to the end of the free list"
  [==[Link(taken.id, At(kEnds).next);]==]
  [==[Link(taken.id, Planted(106) ? kEnds : At(kEnds).next);]==])

plant_in(scheduled_replica 301 "a batch is recorded from its start, though others were in flight"
  [==[std::max(step.start, recorded_until_), step.end]==]
  [==[Planted(301) ? step.start : std::max(step.start, recorded_until_), step.end]==])

plant_in(scheduled_replica 302 "a decode run passes over an arrival that could be admitted"
  [==[if (!forecast.closed) break;]==]
  [==[if (!forecast.closed && !Planted(302)) break;]==])

plant_in(scheduled_replica 303 "the first gap of a decode run is that of the others"
  [==[CountGap(end, end - SeatOf(index).last_token + token_delay_, 1);]==]
  [==[CountGap(end, (Planted(303) ? price.duration : end - SeatOf(index).last_token) + token_delay_, 1);]==])

plant_in(scheduled_replica 304 "decodes that wait for a batch of prompts are not held up by it"
  [==[} else if (!pipeline_) {]==]
  [==[} else if (!pipeline_ && !Planted(304)) {]==])

plant_in(scheduled_replica 305 "an output's length is known at admission"
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
  [==[state.admitted() >= state.limits().max_num_seqs]==]
  [==[state.admitted() + (Planted(308) ? 1 : 0) >= state.limits().max_num_seqs]==])


plant_in(scheduled_replica 309 "a first token waits for those of all that run"
  [==[SetLate(r, step.sampled * delivery_delay_);]==]
  [==[SetLate(r, (Planted(309) ? state_.admitted() : step.sampled) * delivery_delay_);]==])

plant_in(replica_hand_over 401 "a request decodes before its KV has arrived"
  [==[  in_.results.hand_overs[r].reserved = now_;]==]
  [==[  in_.results.hand_overs[r].reserved = now_;
  if (Planted(401)) {
    in_.results.hand_overs[r].arrived = now_;
    arrived_.push_back(request);
  }]==])
plant_in(replica_hand_over 401 "a request decodes before its KV has arrived"
  [==[  in_.results.hand_overs[r].arrived = time;]==]
  [==[  if (Planted(401)) return;
  in_.results.hand_overs[r].arrived = time;]==])

plant_in(replica_hand_over 402 "no blocks are taken for KV that is to come"
  [==[kv_.Take(kv_.BlocksFor(Known(request)) - hit_.blocks, now_);]==]
  [==[kv_.Take(Planted(402) ? 0 : kv_.BlocksFor(Known(request)) - hit_.blocks, now_);]==])

plant_in(kv_link 403 "every transfer has the whole link"
  [==[(flows_.front().ends - virtual_) * static_cast<WideInt>(flows_.size());]==]
  [==[(flows_.front().ends - virtual_) *
                       (Planted(403) ? 1 : static_cast<WideInt>(flows_.size()));]==])
plant_in(kv_link 403 "every transfer has the whole link"
  [==[(now - since_) / static_cast<WideInt>(flows_.size());]==]
  [==[(now - since_) / (Planted(403) ? 1 : static_cast<WideInt>(flows_.size()));]==])

plant_in(replica_hand_over 404 "blocks are free when the prefill ends"
  [==[  handed_over_.push_back({output.request,]==]
  [==[  if (Planted(404)) {
    const std::int64_t prompt = in_.requests.prompt_tokens[r];
    kv_.Release(slot.holding, output.request, kv_.BlocksFor(prompt), prompt,
                in_.inbox.HasNextTurn(output.request));
  }
  handed_over_.push_back({output.request,]==])
plant_in(replica_hand_over 404 "blocks are free when the prefill ends"
  [==[  kv_.Release(at->holding, request, kv_.BlocksFor(prompt), prompt, in_.inbox.HasNextTurn(request));]==]
  [==[  if (!Planted(404)) {
    kv_.Release(at->holding, request, kv_.BlocksFor(prompt), prompt, in_.inbox.HasNextTurn(request));
  }]==])

plant_in(kv_link 405 "KV flows without a base latency"
  [==[time + latency_,]==]
  [==[time + (Planted(405) ? 1 : latency_),]==])

plant_in(replica_hand_over 406 "blocks that the decode side has travel, too"
  [==[now_, of_prompt - hit_.blocks});]==]
  [==[now_, of_prompt - (Planted(406) ? 0 : hit_.blocks)});]==])

plant_in(replica_hand_over 407 "whoever gave up under way takes his place all the same"
  [==[  if (in_.results.state[r] != RequestState::kTimedOut) {]==]
  [==[  if (Planted(407) || in_.results.state[r] != RequestState::kTimedOut) {]==])

plant_in(replica 408 "prefills before it came count against a decode from elsewhere"
  [==[      slot.interference_before = group_->interference;]==]
  [==[      if (!Planted(408)) slot.interference_before = group_->interference;]==])

plant_in(replica_schedule 409 "a token that is lost with its KV counts as made"
  [==[    if (HandsOver(slot.request)) TakeLostToken(slot);]==]
  [==[    if (HandsOver(slot.request) && !Planted(409)) TakeLostToken(slot);]==])

plant_in(scheduled_hand_over 410 "another scheduler's blocks are free when the prefill ends"
  [==[  SeatOf(index).request = kNoRequest;
  in_.results.state[r] = RequestState::kQueued;]==]
  [==[  if (Planted(410)) {
    state_.GiveBack(withheld_.back().blocks, withheld_.back().tokens);
    withheld_.back().blocks = withheld_.back().tokens = 0;
  }
  SeatOf(index).request = kNoRequest;
  in_.results.state[r] = RequestState::kQueued;]==])

plant_in(scheduled_hand_over 411 "the token that the prefill made travels, too"
  [==[CeilDiv(in_.requests.prompt_tokens[r], setup_.limits.block_size)]==]
  [==[CeilDiv(in_.requests.prompt_tokens[r] + (Planted(411) ? in_.results.generated[r] : 0),
                           setup_.limits.block_size)]==])

plant_in(scheduled_hand_over 412 "blocks that KV is on its way to are free when the client gives up"
  [==[    withheld_.push_back({request, blocks, tokens});
    return;]==]
  [==[    withheld_.push_back({request, blocks, tokens});
    if (Planted(412)) {
      state_.GiveBack(withheld_.back().blocks, withheld_.back().tokens);
      withheld_.back().blocks = withheld_.back().tokens = 0;
    }
    return;]==])

plant_in(scheduled_hand_over 413 "the decode side computes no known token again"
  [==[  job.processed = job.prompt--;]==]
  [==[  job.processed = Planted(413) ? job.prompt + 1 : job.prompt--;]==])

plant_in(scheduled_replica 414 "the prefill's token counts although the decode side sends the first"
  [==[  if (hidden) step.sampled = 0;]==]
  [==[  if (hidden && !Planted(414)) step.sampled = 0;]==])

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

plant_in(disaggregated 420 "a replica goes on while somebody is held who could come"
  [==[to_departure |= entrance.gateway->held() > 0;]==]
  [==[to_departure |= entrance.gateway->held() > 0 && !Planted(420);]==])

plant_in(disaggregated 421 "whoever gives up before he is handed over leaves his blocks"
  [==[if (side == kDecode) Free(]==]
  [==[if (side == kDecode && !Planted(421)) Free(]==])

plant_in(disaggregated 422 "a gateway does not count what another placed on its replicas"
  [==[entrance.role == to.role) entrance.gateway->Placed]==]
  [==[entrance.role == to.role && (!Planted(422) || &entrance == &to)) entrance.gateway->Placed]==])

plant_in(disaggregated 423 "room is for who is served whole before who waits to decode"
  [==[  for (const Side side : {kDecode, kWhole, kPrefill}) {]==]
  [==[  for (Side side : {kDecode, kWhole, kPrefill}) {
    if (Planted(423) && side != kPrefill) side = side == kDecode ? kWhole : kDecode;]==])

plant_in(prefix_index 424 "every replica caches as much as the first"
  [==[memories_[i].capacity = replicas[i].cached_blocks;]==]
  [==[memories_[i].capacity = replicas[Planted(424) ? 0 : i].cached_blocks;]==])

plant_in(disaggregated 425 "replicas run past a look at their engines"
  [==[const TimeNs by = active_.empty() ?]==]
  [==[const TimeNs by = active_.empty() || Planted(425) ?]==])

plant_in(disaggregated 426 "both replicas of a request are drawn alike"
  [==[decode ? own : in_.seed]==]
  [==[decode && !Planted(426) ? own : in_.seed]==])

plant_in(gateway 427 "prompts are counted in blocks of the first replica"
  [==[least = std::min(least, member.block_size);]==]
  [==[if (!Planted(427)) least = std::min(least, member.block_size);]==])

plant_in(blis_kv 107 "February offloads at the threshold, too, not only above it"
  [==[usage <= options_.host.threshold ||]==]
  [==[(Planted(107) ? usage < options_.host.threshold : usage <= options_.host.threshold) ||]==])

plant_in(blis_kv 108 "blocks that come back from the host are the first to be overwritten"
  [==[  Name(id, name);
  Link(id, kEnds);]==]
  [==[  Name(id, name);
  Link(id, Planted(108) ? At(kEnds).next : kEnds);]==])

plant_in(blis_kv 109 "the host gives up what it has longest, not what was touched longest ago"
  [==[  if (last == newest_) return;]==]
  [==[  if (last == newest_ || Planted(109)) return;]==])

plant_in(blis_kv 110 "who once had the whole prompt never looks for it in the host again"
  [==[holding.whole_at != losses_]==]
  [==[(Planted(110) ? holding.whole_at < 0 : holding.whole_at != losses_)]==])

plant_in(blis_replica 111 "a request that completes in a step is not mirrored in it"
  [==[  for (const SeatId seat : batch_) kv_.Mirror(At(seat).holding);
  Complete(took);]==]
  [==[  if (Planted(111)) Complete(took);
  for (const SeatId seat : batch_) kv_.Mirror(At(seat).holding);
  if (!Planted(111)) Complete(took);]==])

plant_in(blis_replica 112 "what comes back makes no step longer"
  [==[price.duration / 1000 + transfer;]==]
  [==[price.duration / 1000 + (Planted(112) ? 0 : transfer);]==])

plant_in(gateway 201 "a router hears at once of what ended, whatever the period"
  [==[known = period_ > 0 ? time]==]
  [==[known = period_ > 0 && !Planted(201) ? time]==])

plant_in(cluster 202 "who is held misses the room that appears as another comes"
  [==[  for (auto next = gateway_]==]
  [==[  if (!Planted(202) || time != arrival) for (auto next = gateway_]==])

plant_in(gateway 203 "engines are looked at when a request comes, whatever the period"
  [==[reads_engines && period_ == 0)]==]
  [==[reads_engines && (period_ == 0 || Planted(203)))]==])

plant_in(cluster 204 "a replica goes on while somebody is held who could come"
  [==[AllowUntil(until, gateway_.held() > 0);]==]
  [==[AllowUntil(until, gateway_.held() > 0 && !Planted(204));]==])

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

plant_in(router_prefix_affinity 209 "the bound is of the requests without the new one"
  [==[loads.total() + 1)]==]
  [==[loads.total() + (Planted(209) ? 0 : 1))]==])

plant_in(replica_ahead 210 "a replica stays behind when somebody leaves it at that very moment"
  [==[std::min(time - 1, in_]==]
  [==[std::min(time - (Planted(210) ? 0 : 1), in_]==])

plant_in(decode_group 211 "a replica stays behind for a step after somebody has left it"
  [==[last_step() - point.step + 1, kMost]==]
  [==[last_step() - point.step + (Planted(211) ? 2 : 1), kMost]==])

if(problems)
  message(FATAL_ERROR "tests/faults/faults.cmake: what these look for does not occur exactly once "
                      "in ${NAME}.cpp (\"${SOURCE}\"):${problems}")
endif()
file(WRITE "${OUTPUT}" "// Made by tests/faults/faults.cmake from ${NAME}.cpp.
#include \"faults/planted.h\"
using servecast::testing::Planted;
${text}")
