#include "base/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/support/scratch_folder.h"

namespace troupe::base {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Tracing is switched on once a process, so that every case records in a child.
class TraceTest : public ::testing::Test {
 protected:
  void record_in_child(const std::string& process, const std::function<void()>& work) const {
    const pid_t child = ::fork();
    if (child == 0) {
      if (!start_tracing(folder_, process)) ::_exit(1);
      work();
      ::kill(::getpid(), SIGKILL);  // what was recorded outlives any end
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  std::vector<ProcessSpans> recorded() const {
    auto spans = read_spans(folder_);
    EXPECT_TRUE(spans) << spans.error().message();
    return spans ? *spans : std::vector<ProcessSpans>{};
  }
  ScratchFolder scratch_;
  std::string folder_ = scratch_ / "profile";
};

TEST_F(TraceTest, SpansOfTheTracedStepsAreKeptWithNamesThreadsAndKinds) {
  ASSERT_TRUE(prepare_tracing(folder_, {.first = 2, .last = 3}));
  record_in_child("learner/0#1", [] {
    for (std::int64_t step = 1; step <= 4; ++step) {
      trace_step(step);
      const std::string unit = "block" + std::to_string(step);
      const Span outer("forward", unit);
      std::thread([] {
        ::pthread_setname_np(::pthread_self(), "reader");
        const Span inner("read", SpanKind::wait);
      }).join();
    }
  });
  const auto processes = recorded();
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0].process, "learner/0#1");
  EXPECT_EQ(processes[0].dropped, 0);
  const auto& spans = processes[0].spans;
  const auto is = [](const char* name, SpanKind kind) {
    return AllOf(Field(&RecordedSpan::name, name), Field(&RecordedSpan::kind, kind));
  };
  ASSERT_THAT(spans,
              ElementsAre(is("read", SpanKind::wait), is("forward block2", SpanKind::work), is("read", SpanKind::wait),
                          is("forward block3", SpanKind::work), is("read", SpanKind::wait)))
      << "a thread that trains no steps records until the rank's next step has ended";
  EXPECT_EQ(spans[0].thread_name, "reader");
  EXPECT_NE(spans[0].thread, spans[1].thread);
  EXPECT_LE(spans[1].begin, spans[0].begin);
  EXPECT_LE(spans[0].begin, spans[0].end);
  EXPECT_LE(spans[0].end, spans[1].end);
  EXPECT_LE(spans[1].end, spans[2].begin);
}

TEST_F(TraceTest, OneSwitchServesAllProcesses) {
  ASSERT_TRUE(prepare_tracing(folder_, {.first = 5, .last = 5}));
  record_in_child("learner/0#1", [] { trace_step(5); });
  record_in_child("decoder/0#1", [] { const Span span("decode"); });
  record_in_child("learner/0#2", [] { trace_step(7); });
  record_in_child("decoder/0#2", [] { const Span span("decode"); });
  const auto processes = recorded();
  ASSERT_EQ(processes.size(), 4U);
  EXPECT_EQ(processes[0].process, "decoder/0#1");
  EXPECT_EQ(processes[0].spans.size(), 1U);
  EXPECT_THAT(processes[1].spans, IsEmpty());
}

TEST_F(TraceTest, ARankThatIsAheadCutsNobodyOff) {
  ASSERT_TRUE(prepare_tracing(folder_, {.first = 2, .last = 2}));
  record_in_child("learner/0#1", [] {
    trace_step(2);
    std::thread([] {
      trace_step(3);
      const Span span("next step of the rank that is ahead");
    }).join();
    { const Span span("rest of step 2"); }
    std::thread([] { const Span span("decode"); }).join();
    trace_step(3);
    { const Span span("next step"); }
    trace_step(4);
    std::thread([] { const Span span("decode later"); }).join();
  });
  const auto processes = recorded();
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_THAT(processes[0].spans,
              ElementsAre(Field(&RecordedSpan::name, "rest of step 2"), Field(&RecordedSpan::name, "decode")));
}

TEST_F(TraceTest, WithoutAPreparedFolderNothingIsRecorded) {
  record_in_child("learner/0#1", [] {
    trace_step(1);
    const Span span("step");
  });
  EXPECT_FALSE(std::filesystem::exists(folder_));
  ASSERT_TRUE(prepare_tracing(folder_, {.first = 1, .last = 1}));
  ASSERT_TRUE(end_tracing(folder_));
  record_in_child("learner/0#1", [] {
    trace_step(1);
    const Span span("step");
  });
  EXPECT_THAT(recorded(), IsEmpty());
  EXPECT_TRUE(end_tracing(scratch_ / "absent")) << "a run that was never traced";
}

TEST_F(TraceTest, LongNamesAreCutAndAFullFileCountsWhatItDropped) {
  ASSERT_TRUE(prepare_tracing(folder_, {.first = 1, .last = 1}));
  constexpr int kRoom = 1 << 18;
  record_in_child("env/0#1", [] {
    trace_step(1);
    const std::string name(60, 'n'), detail(60, 'd');
    { const Span span(name, detail); }
    { const Span span("gather", detail); }
    for (int i = 0; i < kRoom; ++i) const Span span("env step");
  });
  const auto processes = recorded();
  ASSERT_EQ(processes.size(), 1U);
  ASSERT_EQ(processes[0].spans.size(), std::size_t{kRoom});
  EXPECT_EQ(processes[0].spans[0].name, std::string(47, 'n'));
  EXPECT_EQ(processes[0].spans[1].name, "gather " + std::string(40, 'd'));
  EXPECT_EQ(processes[0].dropped, 2);
}

TEST_F(TraceTest, ForeignFilesAreNamed) {
  ASSERT_TRUE(prepare_tracing(folder_, {.first = 1, .last = 1}));
  std::ofstream(folder_ + "/x.spans") << "no spans";
  EXPECT_THAT(read_spans(folder_).error().message(), HasSubstr("x.spans"));
  std::ofstream(folder_ + "/switch") << "short";
  EXPECT_EQ(start_tracing(folder_, "run").error().code(), Errc::data_loss);
}

}  // namespace
}  // namespace troupe::base
