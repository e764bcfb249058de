// Requests of clients become observations and chunks become replies; fixtures are in tests/golden/serve.
#include <gtest/gtest.h>

#include "comm/serve/numpy_dtype.h"
#include "tests/comm/serve/serve_bytes.h"
#include "tests/support/scripted_policy.h"
#include "workers/inference/serve/dreamzero_protocol.h"
#include "workers/inference/serve/frame_buffer.h"
#include "workers/inference/serve/groot_protocol.h"
#include "workers/inference/serve/openpi_protocol.h"
#include "workers/inference/serve/request_reader.h"

namespace troupe::workers {
namespace {

/// The policy that the fixtures are about.
PolicyInfo fixture_info() {
  PolicyInfo info = droid_info(3);
  info.name = "fixture";
  return info;
}

/// 0, 0.25, ... in 3 rows of 8, plus `offset`.
ActionChunk counted(float offset = 0) {
  ActionChunk chunk{3, 8, {}};
  for (int i = 0; i < 24; ++i) chunk.values.push_back(static_cast<float>(i) / 4 + offset);
  return chunk;
}

int first_byte(const NdArray& array) { return std::to_integer<int>(array.data.front()); }

void expect_fixture_observation(const Observation& seen, int colour = 0, double joint = 0,
                                const std::string& prompt = "pick up the cup") {
  ASSERT_EQ(seen.images.size(), 3U);
  EXPECT_EQ(first_byte(seen.images.at("exterior_image_1_left")), colour);
  EXPECT_EQ(first_byte(seen.images.at("exterior_image_2_left")), 100 + colour);
  EXPECT_EQ(first_byte(seen.images.at("wrist_image_left")), 200 + colour);
  EXPECT_EQ(to_doubles(seen.state.at("joint_position")).value(),
            (std::vector<double>{joint, joint + 0.125, joint + 0.25, joint + 0.375, joint + 0.5, joint + 0.625,
                                 joint + 0.75}));
  EXPECT_EQ(to_doubles(seen.state.at("gripper_position")).value(), std::vector<double>{0.5 + joint});
  EXPECT_EQ(seen.prompt, prompt);
  EXPECT_TRUE(seen.episode.empty());
}

TEST(GoldenDreamzeroProtocolTest, RequestsAreRead) {
  const auto protocol = make_dreamzero_protocol(fixture_info());
  for (const char* name : {"dreamzero_infer.bin", "dreamzero_infer_str_markers.bin"}) {
    const auto request = protocol->parse(fixture(name), {});
    EXPECT_EQ(request->endpoint, WebSocketRequest::Endpoint::infer);
    EXPECT_EQ(request->session_id, "7f3a");
    expect_fixture_observation(request->observation);
    EXPECT_EQ(request->observation.images.at("exterior_image_2_left").shape, (std::vector<std::int64_t>{1, 2, 3, 3}));
    EXPECT_EQ(request->observation.state.at("joint_position").dtype, "<f4");
    EXPECT_EQ(request->observation.state.at("gripper_position").dtype, "<f8");
  }
  EXPECT_EQ(protocol->parse(fixture("dreamzero_reset.bin"), {})->endpoint, WebSocketRequest::Endpoint::reset);
}

TEST(GoldenDreamzeroProtocolTest, RepliesAreWrittenByteForByte) {
  EXPECT_EQ(make_dreamzero_protocol(fixture_info())->metadata(), fixture("dreamzero_config.bin"));
  EXPECT_EQ(make_dreamzero_protocol(fixture_info())->reply(counted(), {}), fixture("dreamzero_reply_array.bin"));
  EXPECT_EQ(make_dreamzero_protocol(fixture_info(), ActionForm::actions)->reply(counted(), {}),
            fixture("dreamzero_reply_actions.bin"));
  EXPECT_EQ(make_dreamzero_protocol(fixture_info(), ActionForm::keys)->reply(counted(), {}),
            fixture("dreamzero_reply_keys.bin"));
}

TEST(GoldenOpenpiProtocolTest, RequestsAndRepliesAgree) {
  const auto protocol = make_openpi_protocol(fixture_info());
  const auto request = protocol->parse(fixture("openpi_request.bin"), {});
  EXPECT_FALSE(request->session_id);
  expect_fixture_observation(request->observation);
  EXPECT_EQ(protocol->metadata(), fixture("openpi_metadata.bin"));
  EXPECT_EQ(protocol->reply(counted(), {12.5, {}}), fixture("openpi_reply_first.bin"));
  EXPECT_EQ(protocol->reply(counted(), {12.0, 31.25}), fixture("openpi_reply_later.bin"));
}

TEST(GoldenGrootProtocolTest, RequestsAreRead) {
  const GrootProtocol protocol(fixture_info(), {});
  const auto batch = protocol.parse(fixture("groot_get_action.bin"), {}, "");
  ASSERT_EQ(batch->rows.size(), 2U);
  EXPECT_TRUE(batch->is_batched && !batch->is_flat);
  expect_fixture_observation(batch->rows[0]);
  expect_fixture_observation(batch->rows[1], 7, 1, "open the door");
  const auto flat = protocol.parse(fixture("groot_get_action_flat.bin"), {}, "0123456789abcdef");
  ASSERT_EQ(flat->rows.size(), 1U);
  EXPECT_TRUE(flat->is_flat && !flat->is_batched);
  expect_fixture_observation(flat->rows[0]);
  using Endpoint = GrootRequest::Endpoint;
  EXPECT_EQ(protocol.parse(fixture("groot_ping.bin"), {}, "")->endpoint, Endpoint::ping);
  EXPECT_EQ(protocol.parse(fixture("groot_reset.bin"), {}, "")->endpoint, Endpoint::reset);
  EXPECT_EQ(protocol.parse(fixture("groot_kill.bin"), {}, "")->endpoint, Endpoint::kill);
  EXPECT_EQ(protocol.parse(fixture("groot_get_modality_config.bin"), {}, "")->endpoint, Endpoint::get_modality_config);
  EXPECT_EQ(protocol.parse(fixture("groot_ping.bin"), {}, "0123456789abcdef").error().message(),
            "Unauthorized: Invalid API token");
}

TEST(GoldenGrootProtocolTest, RepliesAreWrittenByteForByte) {
  const GrootProtocol protocol(fixture_info(), {});
  GrootRequest batched, flat;
  batched.is_batched = true;
  flat.is_flat = true;
  EXPECT_EQ(protocol.action_reply(batched, {counted(), counted(1)}), fixture("groot_reply.bin"));
  EXPECT_EQ(protocol.action_reply(flat, {counted()}), fixture("groot_reply_flat.bin"));
  EXPECT_EQ(protocol.modality_reply(), fixture("groot_modality_reply.bin"));
  EXPECT_EQ(GrootProtocol::status_reply("Server is running"), fixture("groot_ping_reply.bin"));
  EXPECT_EQ(GrootProtocol::empty_reply(), fixture("groot_reset_reply.bin"));
  const auto wrong = protocol.parse(encode_wire_tree(WireMap{{"endpoint", "get_action"}}, ArrayForm::groot), {}, "");
  EXPECT_EQ(GrootProtocol::error_reply(wrong.error().to_string()), fixture("groot_error_reply.bin"));
}

/// A complete request, of which `change` leaves something wrong.
std::string complaint(const std::function<void(WireMap&)>& change) {
  WireMap request{{"observation/exterior_image_0_left", flat_image(1)},
                  {"observation/exterior_image_1_left", flat_image(2)},
                  {"observation/wrist_image_left", flat_image(3)},
                  {"observation/joint_position", vector_of({0, 1, 2, 3, 4, 5, 6})},
                  {"observation/gripper_position", vector_of({0.5F})},
                  {"prompt", "go"}};
  change(request);
  const auto parsed = make_dreamzero_protocol(fixture_info())->parse(encode_wire_tree(request, ArrayForm::openpi), {});
  return parsed ? "accepted" : parsed.error().message();
}
WireValue& at(WireMap& map, std::string_view name) {
  for (auto& pair : map) {
    if (pair.name == name) return pair.value;
  }
  throw std::out_of_range(std::string(name));
}
void drop(WireMap& map, std::string_view name) {
  std::erase_if(map, [&](const WirePair& pair) { return pair.name == name; });
}

TEST(RequestReaderTest, WhatIsMissingOrWrongIsNamed) {
  EXPECT_EQ(complaint([](WireMap&) {}), "accepted");
  EXPECT_EQ(complaint([](WireMap& r) { drop(r, "observation/wrist_image_left"); }),
            "the image of wrist_image_left is missing: want observation/wrist_image_left or video.wrist_image_left "
            "or wrist_image_left; the request has "
            "observation/exterior_image_0_left, observation/exterior_image_1_left, observation/joint_position, "
            "observation/gripper_position, prompt");
  EXPECT_EQ(complaint([](WireMap& r) {
              at(r, "observation/exterior_image_0_left") = flat_image(1, {4, 6});
            }),
            "observation/exterior_image_0_left: images |u1 [4, 6]; want [H, W, 3] or [T, H, W, 3]");
  EXPECT_EQ(complaint([](WireMap& r) { at(r, "observation/exterior_image_0_left") = vector_of({1}); }),
            "observation/exterior_image_0_left: images <f4 [1]; want dtype |u1");
  EXPECT_EQ(complaint([](WireMap& r) {
              at(r, "observation/joint_position") = vector_of({1, 2});
            }),
            "observation/joint_position is an array <f4 [2]; want 7 numbers");
  EXPECT_EQ(complaint([](WireMap& r) {
              at(r, "observation/gripper_position") = vector_of({std::numeric_limits<float>::infinity()});
            }),
            "observation/gripper_position holds inf at 0; want finite numbers");
  EXPECT_EQ(complaint([](WireMap& r) { at(r, "observation/gripper_position") = "open"; }),
            "observation/gripper_position is a string; want 1 numbers");
  EXPECT_EQ(complaint([](WireMap& r) { at(r, "prompt") = 3; }), "prompt is an integer; want one text");
  EXPECT_EQ(complaint([](WireMap& r) { r.push_back({"endpoint", "fly"}); }), "endpoint 'fly'; want infer or reset");
  EXPECT_EQ(make_openpi_protocol(fixture_info())
                ->parse(encode_wire_tree(WireValue(3), ArrayForm::openpi), {})
                .error()
                .message(),
            "a request is an integer; want a map");
}

TEST(RequestReaderTest, VectorsComeInManyForms) {
  const auto numbers = [](const WireValue& value, std::int64_t width) {
    return to_doubles(read_vector(value, width, "k").value()).value();
  };
  EXPECT_EQ(numbers(WireArray{1, 2.5}, 2), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(numbers(WireValue(4), 1), std::vector<double>{4});
  EXPECT_EQ(
      numbers(NdArray{"<i2", {2, 2}, {std::byte{1}, {}, std::byte{2}, {}, std::byte{3}, {}, std::byte{4}, {}}}, 2),
      (std::vector<double>{3, 4}));
  EXPECT_EQ(numbers(NdArray{"<f2", {}, {std::byte{0x00}, std::byte{0x3e}}}, 1), std::vector<double>{1.5});
  EXPECT_FALSE(read_vector(NdArray{"<U1", {1}, std::vector<std::byte>(4)}, 1, "k"));
  EXPECT_FALSE(read_vector(NdArray{"<f4", {0, 1}, {}}, 1, "k"));
}

TEST(RequestReaderTest, NamesOfOtherModalitiesAreUnderstood) {
  WireMap request{{"video.exterior_image_1_left", flat_image(1)},
                  {"exterior_image_2_left", flat_image(2)},
                  {"observation/wrist_image_left", flat_image(3)},
                  {"state.joint_position", vector_of({0, 1, 2, 3, 4, 5, 6})},
                  {"gripper_position", 0.5},
                  {"annotation.human.task", WireArray{"go"}}};
  const auto seen = read_observation(request, fixture_info(), ViewNames::literal);
  EXPECT_EQ(first_byte(seen->images.at("exterior_image_2_left")), 2);
  EXPECT_EQ(seen->prompt, "go");
  // under DreamZero's names the short one would be another camera
  EXPECT_FALSE(read_observation(request, fixture_info(), ViewNames::dreamzero));
}

TEST(RequestReaderTest, APolicyThatTakesNoInstructionDoesNotWantOne) {
  PolicyInfo info;
  info.state = {{"state", 2}};
  const WireMap request{{"observation/state", WireArray{0.5, 1.0}}};
  EXPECT_FALSE(read_observation(request, info, ViewNames::literal));
  info.takes_prompt = false;
  EXPECT_EQ(read_observation(request, info, ViewNames::literal)->prompt, "");
}

TEST(ActionReplyTest, AChunkThatIsNotWhatThePolicyPromisedIsAnError) {
  EXPECT_TRUE(check_chunk(counted(), fixture_info()));
  ActionChunk narrow{3, 7, std::vector<float>(21)};
  EXPECT_EQ(check_chunk(narrow, fixture_info()).error().message(),
            "the policy gave 3 x 7 actions (21 values); its keys want 3 x 8");
  ActionChunk bad = counted();
  bad.values[15] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(check_chunk(bad, fixture_info()).error().message(), "the policy gave nan for gripper_position in row 1");
  EXPECT_FALSE(parse_action_key("zeros", ActionForm::array));
}

TEST(FrameBufferTest, TheOldestIsRepeatedInFront) {
  FrameBuffer buffer;
  const auto colours = [&](std::size_t count) {
    const NdArray frames = buffer.newest(count);
    std::vector<int> all;
    for (std::size_t i = 0; i < count; ++i)
      all.push_back(std::to_integer<int>(frames.data[i * frames.data.size() / count]));
    return all;
  };
  buffer.push(flat_image(1));
  EXPECT_EQ(colours(1), std::vector<int>{1});
  EXPECT_EQ(colours(4), (std::vector<int>{1, 1, 1, 1}));
  buffer.push(flat_image(2));
  EXPECT_EQ(colours(4), (std::vector<int>{1, 1, 1, 2}));
  NdArray six{"|u1", {6, 4, 6, 3}, {}};
  for (int i = 3; i < 9; ++i) six.data.insert(six.data.end(), 72, static_cast<std::byte>(i));
  buffer.push(six);
  EXPECT_EQ(colours(4), (std::vector<int>{5, 6, 7, 8}));
  EXPECT_EQ(buffer.newest(4).shape, (std::vector<std::int64_t>{4, 4, 6, 3}));
  EXPECT_FALSE(buffer.check(flat_image(1, {5, 6, 3})));
}

TEST(FrameBufferTest, APolicyGetsTheNumberOfFramesItTakes) {
  const std::vector<std::int64_t> dreamzero{1, 4, 8, 9}, single{1}, pairs{2, 8}, none;
  EXPECT_EQ(frames_for_call(dreamzero, true), 1U);
  EXPECT_EQ(frames_for_call(dreamzero, false), 4U);
  EXPECT_EQ(frames_for_call(single, false), 1U);
  EXPECT_EQ(frames_for_call(pairs, true), 2U);
  EXPECT_EQ(frames_for_call(pairs, false), 2U);
  EXPECT_EQ(frames_for_call(none, false), 4U);
}

}  // namespace
}  // namespace troupe::workers
