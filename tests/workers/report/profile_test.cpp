#include "workers/report/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace troupe::workers {
namespace {

using nlohmann::json;

constexpr std::int64_t kStart = 7'000'000'000'000;  // a host that has been up for a while

RecordedSpan span(const char* name, SpanKind kind, std::int64_t begin_us, std::int64_t end_us, std::int32_t thread) {
  return {.begin = kStart + 1000 * begin_us,
          .end = kStart + 1000 * end_us,
          .thread = thread,
          .kind = kind,
          .thread_name = thread == 11 ? "main" : "reader",
          .name = name};
}

const std::vector<ProcessSpans> kProcesses = {
    {.process = "decoder/0#1",
     .spans = {span("decode \"a\"", SpanKind::work, 20, 50, 12),
               span("wait for a credit", SpanKind::wait, 50, 250, 12)}},
    {.process = "learner/0#1",
     .spans = {span("gather inner", SpanKind::wait, 30, 40, 11), span("gather outer", SpanKind::wait, 10, 100, 11),
               span("step", SpanKind::work, 5, 400, 11), span("vote", SpanKind::wait, 120, 125, 11)},
     .dropped = 3}};

TEST(ProfileTest, TheTraceHasATrackForEveryThreadAndTimesFromTheFirstSpan) {
  const json trace = json::parse(chrome_trace(kProcesses));
  std::map<std::string, json> by_name;
  std::vector<std::string> tracks;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M")
      tracks.push_back(event.at("args").at("name").get<std::string>() + " " + event.at("pid").dump());
    else
      by_name[event.at("name")] = event;
  }
  EXPECT_THAT(tracks, ::testing::ElementsAre("decoder/0#1 1", "reader 1", "learner/0#1 2", "main 2"));
  ASSERT_EQ(by_name.size(), 6U);
  const json& decode = by_name.at("decode \"a\"");
  EXPECT_EQ(decode.at("ph"), "X");
  EXPECT_EQ(decode.at("cat"), "work");
  EXPECT_EQ(decode.at("pid"), 1);
  EXPECT_EQ(decode.at("tid"), 12);
  EXPECT_DOUBLE_EQ(decode.at("ts"), 15);
  EXPECT_DOUBLE_EQ(decode.at("dur"), 30);
  EXPECT_DOUBLE_EQ(by_name.at("step").at("ts"), 0);
  EXPECT_EQ(by_name.at("vote").at("cat"), "wait");
}

TEST(ProfileTest, TheLongestWaitsComeFirstAndThoseInsideOthersNotAtAll) {
  EXPECT_EQ(longest_waits(kProcesses, 10),
            "   0.000200 s  decoder/0#1      reader          at 0.000 s  wait for a credit\n"
            "   0.000090 s  learner/0#1      main            at 0.000 s  gather outer\n"
            "   0.000005 s  learner/0#1      main            at 0.000 s  vote\n"
            "  3 spans found no room and are missing; trace fewer steps\n");
  EXPECT_EQ(longest_waits({kProcesses[0]}, 1),
            "   0.000200 s  decoder/0#1      reader          at 0.000 s  wait for a credit\n");
  EXPECT_EQ(longest_waits({}, 10), "");
  EXPECT_EQ(json::parse(chrome_trace({})).at("traceEvents").size(), 0U);
}

}  // namespace
}  // namespace troupe::workers
