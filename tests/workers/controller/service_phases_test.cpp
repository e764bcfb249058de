// What the controller tells of the phases of a job of reinforcement learning: in status, metrics and progress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/inline_background.h"
#include "tests/support/scratch_folder.h"
#include "workers/controller/service.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Keeps the metrics of the newest step.
class NewestMetrics final : public MetricSink {
 public:
  explicit NewestMetrics(std::map<std::string, double>& metrics) : metrics_(metrics) {}
  Result<void> write(std::int64_t, double, std::int64_t, const std::map<std::string, double>& metrics) override {
    metrics_ = metrics;
    return {};
  }
  Result<void> flush() override { return {}; }

 private:
  std::map<std::string, double>& metrics_;
};

struct ServicePhasesTest : ::testing::Test {
  ServicePhasesTest() {
    ControllerService::Setup setup;
    setup.job.config.job.name = "cart";
    setup.job.config.job.kind = JobKind::rl;
    setup.job.config.training.steps = 4;
    setup.job.config.metrics.every = 1;
    setup.job.run = RunDirectory::create(folder.path(), "cart", "run").value();
    setup.job.runtime_dir = folder.path();
    setup.wall_seconds = [] { return 0.0; };
    std::vector<std::unique_ptr<MetricSink>> sinks;
    sinks.push_back(std::make_unique<NewestMetrics>(metrics));
    service = std::make_unique<ControllerService>(
        std::move(setup), membership, *db, std::move(sinks),
        [this](const std::string&, const Message& message) {
          if (const auto* reply = std::get_if<Reply>(&message)) status = nlohmann::json::parse(reply->text);
        },
        output, std::make_unique<testing::InlineBackground>());
  }
  /// A step of 10 s, of which the learner waits for 8 and updates for 1.5.
  void step(std::int64_t number) {
    service->step({.actor = "learner/0",
                   .fence = 1,
                   .step = number,
                   .metrics = {{"time/step", 10},
                               {"time/stall", 8},
                               {"time/generate_rollouts", 8},
                               {"time/actor_training", 1.5},
                               {"train/applied", 1}}});
    service->handle("cli.1", StatusQuery{}, now);
  }
  /// A rollout worker has reported: of 10 s it simulated for 6.
  void report() {
    service->producer_times("rollout", {.actor = "rollout/0",
                                        .idle_seconds = 1,
                                        .busy_seconds = 9,
                                        .simulate_seconds = 6,
                                        .policy_seconds = 2,
                                        .record_seconds = 0.5});
  }

  struct Output final : RunOutput {
    void line(Severity, const std::string&) override {}
    void live(const LiveLine& line) override { newest = line; }
    void progress(const std::string& text) override { said = text; }
    LiveLine newest;
    std::string said;
  } output;
  const ControllerService::TimePoint now = std::chrono::steady_clock::now();
  testing::ScratchFolder folder;
  Membership membership{{.name = "local", .cpus = 1, .memory_bytes = 1, .devices = {}}, 10s};
  std::unique_ptr<StateDb> db = StateDb::open(folder / "state.db").value();
  std::map<std::string, double> metrics;
  nlohmann::json status;
  std::unique_ptr<ControllerService> service;
};

TEST_F(ServicePhasesTest, BeforeRolloutWorkersReportOnlyTheSideIsKnown) {
  step(1);
  EXPECT_EQ(status["live"]["bottleneck"], "rollouts");
  EXPECT_FALSE(status["live"].contains("phases"));
  EXPECT_FALSE(metrics.contains("phase/rollout/simulate"));
  EXPECT_THAT(output.said, HasSubstr("bottleneck: rollouts"));
}

TEST_F(ServicePhasesTest, SharesAndBottleneckAreInStatusMetricsAndProgress) {
  report();
  step(1);
  const auto& live = status["live"];
  EXPECT_EQ(live["bottleneck"], "simulation");
  EXPECT_THAT(live["text"].get<std::string>(), HasSubstr("bottleneck: simulation"));
  EXPECT_DOUBLE_EQ(live["phases"]["rollout"]["simulate"].get<double>(), 0.6);
  EXPECT_DOUBLE_EQ(live["phases"]["rollout"]["policy"].get<double>(), 0.2);
  EXPECT_DOUBLE_EQ(live["phases"]["rollout"]["record"].get<double>(), 0.05);
  EXPECT_DOUBLE_EQ(live["phases"]["rollout"]["hand_over"].get<double>(), 0.05);
  EXPECT_DOUBLE_EQ(live["phases"]["rollout"]["wait"].get<double>(), 0.1);
  EXPECT_DOUBLE_EQ(live["phases"]["learner"]["update"].get<double>(), 0.15);
  EXPECT_DOUBLE_EQ(live["phases"]["learner"]["wait"].get<double>(), 0.8);
  EXPECT_FALSE(live["phases"].contains("env"));
  EXPECT_EQ(live["phase_texts"][0], "rollout: simulate 60%, policy 20%, record 5%, hand-over 5%, wait 10%");
  EXPECT_EQ(live["phase_texts"][1], "learner: advantages 0%, update 15%, publish 0%, other 5%, wait 80%");
  EXPECT_DOUBLE_EQ(metrics.at("phase/rollout/simulate"), 0.6);
  EXPECT_DOUBLE_EQ(metrics.at("phase/learner/other"), 0.05);
  EXPECT_THAT(output.said, HasSubstr("bottleneck: simulation"));
  EXPECT_THAT(output.said, HasSubstr("rollout: simulate 60%"));
  EXPECT_EQ(output.newest.bottleneck, "simulation");
}

TEST_F(ServicePhasesTest, TheNewestWindowIsShownUntilTheNextOneEnds) {
  report();
  step(1);
  step(2);
  EXPECT_EQ(status["live"]["bottleneck"], "simulation");
  EXPECT_FALSE(metrics.contains("phase/rollout/simulate")) << "a metric is told once";
}

}  // namespace
}  // namespace troupe::workers
