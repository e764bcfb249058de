// Arrays of a lease whose worker is the test.
#include "workers/bridge/lease_arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/support/visible.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using comm::NdArray;
using comm::WireArray;
using comm::WireMap;
using comm::WireValue;
using ::testing::HasSubstr;

/// A worker that shares memory, or says why not.
class FakeLease final : public comm::BridgeLease {
 public:
  explicit FakeLease(bool shares) : shares_(shares) {}
  Result<WireMap> call(std::string_view, WireMap, std::chrono::milliseconds, std::chrono::milliseconds) override {
    return Error{Errc::internal, "nobody asks"};
  }
  const std::string& worker() const override { return name_; }
  Result<comm::Arena> share(std::int64_t bytes, WireArray arrays, std::chrono::milliseconds) override {
    if (!shares_) return Error{Errc::failed_precondition, "it lives elsewhere"};
    offered = std::move(arrays);
    size = bytes;
    return comm::Arena::create("test", static_cast<std::size_t>(bytes));
  }

  WireArray offered;
  std::int64_t size = 0;

 private:
  const std::string name_ = "w0";
  const bool shares_;
};

EnvSpec spec() {
  EnvSpec spec;
  spec.id = "toy";
  spec.observation = {EnvField{.name = "state", .shape = {3}},
                      EnvField{.name = "rgb.front", .shape = {5, 7, 3}, .dtype = EnvDType::u8}};
  spec.action.size = 2;
  spec.info = {"distance"};
  return spec;
}

constexpr std::int64_t kLanes = 5;

TEST(LeaseArraysTest, InMemoryEachHasAPlaceOfItsOwn) {
  FakeLease lease(true);
  const LeaseArrays arrays(lease, spec(), kLanes, true, 1s);
  ASSERT_EQ(lease.offered.size(), LeaseArrays::observation + 2);
  std::int64_t end = 8;  // the hub's number
  for (const WireValue& one : lease.offered) {
    const WireArray& array = *one.as<WireArray>();
    std::int64_t bytes = array[1] == WireValue("|u1")                                   ? 1
                         : array[1] == WireValue("<i4") || array[1] == WireValue("<f4") ? 4
                                                                                        : 8;
    const WireArray& shape = *array[2].as<WireArray>();
    EXPECT_EQ(shape.front(), WireValue(kLanes));
    for (const WireValue& size : shape) bytes *= *size.as<std::int64_t>();
    const std::int64_t offset = *array[3].as<std::int64_t>();
    EXPECT_GE(offset, end);
    EXPECT_EQ(offset % 64, 0);
    end = offset + bytes;
  }
  EXPECT_LE(end, lease.size);
  EXPECT_EQ(lease.offered.back().as<WireArray>()->front(), WireValue("obs.rgb.front"));
}

TEST(LeaseArraysTest, QuestionsCarryACountAndAnswersTheSameOne) {
  FakeLease lease(true);
  LeaseArrays arrays(lease, spec(), kLanes, true, 1s);
  const std::vector<std::int64_t> lanes{4, 1};
  const std::vector<float> actions{1, 2, 3, 4};
  WireMap question = arrays.question(lanes);
  arrays.add(question, LeaseArrays::actions, std::as_bytes(std::span(actions)));
  EXPECT_EQ(question, (WireMap{{"count", 2}}));
  const auto written = arrays.in({{"count", 2}}, LeaseArrays::actions, 2);
  ASSERT_TRUE(written) << written.error().message();
  ASSERT_EQ(written->size(), actions.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(written->data(), actions.data(), written->size()), 0);
  for (const WireMap& answer : {WireMap{}, WireMap{{"count", 3}}, WireMap{{"count", "2"}}})
    EXPECT_THAT(arrays.in(answer, LeaseArrays::reward, 2).error().message(), HasSubstr("as 'count'; wanted 2"));
}

TEST(LeaseArraysTest, MessagesCarryThemWhereNoMemoryIsSharedOrWanted) {
  for (const bool can_share : {false, true}) {
    FakeLease lease(can_share);
    LeaseArrays arrays(lease, spec(), kLanes, !can_share, 1s);
    const std::vector<std::int64_t> lanes{4, 1};
    const WireMap question = arrays.question(lanes);
    ASSERT_EQ(question.size(), 1U);
    EXPECT_EQ(question[0].name, "rows");
    EXPECT_EQ(question[0].value.as<NdArray>()->shape, (std::vector<std::int64_t>{2}));
    const auto why = [&](const WireMap& answer, std::size_t part) {
      return arrays.in(answer, part, 2).error().message();
    };
    const auto array = [](const char* dtype, std::vector<std::int64_t> shape, std::size_t bytes) {
      return NdArray{.dtype = dtype, .shape = std::move(shape), .data = std::vector<std::byte>(bytes)};
    };
    EXPECT_THAT(why({{"count", 2}}, LeaseArrays::reward), HasSubstr("nothing as 'reward'; wanted an array <f8 [2]"));
    EXPECT_THAT(why({{"reward", array("<f4", {2}, 8)}}, LeaseArrays::reward), HasSubstr("wanted an array <f8 [2]"));
    EXPECT_THAT(why({{"reward", array("<f8", {3}, 24)}}, LeaseArrays::reward), HasSubstr("wanted an array <f8 [2]"));
    EXPECT_THAT(why({{"state", 1}}, LeaseArrays::observation), HasSubstr("has no obs, a map"));
    EXPECT_TRUE(arrays.in({{"obs", WireMap{{"state", array("<f4", {2, 3}, 24)}}}}, LeaseArrays::observation, 2));
  }
}

}  // namespace
}  // namespace troupe::workers
