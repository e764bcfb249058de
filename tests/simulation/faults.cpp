#include <span>

#include "base/file_io.h"
#include "base/hash.h"
#include "tests/simulation/world.h"
#include "tests/support/folder_files.h"
#include "workers/checkpoint/checkpoint_ledger.h"
#include "workers/checkpoint/commit.h"
#include "workers/controller/join_rules.h"

namespace troupe::testing {

namespace {

using Of = Fault::Kind;

ProcessExit exit_of(int code, int signal, bool is_out_of_memory = false, bool is_unkillable = false) {
  ProcessExit exit;
  exit.exit_code = code;
  exit.signal = signal;
  exit.killed_by_us = is_unkillable;
  exit.out_of_memory = is_out_of_memory;
  exit.unkillable = is_unkillable;
  return exit;
}

}  // namespace

void World::strike(const Fault& fault) {
  if (exit_code_) return;
  ++outcome_.faults;
  switch (fault.kind) {
    case Of::kill_actor:
    case Of::hang_actor:
    case Of::unkillable:
      return strike_actor(fault);
    case Of::kill_node:
    case Of::stop_node:
    case Of::cut_node:
    case Of::deafen_node:
    case Of::silence_node:
    case Of::rival_node:
      return strike_node(fault);
    case Of::new_node:
      if (!newest_.contains(kNodes)) begin_node(kNodes);
      return;
    case Of::stranger:
      return introduce_stranger(fault.target);
    case Of::stop_controller:
      controller_->stopped_until = std::max(controller_->stopped_until, clock_.now() + fault.lasts);
      return;
    case Of::bad_wire:
      wire_.bad_until = clock_.now() + fault.lasts;
      return;
    case Of::fail_write:
      failing_writes_ += 1 + static_cast<int>(fault.target % 4);
      if (!fault.is_of_the_whole_disk()) return;
      slow_disk_until_ = clock_.now() + fault.lasts;
      excuses_.insert(Of::hang_write);
      return;
    case Of::hang_write:
      hangs_write_ = true;
      hangs_disk_ = fault.is_of_the_whole_disk();
      if (hangs_disk_) excuses_.insert(Of::hang_write);
      return;
    case Of::late_message:
      held_messages_.push_back(fault);
      return;
    case Of::hang_start:
      hangs_start_ = true;
      return;
    case Of::slow_end:
      slow_until_ = clock_.now() + fault.lasts;
      outlives_job_ |= fault.target % 16 == 0;
      if (outlives_job_) excuses_.insert(Of::slow_end);
      return;
    case Of::damage:
      return damage_checkpoint(fault.target);
    case Of::scale:
    case Of::ask:
    case Of::terminate:
    case Of::restart:
    case Of::fatal:
      return strike_job(fault);
  }
}

void World::strike_actor(const Fault& fault) {
  // One that makes no samples and cannot be killed ends the job.
  const bool is_maker = fault.kind == Of::unkillable && fault.target % 8 != 0;
  const auto actor = actor_of(is_maker ? pools()[fault.target / 8 % pools().size()] : "", fault.target / 16);
  if (!actor) return;
  const std::uint32_t how = fault.target / 512 % 8;
  if (fault.kind == Of::hang_actor) {
    hang(actor);
  } else if (fault.kind == Of::unkillable) {
    excuses_.insert(Of::unkillable);
    actor->is_hung = true;
    actor->survives_until = clock_.now() + fault.lasts + 30s;
    end_process(actor, exit_of(0, 9, false, true));
    end_actor(actor->identity.instance(), "", 0ms);
  } else if (how < 3) {
    end_process(actor, exit_of(0, 9, how == 2));
  } else if (how == 3) {
    end_process(actor, exit_of(75, 0));
  } else {
    end_actor(actor->identity.instance(), "broke", 5ms);
  }
}

void World::strike_node(const Fault& fault) {
  const std::size_t host = 1 + fault.target % (kNodes - 1);
  const SimTime until = clock_.now() + fault.lasts;
  const auto node = newest_[host];
  const auto stop = [&] {
    const auto stop_process = [&](SimProcess& process) {
      process.stopped_until = std::max(process.stopped_until, until);
    };
    stop_process(*node->process);
    for (const auto& [instance, actor] : actors_) {
      if (actor->owner == node->process) stop_process(*actor->process);
    }
  };
  if (fault.kind == Of::cut_node || fault.kind == Of::silence_node) wire_.silent_until[host] = until;
  if (fault.kind == Of::cut_node || fault.kind == Of::deafen_node) wire_.deaf_until[host] = until;
  if (fault.kind == Of::stop_node) stop();
  if (fault.kind == Of::kill_node && node->process->is_alive) {
    end_node(*node);
    clock_.after(fault.lasts, [this, host] {
      if (!exit_code_) begin_node(host);
    });
  }
  if (fault.kind == Of::rival_node) {
    if (fault.target % 4 < 2) stop();
    begin_node(host);
  }
}

void World::strike_job(const Fault& fault) {
  const auto pool_of = [&] { return pools()[fault.target / 32 % pools().size()]; };
  if (fault.kind == Of::scale) {
    asks("cli.1#1", Scale{.pool = pool_of(), .target = 1 + fault.target % 9});
  } else if (fault.kind == Of::ask) {
    asks("cli.1#1", StatusQuery{});
    asks("cli.2#1", StatusQuery{});
    asks("cli.1#1", Scale{.pool = pool_of(), .target = 1 + fault.target % 19, .dry_run = true});
    asks("cli.1#1", Scale{.pool = "learner", .target = 1});
  } else if (fault.kind == Of::restart) {
    restart_controller(fault.target);
  } else if (fault.kind == Of::fatal) {
    excuses_.insert(Of::fatal);
    has_bad_samples_ = fault.target % 4 == 1;
    breaks_groups_ = fault.target % 4 == 2;
    if (has_bad_samples_ || breaks_groups_) return;
    if (const auto learner = actor_of("learner/", fault.target); learner && fault.target % 4 == 0)
      return say(learner, Fatal{.actor = learner->identity.actor, .text = "the loss is no number"});
    if (const auto actor = actor_of("", fault.target)) end_process(actor, exit_of(78, 0));
  } else if (fault.target % 3 == 2) {
    ++times_told_to_end_;
    asks("cli.1#1", StopJob{.now = fault.target % 2 == 0});
  } else {
    ++times_told_to_end_;
    wire_.run_in(controller_, [this, is_preemption = fault.target % 3 == 0] {
      judge_.is_told_to_end(clock_.now());
      service_->interrupt({.why = "a signal", .is_preemption = is_preemption}, clock_.now());
      judge_.settled();
      look();
    });
  }
}

void World::introduce_stranger(std::uint32_t which) {
  Join join{.name = "n1", .incarnation = 1, .cpus = 4, .memory_bytes = 1000, .host = "", .boot_id = ""};
  describe_build(join);
  if (which % 4 == 0) join.key = "another";
  if (which % 4 == 1) join.protocol += 1;
  if (which % 4 == 2) join.sample_revision += 1;
  if (which % 4 == 3) join.cpus = 0;
  asks("n1#1", join);
  asks("n1#1", Heartbeat{.node = "n1", .sequence = 1});
}

void World::damage_checkpoint(std::uint32_t target) {
  if (!is_started_ || kept_checkpoints() < 2) return;
  const auto listed = list_checkpoints(run_.checkpoints());
  const std::int64_t newest = service_->job().checkpoints().committed_step();
  if (listed.size() < 2 || listed.back().step != newest) return;
  flip_byte(listed.back().directory + "/" + CheckpointLedger::kFile, -2);
  damaged_step_ = newest;
  if (const auto rank = actor_of("learner/", target)) end_actor(rank->identity.instance(), "killed", 5ms);
}

void World::restart_controller(std::uint32_t how) {
  if (!is_started_) return;
  controller_->is_alive = false;
  const auto hosts = controller_->hosts;
  for (const std::string& instance : hosts) drop_actor(instance);
  // Its keys and its port are the next one's too: nodes dial on.
  service_.reset();
  if (schedule_.is_on_disk) db_ = std::move(StateDb::open(run_.state_db())).value();
  const auto newest = newest_valid(run_.checkpoints());
  // It may have been killed in the middle of a commit: behind the rename, or before it.
  if (newest && how % 3 == 0) {
    const std::string manifest = read_file(newest->directory + "/manifest.json").value();
    db_->remove_checkpoint(newest->step).value();
    db_->begin_commit({.step = newest->step,
                       .fence = newest->manifest.fence,
                       .directory = "checkpoints/" + checkpoint_name(newest->step),
                       .manifest_hash = xxh3_128_hex(std::as_bytes(std::span(manifest)))})
        .value();
  } else if (newest && how % 3 == 1) {
    db_->remove_checkpoint(newest->step).value();
    db_->begin_commit({.step = newest->step + schedule_.every,
                       .fence = newest->manifest.fence,
                       .directory = "checkpoints/" + checkpoint_name(newest->step + schedule_.every),
                       .manifest_hash = "none"})
        .value();
  }
  committed_ = {0, newest ? newest->step : 0};
  begin_controller();
}

}  // namespace troupe::testing
