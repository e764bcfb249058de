// Jobs over three lab machines, hurt again and again: does each recover, and how fast? Exit code 0 only if all do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>

#include "bench/faults/faults.h"
#include "bench/support/result_file.h"

namespace troupe::bench {
namespace {

using Kind = testing::LabJob::Kind;
constexpr std::size_t kFaultsOfAJob = 5;

struct Options {
  std::int64_t cycles = 10;
  std::uint64_t seed = 1;
  std::string only, out;
  bool brief = false;
};

struct Outcome {
  Kind kind;
  const Fault* fault;
  double seconds;
  std::string failure;  ///< empty: it recovered
};

/// Every fault of a kind of job once, in an order by seed; then all again, in another order.
class Deck {
 public:
  Deck(const std::vector<Fault>& faults, Kind kind, const Options& options)
      : seed_(options.seed), stream_(kind == Kind::sft ? 1 : 2) {
    for (const Fault& fault : faults) {
      if (options.brief && (fault.is_special() || fault.is_long)) continue;
      if ((kind == Kind::sft ? fault.sft : fault.rl) && fault.name.find(options.only) != std::string::npos)
        all_.push_back(&fault);
    }
  }
  bool empty() const { return all_.empty(); }
  /// The faults of the next job: a special one alone, or up to five others.
  std::vector<const Fault*> deal(std::size_t most) {
    std::vector<const Fault*> dealt;
    while (dealt.size() < std::min(most, kFaultsOfAJob)) {
      if (pile_.empty()) shuffle();
      if (!dealt.empty() && pile_.front()->is_special()) break;
      dealt.push_back(pile_.front());
      pile_.pop_front();
      if (dealt.back()->is_special()) break;
    }
    return dealt;
  }

 private:
  void shuffle() {
    pile_.assign(all_.begin(), all_.end());
    CounterRng rng(seed_, stream_, round_++);
    for (std::size_t i = pile_.size(); i > 1; --i)
      std::swap(pile_[i - 1], pile_[rng.below(static_cast<std::uint32_t>(i))]);
  }
  const std::uint64_t seed_, stream_;
  std::uint64_t round_ = 0;
  std::vector<const Fault*> all_;
  std::deque<const Fault*> pile_;
};

class Campaign {
 public:
  Campaign(Options options, std::vector<Fault> faults) : options_(std::move(options)), faults_(std::move(faults)) {}

  int run() {
    Deck decks[] = {{faults_, Kind::sft, options_}, {faults_, Kind::rl, options_}};
    fmt::print("campaign: {} cycles, seed {}; a stopped actor's deadline is set to {} s\n", options_.cycles,
               options_.seed, Trial::kActorDeadline_s);
    for (std::uint64_t number = 0; std::ssize(outcomes_) < options_.cycles; ++number) {
      Deck& deck = decks[number % 2];
      if (!deck.empty())
        run_job(number, number % 2 == 0 ? Kind::sft : Kind::rl,
                deck.deal(static_cast<std::size_t>(options_.cycles) - outcomes_.size()));
      if (decks[0].empty() && decks[1].empty()) throw std::runtime_error("no fault is named like " + options_.only);
    }
    return report();
  }

 private:
  void run_job(std::uint64_t number, Kind kind, const std::vector<const Fault*>& faults) {
    const std::size_t first = outcomes_.size();
    ++jobs_;
    std::unique_ptr<Trial> trial;
    try {
      trial = std::make_unique<Trial>(TrialSetup{.kind = kind,
                                                 .seed = options_.seed * 1'000'000 + number,
                                                 .output = faults.front()->output,
                                                 .fault_point = faults.front()->point});
      for (const Fault* fault : faults) strike(*trial, kind, *fault, number);
      const auto complaints = trial->end();
      for (const std::string& complaint : complaints) outcomes_.back().failure += "at the end: " + complaint + "\n";
      if (complaints.empty()) ++whole_;
      if (!complaints.empty()) say(outcomes_.back());
    } catch (const std::exception& error) {
      if (dynamic_cast<const Hang*>(&error)) ++hangs_;
      if (outcomes_.size() == first) outcomes_.push_back({kind, faults.front(), 0, ""});
      outcomes_.back().failure = error.what();
      if (trial) outcomes_.back().failure += "\n" + trial->job.said();
      say(outcomes_.back());
    }
    if (trial && !outcomes_.back().failure.empty()) {
      fmt::print("  its files stay in {0}, and {0}/runs is mounted until somebody unmounts it\n", trial->job.folder());
      trial->job.keep();
    }
  }

  void strike(Trial& trial, Kind kind, const Fault& fault, std::uint64_t number) {
    CounterRng rng(options_.seed, 3, number << 8 | outcomes_.size() % 256);
    if (fault.point.empty()) trial.wait_steps(2);
    outcomes_.push_back({kind, &fault, 0, ""});
    Outcome& outcome = outcomes_.back();
    outcome.seconds = fault.strike(trial, rng);
    if (outcome.seconds > fault.bar_s)
      outcome.failure = fmt::format("recovered in {:.2f} s, more than {} s", outcome.seconds, fault.bar_s);
    say(outcome);
  }

  void say(const Outcome& outcome) const {
    fmt::print("{:4} {} {:<44} {}\n", outcomes_.size(), outcome.kind == Kind::sft ? "sft" : "rl ", outcome.fault->name,
               outcome.failure.empty() ? fmt::format("{:.2f} s", outcome.seconds) : "FAILED: " + outcome.failure);
    std::fflush(stdout);
  }

  static double quantile(const std::vector<double>& sorted, double share) {
    return sorted[static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size()))) - 1];
  }

  int report() const {
    std::string table = "| fault | cycles | recovered | p50, s | p99, s | bar, s |\n|---|---|---|---|---|---|\n";
    std::int64_t recovered = 0;
    for (const Fault& fault : faults_) {
      std::vector<double> seconds;
      std::int64_t cycles = 0;
      for (const Outcome& outcome : outcomes_) {
        if (outcome.fault != &fault) continue;
        ++cycles;
        if (outcome.failure.empty()) seconds.push_back(outcome.seconds);
      }
      if (cycles == 0) continue;
      recovered += std::ssize(seconds);
      std::sort(seconds.begin(), seconds.end());
      const auto cell = [&](double share) {
        return seconds.empty() ? "-" : fmt::format("{:.2f}", quantile(seconds, share));
      };
      table += fmt::format("| {} | {} | {} | {} | {} | {} |\n", fault.name, cycles, seconds.size(), cell(0.5),
                           cell(0.99), fault.bar_s);
    }
    const std::int64_t cycles = std::ssize(outcomes_);
    std::string sum =
        fmt::format("{} of {} recovered, {} hangs, {} of {} jobs verified whole (lost 0, doubled 0), seed {}",
                    recovered, cycles, hangs_, whole_, jobs_, options_.seed);
    // No failure in n cycles: with 95 % confidence the share that recovers is at least 0.05^(1/n).
    if (recovered == cycles)
      sum += fmt::format("; at least {:.2f} % do, at 95 % confidence",
                         100 * std::pow(0.05, 1.0 / static_cast<double>(cycles)));
    fmt::print("\n{}\n", table);
    if (!options_.out.empty()) {
      write_result(options_.out,
                   fmt::format("# Fault campaign\n\nSFT and RL jobs over three machines in namespaces. A fault that is "
                               "taken away again recovers from then on, a killed rank from its new process on, all "
                               "others from the strike on. A stopped actor's deadline is {} s.\n\n{}\n{}.\n\n{}",
                               Trial::kActorDeadline_s, table, sum,
                               provenance(fmt::format("bench/faults/campaign.sh --cycles {} --seed {}", options_.cycles,
                                                      options_.seed),
                                          "")));
    }
    fmt::print("campaign: {}\n", sum);
    return recovered == cycles ? 0 : 1;
  }

  const Options options_;
  const std::vector<Fault> faults_;
  std::vector<Outcome> outcomes_;
  int jobs_ = 0, whole_ = 0, hangs_ = 0;
};

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe::bench;
  CLI::App app("Hurts jobs over three machines in namespaces and measures how they recover.");
  Options options;
  bool is_long = false;
  app.add_option("--cycles", options.cycles, "faults to try")->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", options.seed, "of their order, their victims and the links");
  app.add_flag("--long", is_long, "10,000 cycles, which 99.97 % at 95 % confidence takes");
  app.add_flag("--brief", options.brief, "leaves out faults that want a job of their own or take 10 s and more");
  app.add_option("--only", options.only, "faults whose name has this text");
  app.add_option("--out", options.out, "result file")->check(refuse_dirty_tree);
  CLI11_PARSE(app, argc, argv);
  if (is_long) options.cycles = 10'000;
  try {
    if (const std::string missing = troupe::testing::Space::missing(); !missing.empty()) {
      fmt::print("campaign: NOT RUN: no namespaces: {}\n", missing);
      return 77;
    }
    auto faults = all_faults(std::string(TROUPE_SOURCE_DIR) + "/docs/fault-points.md");
    return Campaign(options, std::move(faults)).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "campaign: {}\n", error.what());
    return 2;
  }
}
