#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

#include "tests/workers/rollout/scripted_net.h"
#include "workers/rollout/block_requests.h"
#include "workers/rollout/ended_rows.h"
#include "workers/rollout/moments.h"
#include "workers/rollout/policy_shape_of.h"
#include "workers/rollout/request_batcher.h"
#include "workers/rollout/trajectory_layout.h"
#include "workers/rollout/trajectory_request.h"
#include "workers/rollout/trajectory_writer.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

EnvSpec camera_spec() {
  EnvSpec spec;
  spec.id = "camera-v1";
  spec.observation = {{.name = "pose", .shape = {3}, .dtype = EnvDType::f64},
                      {.name = "rgb.front", .shape = {4, 5, 3}, .dtype = EnvDType::u8},
                      {.name = "grip", .shape = {}}};
  spec.action.size = 2;
  spec.action.low = {-1, -2};
  spec.action.high = {1, 2};
  spec.max_steps = 50;
  return spec;
}

JobConfig small_job() {
  JobConfig job;
  job.env.num_envs = 6;
  job.env.blocks = 2;
  job.env.chunk = 2;
  job.rollout.steps = 8;
  job.algorithm.gamma = 0.5;
  return job;
}

TEST(PolicyShapeOfTest, VectorsBecomeTheStateInOrderAndImagesStayImages) {
  const auto shape = policy_shape_of(camera_spec(), small_job().env, {});
  EXPECT_EQ(shape->state_dim, 4);
  ASSERT_EQ(shape->images.size(), 1u);
  EXPECT_EQ(shape->images[0].width, 5);
  EXPECT_EQ(shape->chunk, 2);
  EXPECT_EQ(shape->max_episode_steps, 50);
  const ObservationParts parts = observation_parts(camera_spec());
  ASSERT_EQ(parts.vectors.size(), 2u);
  EXPECT_EQ(parts.vectors[1].column, 3);
  EXPECT_EQ(parts.vectors[1].field, 2u);
}

TEST(PolicyShapeOfTest, AFieldThatNoPolicyTakesIsNamed) {
  EnvSpec spec = camera_spec();
  spec.observation.push_back({.name = "seg.front", .shape = {4, 5}, .dtype = EnvDType::u8});
  EXPECT_THAT(policy_shape_of(spec, small_job().env, {}).error().message(), ::testing::HasSubstr("seg.front"));
}

TEST(PolicyShapeOfTest, DepthIsAnImageOfOneChannelInF32) {
  EnvSpec spec = camera_spec();
  spec.observation.push_back({.name = "depth.front", .shape = {4, 5}});
  const auto shape = policy_shape_of(spec, small_job().env, {});
  ASSERT_EQ(shape->images.size(), 2u);
  EXPECT_TRUE(shape->images[1].is_depth);
  EXPECT_EQ(shape->images[1].channels, 1);
  EXPECT_EQ(shape->images[1].bytes(), 80);
  EXPECT_EQ(observation_parts(spec).images.at(1).bytes, 80);
  const RecordField field =
      make_trajectory_layout(small_job(), spec, ScriptedNet({.actions = 4, .choices = 0})).images.at(1);
  EXPECT_EQ(field.type, RecordType::f32);
  EXPECT_THAT(field.shape, ElementsAre(5, 3, 4, 5, 1));
}

TEST(TrajectoryLayoutTest, FieldsFollowEachOtherAtMultiplesOf64) {
  const ScriptedNet net({.actions = 4, .choices = 0, .has_extra = true});
  const TrajectoryLayout layout = make_trajectory_layout(small_job(), camera_spec(), net);
  std::int64_t end = 0;
  for (const RecordField* field : layout.fields()) {
    EXPECT_EQ(field->offset % 64, 0) << field->name;
    EXPECT_GE(field->offset, end) << field->name;
    EXPECT_LT(field->offset, end + 64) << field->name;
    end = field->offset + field->bytes;
  }
  EXPECT_EQ(layout.fixed_bytes % 64, 0);
  EXPECT_GE(layout.fixed_bytes, end);
  EXPECT_EQ(layout.bytes, layout.fixed_bytes) << "no final pictures";
  EXPECT_EQ(layout.calls, 4);
  EXPECT_EQ(layout.rows, 3);
  EXPECT_THAT(layout.state.shape, ElementsAre(5, 3, 4));
  EXPECT_THAT(layout.images.at(0).shape, ElementsAre(5, 3, 4, 5, 3));
  EXPECT_THAT(layout.action.shape, ElementsAre(4, 3, 4));
  EXPECT_THAT(layout.extras.at(0).shape, ElementsAre(4, 3, 2));
  EXPECT_FALSE(layout.final_state.is_present());
  EXPECT_FALSE(layout.observed.is_present());
}

TEST(TrajectoryLayoutTest, OffPolicyItemsHoldFinalObservationsAndNoValues) {
  JobConfig job = small_job();
  job.algorithm.name = Algorithm::sac;
  job.rollout.normalize_obs = job.rollout.normalize_reward = true;
  const ScriptedNet net({.actions = 4, .choices = 0, .has_value = false});
  const TrajectoryLayout layout = make_trajectory_layout(job, camera_spec(), net);
  EXPECT_THAT(layout.final_state.shape, ElementsAre(4, 3, 4));
  ASSERT_EQ(layout.final_images.size(), 1u);
  EXPECT_THAT(layout.final_images[0].shape, ElementsAre(4, 5, 3));
  EXPECT_EQ(layout.final_image_bytes, 60);
  EXPECT_EQ(layout.bytes, layout.fixed_bytes + 4 * 3 * 60 + 48) << "4 policy steps of 3 rows, rounded up to 64";
  EXPECT_FALSE(layout.value.is_present());
  EXPECT_FALSE(layout.logp.is_present());
  EXPECT_THAT(layout.observed.shape, ElementsAre(9));
  EXPECT_THAT(layout.returned.shape, ElementsAre(3));
}

TEST(MomentsTest, PartsMergeToTheWhole) {
  const std::vector<float> rows{1, -2, 4, 0.5f, -3, 7, 9, 9, 2.25f, -1};
  Moments whole(2), parts(2);
  whole.add(rows);
  const std::span<const float> all(rows);
  for (const auto part : {all.subspan(0, 2), all.subspan(2, 6), all.subspan(8, 2)}) {
    Moments one(2);
    one.add(part);
    parts.merge(one);
  }
  EXPECT_EQ(parts.count(), 5);
  for (std::size_t i = 0; i < 2; ++i) {
    double mean = 0, square = 0;
    for (std::size_t r = 0; r < 5; ++r) mean += rows[2 * r + i] / 5.0;
    for (std::size_t r = 0; r < 5; ++r) square += (rows[2 * r + i] - mean) * (rows[2 * r + i] - mean) / 5.0;
    EXPECT_NEAR(whole.mean(i), mean, 1e-12);
    EXPECT_NEAR(whole.variance(i), square, 1e-12);
    EXPECT_NEAR(parts.mean(i), mean, 1e-12);
    EXPECT_NEAR(parts.variance(i), square, 1e-12);
  }
}

TEST(MomentsTest, AStateOfANormaliserRoundTripsAndItsCutsAreRefused) {
  NormaliserState state{Moments(2), Moments(1)};
  state.observed.add(std::vector<float>{1, 2, 3, 5});
  state.returned.add(std::vector<float>{4});
  const std::string text = encode(state);
  const auto decoded = decode_normaliser(text);
  EXPECT_EQ(encode(*decoded), text);
  for (std::size_t length = 1; length < text.size(); ++length)
    EXPECT_FALSE(decode_normaliser(std::string_view(text).substr(0, length))) << length;
  EXPECT_EQ(decode_normaliser("")->observed.dim(), 0u);
}

TEST(StateScaleTest, CentresScalesAndClips) {
  Moments moments(1);
  moments.add(std::vector<float>{1, 3});  // mean 2, deviation 1
  std::vector<float> values{2, 3.5f, 100, -100};
  StateScale(moments, 5, std::vector<std::uint8_t>{1}).apply(values);
  EXPECT_FLOAT_EQ(values[0], 0);
  EXPECT_FLOAT_EQ(values[1], 1.5f);
  EXPECT_EQ(values[2], 5);
  EXPECT_EQ(values[3], -5);
}

TEST(StateScaleTest, ColumnsThatAreNotNormalisedStayAsTheyAre) {
  Moments moments(2);
  moments.add(std::vector<float>{1, 1, 3, 3});
  std::vector<float> values{3, 3, 100, 100};
  StateScale(moments, 5, std::vector<std::uint8_t>{1, 0}).apply(values);
  EXPECT_THAT(values, ElementsAre(1, 3, 5, 100));
}

/// An environment with a field for each reader, those of critics and the mask before the policy's.
EnvSpec readers_spec() {
  EnvSpec spec;
  spec.id = "readers-test-v1";
  spec.observation = {{.name = "allowed", .shape = {2}, .dtype = EnvDType::u8, .reader = EnvReader::action_mask},
                      {.name = "secret", .shape = {2}, .dtype = EnvDType::f64, .reader = EnvReader::critic},
                      {.name = "order", .shape = {8}, .dtype = EnvDType::u8, .reader = EnvReader::text},
                      {.name = "state", .shape = {1}},
                      {.name = "flag", .shape = {}, .normalise = false},
                      {.name = "rgb.above", .shape = {2, 2, 3}, .dtype = EnvDType::u8, .reader = EnvReader::critic}};
  spec.action.choices = 2;
  return spec;
}

TEST(ReadersTest, TheStateIsThePolicysColumnsThenTheCriticsThenTheMask) {
  PolicyConfig reading;
  reading.text = TextReader::words;
  const auto shape = policy_shape_of(readers_spec(), small_job().env, reading);
  EXPECT_TRUE(policy_shape_of(readers_spec(), small_job().env, {})->texts.empty());
  EXPECT_EQ(shape->state_dim, 6);
  EXPECT_EQ(shape->critic_dim, 2);
  EXPECT_EQ(shape->mask_dim, 2);
  EXPECT_TRUE(shape->images.at(0).is_for_critic);
  EXPECT_EQ(seen_by_actor(*shape).state_dim, 2);
  EXPECT_TRUE(seen_by_actor(*shape).images.empty());
  EXPECT_EQ(seen_by_critic(*shape).state_dim, 4);
  ASSERT_EQ(shape->texts.size(), 1u);
  EXPECT_EQ(shape->texts[0].name, "order");
  EXPECT_EQ(shape->texts[0].bytes, 8);
  EXPECT_EQ(seen_by_actor(*shape).texts.size(), 1u);
  const ObservationParts parts = observation_parts(readers_spec());
  EXPECT_THAT(parts.normalised, ElementsAre(1, 0, 1, 1, 0, 0));
  std::vector<float> state(6, -1);
  const std::uint8_t allowed[] = {0, 9};
  const double secret[] = {0.5, 0.25};
  const float value = 3;
  parts.vectors.at(0).write(reinterpret_cast<const std::byte*>(allowed), state.data());
  parts.vectors.at(1).write(reinterpret_cast<const std::byte*>(secret), state.data());
  parts.vectors.at(2).write(reinterpret_cast<const std::byte*>(&value), state.data());
  EXPECT_THAT(state, ElementsAre(3, -1, 0.5f, 0.25f, 0, 1));
}

TEST(ReadersTest, ATextIsKeptWhereThePolicyReadsIt) {
  JobConfig job = small_job();
  job.env.chunk = 1;
  const auto layout_of = [&] { return make_trajectory_layout(job, readers_spec(), ScriptedNet({})); };
  EXPECT_EQ(observation_parts(readers_spec()).texts.at(0).field, 2u);
  EXPECT_TRUE(layout_of().texts.empty());
  const std::int64_t without = layout_of().fixed_bytes;
  job.policy.text = TextReader::words;
  const TrajectoryLayout layout = layout_of();
  EXPECT_EQ(layout.texts.at(0).shape, (std::vector<std::int64_t>{9, 3, 8}));
  EXPECT_EQ(layout.fixed_bytes, without + 256) << "9 * 3 * 8 bytes, a multiple of 64";
  EXPECT_EQ(layout.fields().at(3), &layout.texts.at(0)) << "behind head, state and picture";
}

TEST(BlockRequestTest, AStepKeepsItsActionsAndDamageIsRefused) {
  const std::vector<float> actions{1, -2, 3};
  std::vector<std::byte> bytes(block_request_bytes(3));
  write_block_request({.kind = BlockRequest::Kind::step, .block = 7, .serial = 9, .actions = actions}, bytes);
  std::copy(actions.begin(), actions.end(), request_actions(bytes).begin());
  const auto request = read_block_request(bytes, 3);
  EXPECT_EQ(request->block, 7);
  EXPECT_THAT(std::vector<float>(request->actions.begin(), request->actions.end()), ElementsAre(1, -2, 3));
  EXPECT_FALSE(read_block_request(bytes, 4)) << "of another environment";
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(read_block_request(std::span(bytes).first(length), 3)) << length;
  bytes[0] = std::byte{9};
  EXPECT_FALSE(read_block_request(bytes, 3)) << "of no kind";
}

TEST(TrajectoryRequestTest, RoundTripsAndRefusesOtherBytes) {
  const auto bytes = encode(TrajectoryRequest{.version = 12, .exact = true});
  EXPECT_EQ(decode_trajectory_request(bytes)->version, 12);
  EXPECT_TRUE(decode_trajectory_request(bytes)->exact);
  EXPECT_FALSE(decode_trajectory_request(std::span(bytes).first(8)));
  EXPECT_FALSE(decode_trajectory_request(encode(TrajectoryRequest{.version = -1})));
}

struct RequestBatcherTest : ::testing::Test {
  RequestBatcher::Time now{};
  std::vector<std::int64_t> due;
};

TEST_F(RequestBatcherTest, AFullBatchGoesAtOnceInTheOrderOfArrival) {
  RequestBatcher batcher(2, 10ms);
  batcher.add(4, now);
  batcher.take(now, true, due);
  EXPECT_TRUE(due.empty());
  batcher.add(1, now);
  batcher.add(3, now);
  batcher.take(now, true, due);
  EXPECT_THAT(due, ElementsAre(4, 1));
  batcher.take(now, true, due);
  EXPECT_TRUE(due.empty());
}

TEST_F(RequestBatcherTest, TheOldestRequestWaitsSoLongAndNoLonger) {
  RequestBatcher batcher(4, 10ms);
  batcher.add(4, now);
  batcher.add(5, now + 9ms);
  EXPECT_EQ(batcher.due(), now + 10ms);
  batcher.take(now + 9ms, true, due);
  EXPECT_TRUE(due.empty());
  batcher.take(now + 10ms, true, due);
  EXPECT_THAT(due, ElementsAre(4, 5));
  EXPECT_EQ(batcher.due(), RequestBatcher::Time::max());
}

TEST_F(RequestBatcherTest, NobodyWaitsForBlocksThatCannotCome) {
  RequestBatcher batcher(4, 10ms);
  batcher.add(4, now);
  batcher.take(now, false, due);
  EXPECT_THAT(due, ElementsAre(4));
}

TEST_F(RequestBatcherTest, WithoutANumberAllThatWaitGoAtOnce) {
  RequestBatcher batcher(0, 10ms);
  for (const std::int64_t block : {4, 1, 3}) batcher.add(block, now);
  batcher.take(now, true, due);
  EXPECT_THAT(due, ElementsAre(4, 1, 3));
  batcher.take(now, true, due);
  EXPECT_TRUE(due.empty());
}

TEST_F(RequestBatcherTest, ARemovedBlockIsNotAnswered) {
  RequestBatcher batcher(1, 0ms);
  batcher.add(4, now);
  batcher.add(5, now);
  batcher.remove(4);
  batcher.take(now, true, due);
  EXPECT_THAT(due, ElementsAre(5));
}

/// A block of 3 rows written by hand.
struct TrajectoryWriterTest : ::testing::Test {
  JobConfig job = small_job();
  EnvSpec spec = camera_spec();
  void open() {
    const ScriptedNet net({.actions = 4, .choices = 0});
    layout = make_trajectory_layout(job, spec, net);
    writer = std::make_unique<TrajectoryWriter>(job, spec, layout);
    item_bytes_.resize(static_cast<std::size_t>(layout.bytes), std::byte{0xff});
    block_bytes.assign(static_cast<std::size_t>(writer->block_layout().bytes), std::byte{0});
    item = {layout, item_bytes_.data()};
    block = writer->block(block_bytes.data());
    history = writer->new_history();
    writer->begin(item, 3, 1, false, history);
  }
  TrajectoryLayout layout;
  std::unique_ptr<TrajectoryWriter> writer;
  std::vector<std::byte> item_bytes_, block_bytes;
  TrajectoryView item;
  BlockView block;
  BlockHistory history;
};

TEST_F(TrajectoryWriterTest, StatesArePutTogetherCountedRawAndStoredScaled) {
  job.rollout.normalize_obs = true;
  open();
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < 3; ++i) block.at<double>(block.layout->observation[0])[row * 3 + i] = row + i;
    block.at<float>(block.layout->observation[2])[row] = 10.0f * static_cast<float>(row);
    block.at<std::uint8_t>(block.layout->observation[1])[row * 60] = static_cast<std::uint8_t>(40 + row);
  }
  Moments seen(4);
  seen.add(std::vector<float>{0, 0, 0, 0, 2, 2, 2, 2});  // mean 1, deviation 1
  writer->observe(item, 2, block, StateScale(seen, 5, std::vector<std::uint8_t>(4, 1)), history);
  EXPECT_THAT(item.state(2).first(4), ElementsAre(-1, 0, 1, -1));
  EXPECT_THAT(item.state(2).subspan(8, 4), ElementsAre(1, 2, 3, 5));
  EXPECT_EQ(item.image(0, 2)[60], 41);
  writer->finish(item, block, history);
  const Moments counted(std::span<const double>(item.observed()));
  EXPECT_EQ(counted.count(), 3);
  EXPECT_DOUBLE_EQ(counted.mean(3), 10);
}

TEST_F(TrajectoryWriterTest, ARecordIsWrittenWhereAnEpisodeEnds) {
  job.rollout.normalize_reward = true;
  open();
  for (std::size_t i = 0; i < 6; ++i) block.valid()[i] = 1, block.reward()[i] = 1;
  block.valid()[3] = 0;  // row 1 ended in its first action
  block.reward()[3] = 0;
  for (std::size_t i = 0; i < 3; ++i) block.executed()[i] = 2;
  block.executed()[1] = 1;
  block.terminated()[2] = 1;
  block.done()[1] = 1;
  block.episode_return()[1] = 17.5;
  block.episode_length()[1] = 9;
  block.episode_success()[1] = 3;
  writer->transition(item, 0, block, history);
  writer->transition(item, 1, block, history);
  EXPECT_THAT(item.ended(0), ElementsAre(0, 1, 0));
  EXPECT_EQ(item.episode_return(0)[1], 17.5);
  EXPECT_EQ(item.episode_length(0)[1], 9);
  EXPECT_EQ(item.episode_success(0)[1], 3);
  EXPECT_EQ(item.head().env_steps, 10);
  EXPECT_EQ(item.terminated(1)[2], 1);
  writer->finish(item, block, history);
  // discounted returns: row 0: 2, 0.5 * 2 + 2 = 3; row 1 ends each time: 1, 1; row 2 as row 0
  const Moments returned(std::span<const double>(item.returned()));
  EXPECT_EQ(returned.count(), 6);
  EXPECT_DOUBLE_EQ(returned.mean(0), (2 + 3 + 1 + 1 + 2 + 3) / 6.0);
}

TEST_F(TrajectoryWriterTest, EpisodesThatEndWithTheItemAreRecordedInItsLastStep) {
  job.env.reset_mode = "episode";
  open();
  for (std::size_t i = 0; i < 6; ++i) block.valid()[i] = 1, block.reward()[i] = 2;
  block.success()[5] = 1;
  for (std::size_t i = 0; i < 3; ++i) block.executed()[i] = 2, block.step()[i] = 8;
  block.done()[0] = 1;
  writer->transition(item, 0, block, history);
  block.done()[0] = 0;
  for (std::int64_t call = 1; call < layout.calls; ++call) writer->transition(item, call, block, history);
  block.episode_return()[1] = 16;
  writer->finish(item, block, history);
  EXPECT_THAT(item.ended(0), ElementsAre(1, 0, 0));
  EXPECT_THAT(item.ended(layout.calls - 1), ElementsAre(0, 1, 1));
  EXPECT_EQ(item.episode_return(layout.calls - 1)[1], 16);
  EXPECT_EQ(item.episode_length(layout.calls - 1)[1], 8);
  EXPECT_EQ(item.episode_success(layout.calls - 1)[2], 3);
  EXPECT_EQ(item.episode_success(layout.calls - 1)[1], 0);
}

TEST_F(TrajectoryWriterTest, ALostRowHasNoRecordAndNoFinalObservation) {
  open();
  block.done()[1] = block.lost()[1] = 1;
  block.done()[2] = 1;
  block.at<float>(block.layout->final_observation[2])[2] = 4;
  writer->transition(item, 0, block, history);
  EXPECT_THAT(item.ended(0), ElementsAre(0, 0, 1));
  EXPECT_THAT(item.lost(0), ElementsAre(0, 1, 0));
  FinalRows finals;
  writer->finals(item, 0, block, StateScale(), history, finals);
  EXPECT_THAT(finals.rows, ElementsAre(2));
  EXPECT_THAT(finals.state, ElementsAre(0, 0, 0, 4));
}

TEST_F(TrajectoryWriterTest, FinalPicturesLieBehindTheFieldsAndNothingBehindThemIsWritten) {
  job.algorithm.name = Algorithm::sac;
  spec.observation.push_back({.name = "depth", .shape = {2, 1}});
  open();
  const auto fixed = static_cast<std::size_t>(layout.fixed_bytes);
  ASSERT_EQ(layout.final_image_bytes, 60 + 8);
  const auto play = [&](std::int64_t call, std::vector<std::size_t> ended, std::vector<std::size_t> lost) {
    for (std::size_t row = 0; row < 3; ++row) block.done()[row] = block.lost()[row] = 0;
    for (const std::size_t row : ended) {
      block.done()[row] = 1;
      const auto mark = static_cast<std::uint8_t>(10 * call + static_cast<std::int64_t>(row));
      block.at<std::uint8_t>(block.layout->final_observation[1])[row * 60 + 59] = mark;
      block.at<float>(block.layout->final_observation[3])[row * 2] = mark;
    }
    for (const std::size_t row : lost) block.done()[row] = block.lost()[row] = 1;
    writer->transition(item, call, block, history);
    FinalRows finals;
    writer->finals(item, call, block, StateScale(), history, finals);
    EXPECT_EQ(finals.rows.size(), ended.size());
  };
  play(0, {}, {});
  play(1, {0, 2}, {1});
  play(2, {}, {0});
  play(3, {1}, {});
  const ConstTrajectoryView read(layout, item_bytes_.data());
  const EndedRows rows(read);
  ASSERT_EQ(rows.count(), 3);
  EXPECT_EQ(rows.number(1, 1), -1) << "lost";
  for (const auto& [call, row, number] : {std::tuple{1, 0, 0}, std::tuple{1, 2, 1}, std::tuple{3, 1, 2}}) {
    EXPECT_EQ(rows.number(call, row), number);
    EXPECT_EQ(read.final_image(0, number)[59], 10 * call + row);
    float depth = 0;
    std::memcpy(&depth, read.final_image(1, number).data(), sizeof depth);
    EXPECT_EQ(depth, static_cast<float>(10 * call + row));
  }
  EXPECT_EQ(item_bytes(read), layout.fixed_bytes + 3 * 68);
  for (std::size_t i = fixed + 3 * 68; i < item_bytes_.size(); ++i) ASSERT_EQ(item_bytes_[i], std::byte{0xff}) << i;
  const std::span<const std::byte> whole = std::span<const std::byte>(item_bytes_).first(fixed + 3 * 68);
  EXPECT_TRUE(check_item_bytes(layout, whole));
  EXPECT_EQ(check_item_bytes(layout, whole.first(fixed + 2 * 68)).error().code(), Errc::data_loss);
  EXPECT_EQ(check_item_bytes(layout, whole.first(fixed - 1)).error().code(), Errc::data_loss);
  // what items were before: a picture for every row
  EXPECT_EQ(check_item_bytes(layout, item_bytes_).error().code(), Errc::data_loss);
}

TEST_F(TrajectoryWriterTest, WhatWasInTheSlotBeforeIsGone) {
  open();
  for (std::int64_t i = 64; i < layout.fixed_bytes; ++i)
    ASSERT_EQ(item_bytes_[static_cast<std::size_t>(i)], std::byte{0}) << i;
  EXPECT_EQ(item.head().round, 3);
  EXPECT_EQ(item.head().block, 1);
  EXPECT_EQ(item.head().min_version, -1);
}

}  // namespace
}  // namespace troupe::workers
