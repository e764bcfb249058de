#include "bench/faults/faults.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

#include "tests/support/folder_files.h"

namespace troupe::bench {

namespace {

using testing::LabJob;
using testing::LinkFaults;

constexpr double kPoolBar_s = 3, kRankBar_s = 5, kNodeBar_s = 20, kLongest_s = Trial::kLongest_s;
constexpr double kStoppedBar_s = Trial::kActorDeadline_s + 5;
constexpr double kOverLease_s = 15;
constexpr double kLasts_s = 5;  // of faults that are taken away again; shorter than cluster.lease_s

std::string some_pool_actor(const Trial& trial, CounterRng& rng) {
  return trial.job.actor(static_cast<int>(rng.below(2)));
}
std::string some_rank(CounterRng& rng) { return "learner/" + std::to_string(rng.below(2)); }
std::size_t some_node(CounterRng& rng) { return 1 + rng.below(2); }

pid_t must_have(const Trial& trial, const std::string& actor) {
  const auto pid = trial.process(actor);
  if (!pid) throw NotRecovered(actor + " has no process to strike");
  return *pid;
}

void wait_replaced(Trial& trial, const std::string& actor, pid_t old, double deadline) {
  trial.wait(actor + " has a new process", deadline, [&] {
    const auto pid = trial.process(actor);
    return pid && *pid != old;
  });
}

/// From the signal to a new process and a step after it.
double strike_and_replace(Trial& trial, const std::string& actor, int signal) {
  const pid_t pid = must_have(trial, actor);
  const auto begin = Trial::now();
  ::kill(pid, signal);
  wait_replaced(trial, actor, pid, kLongest_s);
  trial.wait_steps(1);
  return Trial::seconds_since(begin);
}

/// A rank's recovery counts from its new process on.
double kill_rank(Trial& trial, CounterRng& rng) {
  const std::string rank = some_rank(rng);
  const pid_t pid = must_have(trial, rank);
  ::kill(pid, SIGKILL);
  wait_replaced(trial, rank, pid, kLongest_s);
  const auto up = Trial::now();
  trial.wait_steps(1);
  return Trial::seconds_since(up);
}

/// Counts from the first step that a checkpoint is due at.
double stop_checkpointer(Trial& trial, CounterRng&) {
  const pid_t pid = must_have(trial, "checkpointer/0");
  ::kill(pid, SIGSTOP);
  trial.wait_steps(5);
  const auto begin = Trial::now();
  wait_replaced(trial, "checkpointer/0", pid, kLongest_s);
  trial.wait_steps(1);
  return Trial::seconds_since(begin);
}

/// From the end of the fault to a whole job that trains.
double whole_after(Trial& trial) {
  const auto begin = Trial::now();
  trial.wait_whole();
  return Trial::seconds_since(begin);
}

double stop_and_wake(Trial& trial, const std::vector<pid_t>& processes) {
  for (const pid_t pid : processes) ::kill(pid, SIGSTOP);
  Trial::last(kLasts_s);
  for (const pid_t pid : processes) ::kill(pid, SIGCONT);
  return whole_after(trial);
}

double wake_node(Trial& trial, CounterRng& rng) {
  const auto& node = trial.job.nodes[some_node(rng)];
  std::vector<pid_t> all{node->pid()};
  for (const auto& [instance, pid] : node->hosts()) all.push_back(pid);
  return stop_and_wake(trial, all);
}

double kill_node(Trial& trial, CounterRng& rng) {
  const std::size_t machine = some_node(rng);
  auto& node = trial.job.nodes[machine];
  node->kill(SIGKILL);
  node->wait(std::chrono::seconds(10));
  node = trial.job.node(machine);
  return whole_after(trial);
}

double power_off(Trial& trial, CounterRng& rng) {
  const std::size_t machine = some_node(rng);
  trial.job.lab.power_off(machine);
  trial.job.nodes[machine].reset();
  trial.job.clear_runtime(machine);
  trial.job.lab.power_on(machine);
  trial.job.nodes[machine] = trial.job.node(machine);
  return whole_after(trial);
}

double kill_controller(Trial& trial, CounterRng&) {
  trial.job.job->kill(SIGKILL);
  const auto begin = Trial::now();
  trial.resume();
  trial.wait_whole();
  return Trial::seconds_since(begin);
}

/// `change` for a while on the links of a machine: what it sends, what it gets, or both.
double with_links(Trial& trial, std::size_t machine, bool out, bool in, double seconds,
                  const std::function<void(LinkFaults&)>& change) {
  auto& lab = trial.job.lab;
  LinkFaults hurt = trial.job.options.links;
  change(hurt);
  for (std::size_t other = 0; other < lab.size(); ++other) {
    if (other == machine) continue;
    if (out) lab.set(machine, other, hurt);
    if (in) lab.set(other, machine, hurt);
  }
  Trial::last(seconds);
  lab.set_all(trial.job.options.links);
  return whole_after(trial);
}

Fault cut(const std::string& name, bool out, bool in, double seconds) {
  return {.name = name,
          .bar_s = kNodeBar_s,
          .strike =
              [=](Trial& trial, CounterRng& rng) {
                const std::size_t machine = rng.below(3);
                return with_links(trial, machine, out, in, seconds, [](LinkFaults& faults) { faults.cut = true; });
              },
          .is_long = seconds > kLasts_s};
}

/// Checkpoints that could not be written, by what the job says: events.jsonl is on the disk that is full.
std::ptrdiff_t failed_checkpoints(const Trial& trial) {
  static const std::regex failed(R"(checkpoint of step \d+ (failed|given up))");
  const std::string text = trial.job.job->output();
  return std::distance(std::sregex_iterator(text.begin(), text.end(), failed), {});
}

double full_disk(Trial& trial, CounterRng&) {
  const auto failed_before = failed_checkpoints(trial);
  const std::string ballast = trial.job.folder() + "/runs/ballast";
  {
    std::ofstream out(ballast, std::ios::binary);
    const std::string block(1 << 20, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  trial.wait("a checkpoint that fails", kLongest_s, [&] { return failed_checkpoints(trial) > failed_before; });
  const auto committed = trial.committed_step();
  std::filesystem::remove(ballast);
  const auto begin = Trial::now();
  trial.wait("a checkpoint after the disk was full", kLongest_s, [&] { return trial.committed_step() > committed; });
  trial.wait_steps(1);
  return Trial::seconds_since(begin);
}

double slow_disk(Trial& trial, CounterRng&) {
  trial.control(0).sync_milliseconds = 1500;
  Trial::last(kLasts_s);
  trial.control(0).sync_milliseconds = 0;
  return whole_after(trial);
}

double clock_jump(Trial& trial, CounterRng& rng) {
  trial.control(rng.below(3)).wall_seconds += rng.below(2) == 0 ? 3600 : -3600;
  return whole_after(trial);
}

/// A byte of the newest checkpoint changes, and then a rank dies, which needs it.
double damaged_file(Trial& trial, CounterRng& rng) {
  trial.wait("two checkpoints", kLongest_s, [&] { return trial.committed_step() >= 10; });
  const std::string folder = std::filesystem::canonical(trial.job.run_directory() + "/checkpoints/latest");
  const auto damaged = trial.committed_step();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    testing::flip_byte(entry.path(), -1);
    break;
  }
  const double seconds = kill_rank(trial, rng);
  trial.wait("a checkpoint beyond the damaged one", kLongest_s, [&] { return trial.committed_step() > damaged; });
  return seconds;
}

double closed_terminal(Trial& trial, CounterRng&) {
  trial.reader.reset();
  const auto ended = trial.job.job->wait(std::chrono::seconds(30));
  if (ended != 130) throw Hang("the job did not end with 130 when its terminal was closed");
  const auto begin = Trial::now();
  trial.resume();
  trial.wait_whole();
  return Trial::seconds_since(begin);
}

double unread_pipe(Trial& trial, CounterRng&) {
  // Every step prints a line: the pipe is full when further steps add nothing to it.
  int seen = 0;
  std::int64_t since = 0;
  trial.wait("a full pipe", kLongest_s, [&] {
    int waiting = 0;
    const std::int64_t steps = trial.steps();
    if (::ioctl(trial.reader.get(), FIONREAD, &waiting) == 0 && waiting != seen) seen = waiting, since = steps;
    return seen > 0 && steps >= since + 3;
  });
  trial.wait_steps(10);
  const double seconds = whole_after(trial);
  trial.reader.reset();
  return seconds;
}

bool has_replaced_host(const Trial& trial) {
  const auto all = trial.hosts();
  return std::any_of(all.begin(), all.end(), [](const auto& host) { return !host.first.ends_with("#0"); });
}

/// Counts from the last step before the job stood still.
double point_hung(Trial& trial, CounterRng&) {
  auto stood = Trial::now();
  std::int64_t seen = 0;
  trial.wait("a hanging actor is replaced", 2 * kLongest_s, [&] {
    if (const std::int64_t steps = trial.steps(); steps != seen) seen = steps, stood = Trial::now();
    return has_replaced_host(trial);
  });
  trial.wait_whole();
  return Trial::seconds_since(stood);
}

/// Counts from the new process on.
double point_fired(Trial& trial, CounterRng&) {
  trial.wait("the process that the point kills is replaced", kLongest_s, [&] { return has_replaced_host(trial); });
  return whole_after(trial);
}

/// How a point of the page is made to kill; empty where it belongs to no job over nodes.
std::string spec_of(const std::string& point) {
  static const std::map<std::string, std::string> known{
      {"learner.step", "learner.step@learner/1#0 step 7:kill"},
      {"learner.committed", "learner.committed@learner/0#0 step 8:kill"},
      {"decoder.item", "decoder.item@decoder/0#0:kill:1:20"},
      {"decode", "decode@decoder/0#0:kill:1:20"},
      {"read", "read@decoder/0#0:kill:1:5"},
      {"parquet", "parquet@decoder/0#0:kill:1:20"},
      {"simulator.step", "simulator.step@env/0#0:kill:1:40"},
      {"rollout.item", "rollout.item@rollout/0#0:kill:1:10"},
      {"checkpointer.begin", "checkpointer.begin@checkpointer/0#0 step 10:kill"},
      {"checkpoint.create", "checkpoint.create@checkpointer/0#0:kill:1:1"},
      {"checkpoint.write", "checkpoint.write@checkpointer/0#0:kill:1:3"},
      {"checkpoint.fsync", "checkpoint.fsync@checkpointer/0#0:kill:1:2"},
      {"checkpoint.manifest", "checkpoint.manifest@checkpointer/0#0:kill:1:1"},
      {"ledger.append", "ledger.append@learner/1#0:kill:1:7"}};
  const auto found = known.find(point);
  return found == known.end() ? std::string() : found->second;
}

/// Points of commands and caches that no job over nodes passes.
bool is_left_out(const std::string& point) { return point.starts_with("convert.") || point.starts_with("features."); }

void add_hangs(std::vector<Fault>& faults) {
  const auto hang = [&](const std::string& point, const std::string& subject, bool sft, bool rl) {
    faults.push_back({.name = "hang at " + point,
                      .bar_s = kStoppedBar_s,
                      .sft = sft,
                      .rl = rl,
                      .strike = point_hung,
                      .point = point + "@" + subject});
  };
  hang("learner.step", "learner/1#0 step 7:stall", true, true);
  hang("decoder.item", "decoder/0#0:stall:1:20", true, false);
  hang("simulator.step", "env/0#0:stall:1:40", false, true);
}

void add_points(std::vector<Fault>& faults, const std::string& page) {
  std::ifstream in(page);
  if (!in) throw std::runtime_error(page + " cannot be read");
  static const std::set<std::string> of_sft{"decoder.item", "decode", "read", "parquet"};
  static const std::set<std::string> of_rl{"simulator.step", "rollout.item"};
  const std::regex row(R"(^\| `([a-z_]+(\.[a-z_]+)*)` \|.*)");
  bool in_table = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| point | subject")) in_table = true;
    std::smatch found;
    if (!in_table || !std::regex_match(line, found, row)) continue;
    const std::string point = found[1], spec = spec_of(point);
    if (spec.empty() && !is_left_out(point))
      throw std::runtime_error(page + " lists " + point + ", which the campaign has no fault for; add one to spec_of");
    if (spec.empty()) continue;
    faults.push_back({.name = "point " + point,
                      .bar_s = spec.find("@learner/") != std::string::npos ? kRankBar_s : kPoolBar_s,
                      .sft = !of_rl.contains(point),
                      .rl = !of_sft.contains(point),
                      .strike = point_fired,
                      .point = spec});
  }
}

}  // namespace

std::vector<Fault> all_faults(const std::string& page) {
  const auto actor_fault = [](const std::string& name, double bar, const std::string& actor, int signal) {
    return Fault{.name = name, .bar_s = bar, .strike = [=](Trial& trial, CounterRng& rng) {
                   const std::string struck = actor == "pool"   ? some_pool_actor(trial, rng)
                                              : actor == "rank" ? some_rank(rng)
                                                                : actor;
                   return strike_and_replace(trial, struck, signal);
                 }};
  };
  std::vector<Fault> faults{
      actor_fault("kill an actor of the pool", kPoolBar_s, "pool", SIGKILL),
      actor_fault("kill the checkpointer", kPoolBar_s, "checkpointer/0", SIGKILL),
      {.name = "kill a rank", .bar_s = kRankBar_s, .strike = kill_rank},
      actor_fault("stop an actor of the pool", kStoppedBar_s, "pool", SIGSTOP),
      actor_fault("stop a rank", kStoppedBar_s, "rank", SIGSTOP),
      {.name = "stop the checkpointer", .bar_s = kStoppedBar_s, .strike = stop_checkpointer},
      {.name = "stop and wake an actor of the pool",
       .bar_s = kPoolBar_s,
       .strike = [](Trial& trial,
                    CounterRng& rng) { return stop_and_wake(trial, {must_have(trial, some_pool_actor(trial, rng))}); }},
      {.name = "stop and wake a rank",
       .bar_s = kRankBar_s,
       .strike = [](Trial& trial,
                    CounterRng& rng) { return stop_and_wake(trial, {must_have(trial, some_rank(rng))}); }},
      {.name = "stop and wake the controller",
       .bar_s = kNodeBar_s,
       .strike = [](Trial& trial, CounterRng&) { return stop_and_wake(trial, {trial.job.job->pid()}); }},
      {.name = "stop and wake a machine", .bar_s = kNodeBar_s, .strike = wake_node},
      {.name = "kill a node", .bar_s = kNodeBar_s, .strike = kill_node},
      {.name = "power off a machine", .bar_s = kNodeBar_s, .strike = power_off},
      {.name = "kill the controller", .bar_s = kLongest_s, .strike = kill_controller},
      cut("cut a machine for 5 s", true, true, kLasts_s),
      cut("cut what a machine sends for 5 s", true, false, kLasts_s),
      cut("cut what a machine gets for 5 s", false, true, kLasts_s),
      cut("cut a machine for 15 s", true, true, kOverLease_s),
      {.name = "lose 20 % for 5 s",
       .bar_s = kNodeBar_s,
       .strike =
           [](Trial& trial, CounterRng& rng) {
             return with_links(trial, rng.below(3), true, true, kLasts_s, [](LinkFaults& f) { f.loss = 0.2; });
           }},
      {.name = "full disk", .bar_s = kLongest_s, .strike = full_disk},
      {.name = "slow disk", .bar_s = kLongest_s, .strike = slow_disk},
      {.name = "damaged checkpoint", .bar_s = kRankBar_s, .strike = damaged_file},
      {.name = "clock jump of an hour", .bar_s = kRankBar_s, .strike = clock_jump},
      {.name = "closed terminal",
       .bar_s = kLongest_s,
       .strike = closed_terminal,
       .output = TrialSetup::Output::terminal},
      {.name = "unread pipe", .bar_s = kRankBar_s, .strike = unread_pipe, .output = TrialSetup::Output::unread_pipe},
  };
  for (Fault& fault : faults) fault.is_long |= fault.bar_s == kStoppedBar_s || fault.bar_s == kLongest_s;
  add_hangs(faults);
  add_points(faults, page);
  return faults;
}

}  // namespace troupe::bench
