// Recorded episodes as transitions, against the rows that they were written from.
#include "workers/learner/imitation/recorded_replay.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "base/new_folder.h"
#include "data/lerobot/lerobot_writer.h"
#include "model/loss/rl_keys.h"
#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The state of row t of episode e begins with mark(e, t); its action is a tenth of t, its reward 100 e + t.
float mark(std::int64_t episode, std::int64_t row) { return static_cast<float>(10 * episode + row); }

struct Written {
  std::string name = "data";
  std::vector<std::int64_t> lengths = {3, 4};
  bool has_reward = true, has_terminated = true;
  /// Episodes whose last row terminated them.
  std::vector<std::int64_t> terminated = {1};
  float action_scale = 0.1F, first_state = 0;
  /// Of the episodes, in turn.
  std::vector<std::string> tasks = {"swing up"};
};

class RecordedReplayTest : public ::testing::Test {
 protected:
  /// Episodes of an environment like Pendulum-v1: three numbers observed, one of an action between -2 and 2.
  std::string write(const Written& w) const {
    auto folder = NewFolder::begin(folder_ / w.name).value();
    LerobotDescription d{.robot_type = "pendulum",
                         .fps = 20,
                         .columns = {{.name = "observation.state", .width = 3}, {.name = "action"}}};
    if (w.has_reward) d.columns.push_back({.name = "next.reward"});
    if (w.has_terminated) d.columns.push_back({.name = "next.terminated", .type = LerobotColumn::Type::boolean});
    auto writer = LerobotWriter::begin(folder.path(), d).value();
    for (std::size_t e = 0; e < w.lengths.size(); ++e) {
      const auto episode = static_cast<std::int64_t>(e);
      std::vector<float> states, actions, rewards, terminated;
      for (std::int64_t t = 0; t < w.lengths[e]; ++t) {
        states.insert(states.end(), {mark(episode, t), 0, 1});
        actions.push_back(w.action_scale * static_cast<float>(t));
        rewards.push_back(static_cast<float>(100 * episode + t));
        const bool ends = std::count(w.terminated.begin(), w.terminated.end(), episode) > 0;
        terminated.push_back(ends && t + 1 == w.lengths[e] ? 1.0F : 0.0F);
      }
      if (e == 0) states[0] += w.first_state;
      std::vector<std::span<const float>> columns = {states, actions};
      if (w.has_reward) columns.emplace_back(rewards);
      if (w.has_terminated) columns.emplace_back(terminated);
      const std::int64_t task = writer.task_index(w.tasks[e % w.tasks.size()]);
      writer.append({.length = w.lengths[e], .task_index = task, .columns = columns}).value();
    }
    writer.finish().value();
    folder.publish().value();
    return folder_ / w.name;
  }
  static JobConfig job(const std::string& data, const std::string& env = "Pendulum-v1") {
    JobConfig config;
    config.job.kind = JobKind::rl;
    config.env.id = env;
    config.algorithm.name = Algorithm::sac;
    config.algorithm.gamma = 0.5;
    config.data.sets = {{.path = data}};
    return config;
  }
  static RecordedReplay read(const JobConfig& config) {
    return read_recorded_replay(config, make_agent(config).value()).value();
  }
  static std::string refusal(const JobConfig& config) {
    const auto result = read_recorded_replay(config, make_agent(config).value());
    return result ? "no error" : result.error().message();
  }

  struct Transition {
    float action = 0, reward = 0, continues = 0, next = 0;
    bool operator==(const Transition&) const = default;
    friend void PrintTo(const Transition& t, std::ostream* out) {
      *out << t.action << ' ' << t.reward << ' ' << t.continues << ' ' << t.next;
    }
  };
  /// All transitions, by the state that they begin in.
  static std::map<float, Transition> all(const RecordedReplay& recorded) {
    const Batch batch = recorded.transitions->draw(200, 1, 0);
    std::map<float, Transition> found;
    const auto first = [&](const char* key, std::int64_t row) { return batch.at(key)[row][0].item<float>(); };
    for (std::int64_t row = 0; row < 200; ++row) {
      found[first(rl_keys::kState, row)] = {.action = first(rl_keys::kAction, row),
                                            .reward = first(rl_keys::kReward, row),
                                            .continues = first(rl_keys::kContinues, row),
                                            .next = first(rl_keys::kNextState, row)};
    }
    return found;
  }
  static std::vector<float> starts(const RecordedReplay& recorded) {
    std::vector<float> marks;
    for (const auto& [state, transition] : all(recorded)) marks.push_back(state);
    return marks;
  }

  ScratchFolder folder_;
};

TEST_F(RecordedReplayTest, EveryRowLeadsToTheNextOneOfItsEpisode) {
  const auto found = all(read(job(write({}))));
  for (const auto& [episode, rows] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {1, 3}}) {
    for (std::int64_t t = 0; t < rows; ++t) {
      const Transition want{.action = 0.1F * static_cast<float>(t),
                            .reward = static_cast<float>(100 * episode + t),
                            .continues = 0.5F,
                            .next = mark(episode, t + 1)};
      EXPECT_EQ(found.at(mark(episode, t)), want) << "episode " << episode << " row " << t;
    }
  }
}

TEST_F(RecordedReplayTest, ALastRowCountsWhereItTerminatedTheEpisode) {
  const RecordedReplay recorded = read(job(write({})));
  EXPECT_THAT(starts(recorded), ElementsAre(0, 1, 10, 11, 12, 13));
  EXPECT_EQ(recorded.transitions->resident(), 6);
  const Transition last = all(recorded).at(13);
  EXPECT_EQ(last.reward, 103);
  EXPECT_EQ(last.continues, 0);
}

TEST_F(RecordedReplayTest, WithoutTheColumnLastRowsAreLeftOut) {
  EXPECT_THAT(starts(read(job(write({.has_terminated = false})))), ElementsAre(0, 1, 10, 11, 12));
}

TEST_F(RecordedReplayTest, ATargetThatNothingCutsWantsTheObservationBehindTheLastRow) {
  JobConfig config = job(write({}));
  config.algorithm.sac.bootstrap = "always";
  EXPECT_THAT(starts(read(config)), ElementsAre(0, 1, 10, 11, 12));
}

TEST_F(RecordedReplayTest, HeldOutEpisodesAreNotReplayed) {
  JobConfig config = job(write({}));
  config.data.eval_episodes = {1};
  EXPECT_THAT(starts(read(config)), ElementsAre(0, 1));
  config.data.sets.push_back(config.data.sets.front());
  config.data.sets.back().eval_episodes = {0};
  EXPECT_EQ(read(config).transitions->resident(), 6) << "two of one, four of the other";
}

TEST_F(RecordedReplayTest, ActionsAreThoseThatTheEnvironmentWouldExecute) {
  EXPECT_EQ(all(read(job(write({.action_scale = 3})))).at(1).action, 2);
}

TEST_F(RecordedReplayTest, FingerprintsTellRecordingsApart) {
  const std::string data = write({});
  EXPECT_EQ(read(job(data)).fingerprint, read(job(write({.name = "same"}))).fingerprint);
  EXPECT_NE(read(job(data)).fingerprint, read(job(write({.name = "other", .first_state = 0.5F}))).fingerprint);
}

TEST_F(RecordedReplayTest, RefusesWhatItCannotReplay) {
  EXPECT_THAT(refusal(job(write({.name = "rewardless", .has_reward = false}))), HasSubstr("next.reward"));
  EXPECT_THAT(refusal(job(write({.name = "short", .lengths = {1, 1}, .terminated = {}}))),
              HasSubstr("data.sets: holds no transition"));
  EXPECT_THAT(refusal(job(write({}), "reach-v1")), HasSubstr("'observation.state' has 3 numbers a row where"));
}

TEST_F(RecordedReplayTest, EnvironmentsThatObserveMoreThanRecordingsHoldAreNamed) {
  const JobConfig config = job(write({}));
  Agent sees = make_agent(config).value(), privileged = sees;
  sees.shape.images = {{.name = "rgb.front", .height = 8, .width = 8}};
  privileged.shape.critic_dim = 1;
  const auto message = [&](const Agent& agent) {
    const auto result = read_recorded_replay(config, agent);
    return result ? "no error" : result.error().message();
  };
  EXPECT_THAT(message(sees), HasSubstr("algorithm.demonstration_share: Pendulum-v1 observes pictures"));
  EXPECT_THAT(message(privileged), HasSubstr("Pendulum-v1 has fields that critics alone read"));
}

TEST_F(RecordedReplayTest, APolicyThatIsToldATextIsToldTheTask) {
  JobConfig config = job(write({.tasks = {"swing up", "hang"}}));
  EnvSpec spec = env_spec_of(config.env).value();
  spec.observation.push_back({.name = "order", .shape = {8}, .dtype = EnvDType::u8, .reader = EnvReader::text});
  config.policy.text = TextReader::words;
  const auto replay = [&] { return read_recorded_replay(config, make_agent(config, spec).value()); };
  const Batch batch = replay()->transitions->draw(200, 1, 0);
  const at::Tensor& texts = batch.at("text.order");
  for (std::int64_t row = 0; row < 200; ++row) {
    const std::string text(reinterpret_cast<const char*>(texts.const_data_ptr<std::uint8_t>()) + 8 * row, 8);
    EXPECT_EQ(text, batch.at(rl_keys::kState)[row][0].item<float>() < 10 ? "swing up" : std::string("hang\0\0\0\0", 8));
  }
  config.data.sets = {{.path = write({.name = "long", .tasks = {"swing it up"}})}};
  EXPECT_THAT(replay().error().message(), HasSubstr("task 0 has 11 bytes; the policy's text 'order' has room for 8"));
  config.policy.text = TextReader::none;
  EXPECT_FALSE(replay()->transitions->draw(2, 1, 0).contains("text.order"));
}

TEST_F(RecordedReplayTest, AShareOfEveryBatchIsRecorded) {
  const RecordedReplay recorded = read(job(write({})));
  const RecordedReplay own = read(job(write({.name = "own", .first_state = 1000})));
  const auto draw = [&](double share, std::uint64_t index) {
    return draw_with_demonstrations(*own.transitions, recorded, share, 8, 1, index);
  };
  const Batch batch = draw(0.25, 3), alone = own.transitions->draw(6, 1, 3);
  for (const auto& [name, tensor] : alone) {
    EXPECT_EQ(batch.at(name).size(0), 8) << name;
    EXPECT_TRUE(batch.at(name).narrow(0, 0, 6).equal(tensor)) << name;
  }
  EXPECT_LT(batch.at(rl_keys::kState).narrow(0, 6, 2).max().item<float>(), 100);
  EXPECT_TRUE(draw(0.25, 3).at(rl_keys::kState).equal(batch.at(rl_keys::kState)));
  EXPECT_FALSE(draw(0.25, 4).at(rl_keys::kState).equal(batch.at(rl_keys::kState)));
  EXPECT_TRUE(draw_with_demonstrations(*own.transitions, {}, 0, 8, 1, 3)
                  .at(rl_keys::kState)
                  .equal(own.transitions->draw(8, 1, 3).at(rl_keys::kState)));
}

}  // namespace
}  // namespace troupe::workers
