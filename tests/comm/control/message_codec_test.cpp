#include "comm/control/message_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "wire_samples.h"

namespace troupe::comm {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

fs::path wire_folder() { return fs::path(TROUPE_SOURCE_DIR) / "tests" / "golden" / "wire"; }

std::vector<std::byte> read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return to_bytes(std::string(std::istreambuf_iterator<char>(in), {}));
}

Errc code_of(std::uint16_t type, std::string_view payload) {
  const auto message = decode(type, to_bytes(payload));
  return message ? Errc{} : message.error().code();
}

TEST(MessageCodecTest, EveryMessageComesBackAsItWasSent) {
  for (const Message& message : sample_messages()) {
    const auto bytes = encode(message);
    const auto back = decode(type_of(message), *bytes);
    ASSERT_TRUE(back) << name_of(type_of(message)) << ": " << back.error().to_string();
    EXPECT_EQ(type_of(*back), type_of(message));
    // the encoding is canonical, so equal bytes mean equal members
    EXPECT_EQ(*encode(*back), *bytes) << name_of(type_of(message));
  }
}

TEST(MessageCodecTest, MembersKeepTheirValues) {
  const Spawn spawn{.actor = "decoder/0",
                    .role = "decoder",
                    .incarnation = 7,
                    .isolation = "process",
                    .cpus = -2,
                    .env = {{"A", "b"}, {"C", ""}}};
  const auto got = std::get<Spawn>(*decode(Spawn::kType, *encode(spawn)));
  EXPECT_EQ(got.actor, "decoder/0");
  EXPECT_EQ(got.incarnation, 7);
  EXPECT_EQ(got.cpus, -2);
  EXPECT_EQ(got.env, spawn.env);
  const CheckpointBegin begin{.step = 5, .group_updates = {{"critic", 10}}, .trainer_state = "entropy"};
  const auto begun = std::get<CheckpointBegin>(*decode(CheckpointBegin::kType, *encode(begin)));
  EXPECT_EQ(begun.step, 5);
  EXPECT_EQ(begun.group_updates, begin.group_updates);
  EXPECT_EQ(begun.trainer_state, "entropy");
}

TEST(MessageCodecTest, AnEmptyMapLeavesTheDefaults) {
  const auto back = decode(GroupPlan::kType, to_bytes("\x80"));
  EXPECT_EQ(std::get<GroupPlan>(*back).timeout_ms, 60'000);
  EXPECT_EQ(std::get<GroupPlan>(*back).world, 1);
}

TEST(MessageCodecTest, UnknownKeysAreSkippedWhateverTheyHold) {
  // {1: 5, 99: {"a": [1, nil, {2: 1.5}], -3: true}, 2: 6}
  const auto back =
      decode(HeartbeatAck::kType, to_bytes("\x83\x01\x05\x63\x82\xA1"
                                           "a\x93\x01\xC0\x81\x02\xCB\x3F\xF8\0\0\0\0\0\0\xFD\xC3\x02\x06"sv));
  EXPECT_EQ(std::get<HeartbeatAck>(*back).sequence, 5U);
  EXPECT_EQ(std::get<HeartbeatAck>(*back).term, 6U);
}

TEST(MessageCodecTest, AnUnknownTypeIsReportedAsUnsupported) {
  const auto back = decode(0x7777, to_bytes("\x80"));
  EXPECT_EQ(back.error().code(), Errc::not_found);
  EXPECT_NE(back.error().message().find("unsupported"), std::string::npos);
  EXPECT_EQ(name_of(0x7777), "unknown");
}

TEST(MessageCodecTest, NamesAndTypesAreDistinct) {
  std::map<std::string_view, std::uint16_t> names;
  for (const Message& message : sample_messages()) names[name_of(type_of(message))] = type_of(message);
  EXPECT_EQ(names.size(), std::variant_size_v<Message>);
  EXPECT_EQ(names.at("eval_report"), EvalReport::kType);
  EXPECT_EQ(names.at("actor_exited"), ActorExited::kType);
}

TEST(MessageCodecTest, ALossThatIsNotANumberTravels) {
  StepReport report;
  report.metrics = {{"train/loss", std::numeric_limits<double>::quiet_NaN()},
                    {"grad_norm", std::numeric_limits<double>::infinity()}};
  const auto back = decode(StepReport::kType, *encode(report));
  EXPECT_TRUE(std::isnan(std::get<StepReport>(*back).metrics.at("train/loss")));
  EXPECT_TRUE(std::isinf(std::get<StepReport>(*back).metrics.at("grad_norm")));
}

TEST(MessageCodecTest, WhatAPeerWouldRefuseIsNotSent) {
  EXPECT_FALSE(encode(Event{.actor = {}, .kind = {}, .text = std::string(65'537, 'x')}));
  EXPECT_FALSE(encode(Event{.actor = {}, .kind = {}, .text = "\xFF"}));
  EXPECT_FALSE(encode(Peers{.fence = 1, .channels = std::vector<std::string>(4097)}));
  CheckpointDone done;
  done.seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(encode(done));
  GroupUp up;
  for (int i = 0; i < 257; ++i) up.bytes[std::to_string(i)] = i;
  EXPECT_FALSE(encode(up));
}

TEST(MessageCodecTest, AWholeNumberMayStandInAFloatField) {
  EXPECT_EQ(code_of(CheckpointDone::kType, "\x81\x06\x01"sv), Errc{});
  EXPECT_EQ(code_of(CheckpointDone::kType, "\x81\x06\xFF"sv), Errc{});
}

TEST(ProducerTimesTest, OnlyNumbersAreRead) {
  const auto back =
      decode(ProducerTimes::kType, *encode(ProducerTimes{"decoder/1", 1.25, 0.5, 32, 0.125, 0.25, 2, 4, 8, 64, 0.75}));
  EXPECT_EQ(std::get<ProducerTimes>(*back).item_steps, 32);
  EXPECT_EQ(std::get<ProducerTimes>(*back).item_seconds, 0.125);
  EXPECT_EQ(std::get<ProducerTimes>(*back).env_steps, 64);
  EXPECT_EQ(std::get<ProducerTimes>(*back).env_step_seconds, 0.75);
  EXPECT_EQ(std::get<ProducerTimes>(*back).idle_seconds, 1.25);
  EXPECT_EQ(std::get<ProducerTimes>(*back).busy_seconds, 0.5);
  EXPECT_EQ(std::get<ProducerTimes>(*back).simulate_seconds, 0.25);
  EXPECT_EQ(std::get<ProducerTimes>(*back).policy_seconds, 2);
  EXPECT_EQ(std::get<ProducerTimes>(*back).record_seconds, 4);
  EXPECT_EQ(std::get<ProducerTimes>(*back).await_seconds, 8);
  for (const std::string_view payload : {"\x81\x02\xA3"
                                         "1.5"sv,
                                         "\x81\x02\xCB\x7F\xF8\0\0\0\0\0\0"sv, "\x81\x03\xC0"sv})
    EXPECT_EQ(code_of(ProducerTimes::kType, payload), Errc::invalid_argument);
}

TEST(MessageCodecTest, KeysThatAreReservedAreSkipped) {
  // {3: "why", 4: "env/0"} of event; {3: 9, 7: "{}"} of snapshot_ready
  EXPECT_EQ(code_of(Event::kType,
                    "\x82\x03\xA3why\x04\xA5"
                    "env/0"sv),
            Errc{});
  const auto ready = decode(SnapshotReady::kType, to_bytes("\x82\x03\x09\x07\xA2{}"sv));
  EXPECT_EQ(std::get<SnapshotReady>(*ready).step, 9);
  EXPECT_EQ(std::get<SnapshotReady>(*ready).trainer_state, "");
}

TEST(MessageCodecTest, WholeDocumentsFitIntoJoinedAndReply) {
  Joined joined;
  joined.config = std::string(1 << 20, 'y');
  EXPECT_TRUE(encode(joined));
  EXPECT_TRUE(decode(Reply::kType, *encode(Reply{.code = 0, .text = std::string(1 << 20, 'j')})));
  EXPECT_FALSE(encode(Reply{.code = 0, .text = std::string((1 << 20) + 1, 'j')}));
}

struct Hostile {
  const char* name;
  std::uint16_t type;
  std::string_view payload;
};
std::ostream& operator<<(std::ostream& out, const Hostile& h) { return out << h.name; }

class HostileMessageTest : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileMessageTest, IsRefused) {
  EXPECT_EQ(code_of(GetParam().type, GetParam().payload), Errc::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileMessageTest,
    ::testing::Values(
        Hostile{"Empty", 0x05, ""}, Hostile{"NotAMap", 0x05, "\x92\x01\x02"sv}, Hostile{"AScalar", 0x05, "\x01"sv},
        Hostile{"Nil", 0x05, "\xC0"sv}, Hostile{"ReservedByte", 0x05, "\xC1"sv},
        Hostile{"TrailingByte", 0x05, "\x80\x80"sv}, Hostile{"DuplicateKey", 0x05, "\x82\x01\x05\x01\x06"sv},
        Hostile{"DuplicateUnknownKey", 0x05, "\x82\x60\x05\x60\x06"sv},
        Hostile{"TextKey", 0x05,
                "\x81\xA1"
                "a\x05"sv},
        Hostile{"NegativeKey", 0x05, "\x81\xFF\x05"sv}, Hostile{"MapAsKey", 0x05, "\x81\x80\x05"sv},
        Hostile{"NegativeForUnsigned", 0x05, "\x81\x01\xFF"sv},
        Hostile{"FloatForInteger", 0x05, "\x81\x01\xCB\x3F\xF0\0\0\0\0\0\0"sv},
        Hostile{"TextForInteger", 0x05,
                "\x81\x01\xA1"
                "1"sv},
        Hostile{"NilForInteger", 0x05, "\x81\x01\xC0"sv}, Hostile{"IntegerForBool", 0x53, "\x81\x01\x01"sv},
        Hostile{"NanWhereBounded", 0x42, "\x81\x06\xCB\x7F\xF8\0\0\0\0\0\0"sv},
        Hostile{"UnsignedOverInt64", 0x04, "\x81\x03\xCF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv},
        Hostile{"BytesForText", 0x45,
                "\x81\x01\xC4\x01"
                "a"sv},
        Hostile{"BadUtf8", 0x45, "\x81\x01\xA2\xC3\x28"sv}, Hostile{"BadUtf8InUnknownKey", 0x45, "\x81\x70\xA1\xFF"sv},
        Hostile{"Surrogate", 0x45, "\x81\x01\xA3\xED\xA0\x80"sv}, Hostile{"Extension", 0x05, "\x81\x70\xD4\x01\x02"sv},
        Hostile{"ExtensionAsValue", 0x05, "\x81\x01\xC7\x01\x02\x03"sv},
        Hostile{"ArrayBomb", 0x14, "\x81\x02\xDD\xFF\xFF\xFF\xFF"sv},
        Hostile{"MapBomb", 0x22, "\x81\x03\xDF\xFF\xFF\xFF\xFF"sv},
        Hostile{"OuterMapBomb", 0x05, "\xDF\xFF\xFF\xFF\xFF"sv},
        Hostile{"CountOverBytes", 0x14, "\x81\x02\xDC\x0F\xFF"sv},
        Hostile{"TextBomb", 0x45, "\x81\x01\xDB\xFF\xFF\xFF\xFF"sv}, Hostile{"ArrayForText", 0x45, "\x81\x01\x90"sv},
        Hostile{"MapForList", 0x14, "\x81\x02\x80"sv}, Hostile{"NestedListInList", 0x14, "\x81\x02\x91\x90"sv},
        Hostile{"IntegerInTextList", 0x14, "\x81\x02\x91\x01"sv},
        Hostile{"IntegerNameInMap", 0x22, "\x81\x03\x81\x01\x01"sv},
        Hostile{"NameTwiceInMap", 0x22,
                "\x81\x03\x82\xA1"
                "a\x01\xA1"
                "a\x02"sv},
        Hostile{"ListInMap", 0x22,
                "\x81\x03\x81\xA1"
                "a\x90"sv}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(MessageCodecTest, DeepNestingIsRefused) {
  std::string deep = "\x81\x70";
  for (int i = 0; i < 16; ++i) deep += '\x91';
  EXPECT_EQ(code_of(0x05, deep + "\x01"), Errc::invalid_argument);
  deep.pop_back();
  EXPECT_EQ(code_of(0x05, deep + "\x01"), Errc{});  // 16 containers are allowed
  EXPECT_EQ(code_of(0x05, "\x81\x70" + std::string(100'000, '\x91')), Errc::invalid_argument);
}

TEST(MessageCodecTest, AMessageCutAnywhereIsRefused) {
  for (const Message& message : sample_messages()) {
    const auto bytes = *encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto back = decode(type_of(message), std::span(bytes).first(size));
      ASSERT_FALSE(back) << name_of(type_of(message)) << " cut to " << size;
    }
  }
}

/// xorshift64: the loop must repeat itself exactly.
struct Dice {
  std::uint64_t state;
  std::uint64_t operator()(std::uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
  }
};

TEST(MessageCodecTest, MutatedMessagesAreRefusedOrReadButNeverCrash) {
  Dice dice{20'261'121};
  std::size_t refused = 0, read = 0;
  const auto samples = sample_messages();
  for (int round = 0; round < 8000; ++round) {
    const Message& message = samples[dice(samples.size())];
    auto bytes = *encode(message);
    for (std::uint64_t edits = 1 + dice(4); edits > 0; --edits) {
      const std::size_t at = bytes.empty() ? 0 : dice(bytes.size());
      switch (dice(4)) {
        case 0:
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::byte(dice(256)));
          break;
        case 1:
          if (!bytes.empty()) bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        case 2:
          if (!bytes.empty()) bytes[at] = std::byte(dice(256));
          break;
        default:
          if (!bytes.empty()) bytes[at] ^= std::byte(1U << dice(8));
          break;
      }
    }
    const auto back = decode(type_of(message), bytes);
    back ? ++read : ++refused;
    // what was taken for a message is one: it can be sent again
    if (back) {
      EXPECT_TRUE(encode(*back));
    }
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(read, 100U);
}

TEST(GoldenMessageCodecTest, BytesOfEveryTypeStayAsReleased) {
  const bool rewrite = std::getenv("TROUPE_REWRITE_GOLDEN") != nullptr;
  for (const Message& message : sample_messages()) {
    const fs::path path = wire_folder() / (std::string(name_of(type_of(message))) + ".bin");
    const auto bytes = *encode(message);
    if (rewrite) {
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    EXPECT_EQ(read_bytes(path), bytes) << path;
  }
}

/// Counts the keys of a message.
struct KeyCounter {
  int count = 0;
  template <class T>
  void operator()(std::uint64_t, T&) {
    ++count;
  }
};

TEST(MessageCodecTest, TheManualHasARowWithEveryKeyOfEveryType) {
  const auto manual = read_bytes(fs::path(TROUPE_SOURCE_DIR) / "docs" / "wire.md");
  const std::string text(reinterpret_cast<const char*>(manual.data()), manual.size());
  for (Message& message : std::vector<Message>(sample_messages())) {
    const std::string row = fmt::format("| {:#04x} | {} | ", type_of(message), name_of(type_of(message)));
    const auto at = text.find(row);
    ASSERT_NE(at, std::string::npos) << "docs/wire.md lacks: " << row;
    KeyCounter counter;
    std::visit([&](auto& m) { m.fields(counter); }, message);
    const std::string keys = text.substr(at + row.size(), text.find('\n', at) - at - row.size());
    EXPECT_EQ(counter.count, keys == "none |" ? 0 : 1 + std::count(keys.begin(), keys.end(), ',')) << row << keys;
  }
}

TEST(GoldenMessageCodecTest, EveryFileIsDecoded) {
  std::map<std::string_view, std::uint16_t> types;
  for (const Message& message : sample_messages()) types[name_of(type_of(message))] = type_of(message);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(wire_folder())) {
    if (entry.path().extension() != ".bin") continue;
    ++files;
    const std::string name = entry.path().stem().string();
    ASSERT_TRUE(types.contains(name)) << "no message is called " << name;
    const auto back = decode(types.at(name), read_bytes(entry.path()));
    EXPECT_TRUE(back) << name << ": " << back.error().to_string();
  }
  EXPECT_EQ(files, types.size());
}

}  // namespace
}  // namespace troupe::comm
