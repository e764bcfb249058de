#include "workers/report/text_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

namespace troupe::workers {
namespace {

RunSummary finished_run() {
  return {.name = "dz5b-droid",
          .steps = 2000,
          .samples = 512'000,
          .seconds = 14'392,
          .exit_code = 0,
          .loss_first = 0.8123,
          .loss_last = 0.2874,
          .loss_best = 0.2851,
          .loss_best_step = 1930,
          .samples_per_second_mean = 35.6,
          .samples_per_second_p50 = 35.7,
          .samples_per_second_p05 = 34.1,
          .mfu_percent = 41.2,
          .hfu_percent = 54.8,
          .compute_percent = 93.1,
          .exposed_comm_percent = 3.9,
          .stall_percent = 0.4,
          .checkpoint_percent = 0.9,
          .other_percent = 1.7,
          .events = {"decoder restarts 1 (corrupt video: data/droid/videos/a.mp4)"},
          .checkpoint = "checkpoints/step_002000",
          .checkpoint_bytes = 60'022'480'077,
          .checkpoint_verified = true,
          .next = {"troupe eval runs/dz5b-droid --suite libero_spatial", "troupe export runs/dz5b-droid --format hf"}};
}

ProgressLine running() {
  return {.name = "dz5b-droid",
          .step = 420,
          .total_steps = 2000,
          .loss = 0.3712,
          .dynamics_loss = 0.0631,
          .action_loss = 0.3081,
          .gradient_norm = 0.42,
          .learning_rate = 1e-5,
          .samples_per_second = 35.6,
          .seconds_per_step = 7.19,
          .stall_percent = 0.4,
          .ranks = 8,
          .rank_noun = "gpu",
          .mfu_percent = 41.2,
          .memory_used_gib = 118.2,
          .memory_total_gib = 139.8,
          .remaining_seconds = 11'360};
}

TEST(TextReportTest, ACompleteRunEndsInTheKnownBlock) {
  EXPECT_EQ(
      run_report(finished_run()),
      "RUN COMPLETE dz5b-droid   2,000 steps   512,000 samples   3h59m52s   exit 0\n"
      "  loss      0.8123 -> 0.2874 (best 0.2851 @ 1,930)      nan/inf 0      void batches 0      restarts 0\n"
      "  speed     35.6 smp/s mean (p50 35.7, p05 34.1)      MFU 41.2%      HFU 54.8%\n"
      "  time      compute 93.1%  comm exposed 3.9%  data stall 0.4%  checkpoint 0.9%  other 1.7%\n"
      "  events    decoder restarts 1 (corrupt video: data/droid/videos/a.mp4)\n"
      "  saved     checkpoints/step_002000 (55.9 GiB, verified)  latest -> step_002000\n"
      "  next      troupe eval runs/dz5b-droid --suite libero_spatial     troupe export runs/dz5b-droid --format hf\n");
}

TEST(TextReportTest, TheOpenLoopEvaluationStandsBesideBothBaselines) {
  RunSummary s = finished_run();
  EXPECT_EQ(run_report(s).find("open loop"), std::string::npos) << "no evaluation, no line";
  s.open_loop = OpenLoopSummary{
      .mse = 0.02494, .hold_first_mse = 0.1403, .mean_action_mse = 0.1649, .windows = 32, .episodes = 8};
  EXPECT_NE(run_report(s).find("\n  open loop mse 0.02494 on 32 held-out windows of 8 episodes   holding still 0.1403"
                               "   mean action 0.1649   0.18 of the better of both, so it has learnt\n  events"),
            std::string::npos)
      << run_report(s);
  s.open_loop->mse = 0.2988;
  s.open_loop->hold_first_mse = 0.03635;
  EXPECT_NE(run_report(s).find("8.22 of the better of both: doing nothing is better\n"), std::string::npos)
      << run_report(s);
  s.open_loop->mse = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(run_report(s).find("cannot be compared"), std::string::npos) << run_report(s);
}

TEST(TextReportTest, AFailedRunSaysSoAndAdmitsThatNothingWasSaved) {
  RunSummary s = finished_run();
  s.exit_code = 4;
  s.events.clear();
  s.checkpoint.clear();
  s.mfu_percent.reset();
  s.hfu_percent.reset();
  s.loss_last = std::numeric_limits<double>::quiet_NaN();
  s.next.clear();
  const std::string text = run_report(s);
  EXPECT_EQ(text.rfind("RUN FAILED dz5b-droid", 0), 0u) << text;
  EXPECT_NE(text.find("exit 4\n"), std::string::npos);
  EXPECT_NE(text.find("0.8123 -> nan"), std::string::npos);
  EXPECT_NE(text.find("MFU n/a      HFU n/a"), std::string::npos);
  EXPECT_NE(text.find("  events    none\n  saved     nothing\n"), std::string::npos) << text;
  for (const int code : {130, 75}) {
    s.exit_code = code;
    EXPECT_EQ(run_report(s).rfind("RUN STOPPED", 0), 0u) << code;
  }
}

TEST(TextReportTest, ARunWithoutAnEndedEpisodeHasNoReturn) {
  RunSummary s = finished_run();
  s.measure = "return";
  s.is_measured = false;
  EXPECT_NE(run_report(s).find("\n  return    n/a      nan/inf 0"), std::string::npos) << run_report(s);
}

ProgressLine running_on_cores() {
  ProgressLine p = running();
  p.mfu_percent.reset();
  p.memory_used_gib.reset();
  p.ranks = 2;
  p.rank_noun = "rank";
  p.remaining_seconds = 185;
  return p;
}

TEST(TextReportTest, ProgressIsTwoLinesUnderEachOther) {
  EXPECT_EQ(progress_text(running()),
            "[dz5b-droid] step  420/2000 21.0%  loss 0.3712 (dyn 0.0631 act 0.3081)  gn 0.42  lr 1.0e-05\n"
            "             35.6 smp/s (4.45/gpu)  7.19 s/step  MFU 41.2%  stall 0.4%  mem 118.2/139.8G  ETA 3h09m\n");
}

TEST(TextReportTest, OnACpuThePeakIsNotGuessed) {
  const ProgressLine p = running_on_cores();
  EXPECT_EQ(progress_text(p),
            "[dz5b-droid] step  420/2000 21.0%  loss 0.3712 (dyn 0.0631 act 0.3081)  gn 0.42  lr 1.0e-05\n"
            "             35.6 smp/s (17.8/rank)  7.19 s/step  MFU n/a  stall 0.4%  ETA 3m05s\n");
}

TEST(TextReportTest, OnCoresPredictedStandsBesideMeasuredAndTheShareOfProductsInThePlaceOfMfu) {
  ProgressLine p = running_on_cores();
  p.predicted_seconds = 6.8;
  p.product_share_percent = 61.25;
  EXPECT_NE(
      progress_text(p).find("35.6 smp/s (17.8/rank)  7.19 s/step (predicted 6.80)  product rate share 61.2%  stall"),
      std::string::npos)
      << progress_text(p);
  RunSummary s = finished_run();
  s.mfu_percent.reset();
  s.hfu_percent.reset();
  s.seconds_per_step = 7.19;
  s.predicted_seconds = 6.8;
  s.product_share_percent = 61.25;
  const std::string report = run_report(s);
  EXPECT_NE(report.find("7.19 s/step (predicted 6.80)   product rate share 61.2%\n"), std::string::npos) << report;
  EXPECT_EQ(report.find("FU"), std::string::npos) << report;
}

TEST(TextReportTest, ANarrowTerminalBreaksBetweenFields) {
  const std::string text = progress_text(running(), {.width = 60});
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
    const std::string line = text.substr(begin, end - begin);
    EXPECT_LE(line.size(), 60u) << line;
    EXPECT_EQ(line.substr(0, 13).find_first_not_of(begin == 0 ? "[dz5b-roi] " : " "), std::string::npos) << line;
  }
  EXPECT_NE(text.find("loss 0.3712 (dyn 0.0631 act 0.3081)"), std::string::npos);
}

TEST(TextReportTest, ColourAppearsOnlyWhenAskedForAndLeavesTheWordsAlone) {
  const std::string plain = run_report(finished_run()), colored = run_report(finished_run(), {.color = true});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_EQ(colored.rfind("\x1b[1;32mRUN COMPLETE ", 0), 0u);
  std::string stripped;
  for (std::size_t i = 0; i < colored.size(); ++i) {
    if (colored[i] == '\x1b')
      i = colored.find('m', i);
    else
      stripped += colored[i];
  }
  EXPECT_EQ(stripped, plain);
}

TEST(TextReportTest, APipeGetsNeitherColourNorBreaks) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const TextStyle style = text_style_of(ends[1]);
  EXPECT_FALSE(style.color);
  EXPECT_EQ(style.width, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(TextReportTest, NumbersReadWell) {
  EXPECT_EQ(duration_text(3.25), "3.2s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(14'392), "3h59m52s");
  EXPECT_EQ(duration_text(190'000), "2d04h46m");
  EXPECT_EQ(duration_text(-1), "n/a");
}

}  // namespace
}  // namespace troupe::workers
