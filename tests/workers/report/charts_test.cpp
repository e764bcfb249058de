#include <cairo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>

#include "tests/support/folder_files.h"
#include "tests/support/scratch_folder.h"
#include "workers/report/axes.h"
#include "workers/report/loss_plot.h"
#include "workers/report/prediction_sheet.h"

namespace troupe::workers {
namespace {

namespace fs = std::filesystem;

/// A PNG read back, and the colours in it.
struct Reread {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint32_t> pixels;
  std::set<std::uint32_t> colors() const { return {pixels.begin(), pixels.end()}; }
  std::uint32_t at(std::int64_t x, std::int64_t y) const { return pixels[static_cast<std::size_t>(y * width + x)]; }
  std::int64_t count(std::uint32_t color) const {
    return std::count_if(pixels.begin(), pixels.end(), [&](std::uint32_t p) { return near(p, color); });
  }
  /// Within 12 levels in each channel: antialiasing mixes every line with the ground.
  static bool near(std::uint32_t a, std::uint32_t b) {
    for (const int shift : {0, 8, 16}) {
      if (std::abs(static_cast<int>(a >> shift & 255) - static_cast<int>(b >> shift & 255)) > 12) return false;
    }
    return true;
  }
};

Reread reread(const std::string& path) {
  EXPECT_EQ(text_of(path).substr(0, 8), "\x89PNG\r\n\x1a\n");
  cairo_surface_t* surface = cairo_image_surface_create_from_png(path.c_str());
  Reread r{cairo_image_surface_get_width(surface), cairo_image_surface_get_height(surface), {}};
  const unsigned char* data = cairo_image_surface_get_data(surface);
  for (std::int64_t y = 0; y < r.height; ++y) {
    const auto* row = reinterpret_cast<const std::uint32_t*>(data + y * cairo_image_surface_get_stride(surface));
    for (std::int64_t x = 0; x < r.width; ++x) r.pixels.push_back(row[x] & 0xFFFFFF);
  }
  cairo_surface_destroy(surface);
  return r;
}

/// TROUPE_KEEP_CHARTS names a folder in which the images stay, to be looked at.
class ChartsTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const {
    const char* keep = std::getenv("TROUPE_KEEP_CHARTS");
    return keep != nullptr ? keep + ("/" + name) : scratch_ / name;
  }

  const ScratchFolder scratch_;
};

std::vector<LossSeries> curves() {
  std::vector<LossSeries> all = {{"train loss", LossRole::train, {}},
                                 {"dynamics", LossRole::dynamics, {}},
                                 {"action", LossRole::action, {}},
                                 {"held-out loss", LossRole::held_out, {}}};
  for (std::int64_t step = 1; step <= 400; ++step) {
    const auto s = static_cast<double>(step);
    const double noise = 0.08 * std::sin(s * 12.9898) * std::cos(s * 4.1414),
                 dynamics = 0.55 * std::exp(-s / 90) + 0.06;
    const double action = 0.9 * std::exp(-s / 50) + 0.11;
    all[0].points.push_back({step, (dynamics + action) * (1 + noise)});
    all[1].points.push_back({step, dynamics * (1 - noise)});
    all[2].points.push_back({step, action * (1 + 2 * noise)});
    if (step % 40 == 0) all[3].points.push_back({step, dynamics + action + 0.03});
  }
  return all;
}

TEST_F(ChartsTest, LossCurvesAreDrawnInTheirColoursAtTheAskedSize) {
  draw_loss_curves(file("loss.png"), curves(), {.title = "quickstart: loss", .width = 1000, .height = 600}).value();
  const Reread r = reread(file("loss.png"));
  EXPECT_EQ(r.width, 1000);
  EXPECT_EQ(r.height, 600);
  for (const std::uint32_t color : {0x1A4794u, 0x178F80u, 0xDB781Au, 0xB3215Cu}) {
    EXPECT_GT(r.count(color), 40) << std::hex << color;
  }
  // the train curve falls: it is high at the left and low at the right
  const auto height_at = [&](std::int64_t from, std::int64_t to) {
    double sum = 0, n = 0;
    for (std::int64_t y = 60; y < 536; ++y) {
      for (std::int64_t x = from; x < to; ++x) {
        if (!Reread::near(r.at(x, y), 0x1A4794u)) continue;
        sum += static_cast<double>(y);
        n += 1;
      }
    }
    return sum / n;
  };
  EXPECT_LT(height_at(93, 140) + 100, height_at(600, 720));
}

TEST_F(ChartsTest, ALogarithmicAxisAndGapsInTheCurveAreDrawn) {
  auto series = curves();
  series[0].points[100].value = std::numeric_limits<double>::quiet_NaN();
  series[0].points[101].value = std::numeric_limits<double>::infinity();
  series[1].points[7].value = -1;
  ASSERT_TRUE(draw_loss_curves(file("loss_log.png"), series, {.title = "quickstart: loss", .log_scale = true}));
  EXPECT_GT(reread(file("loss_log.png")).colors().size(), 100u);
}

TEST_F(ChartsTest, ACurveOfOnePointIsVisible) {
  const std::vector<LossSeries> one = {{"train loss", LossRole::train, {{1, 0.5}}}};
  ASSERT_TRUE(draw_loss_curves(file("one.png"), one, {.title = "one step"}));
  EXPECT_GT(reread(file("one.png")).count(0x1A4794u), 20);
}

TEST_F(ChartsTest, NothingToDrawAndNowhereToWriteAreErrors) {
  const std::vector<LossSeries> none = {
      {"train loss", LossRole::train, {{1, std::numeric_limits<double>::quiet_NaN()}}}};
  EXPECT_EQ(draw_loss_curves(file("none.png"), none, {}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(draw_loss_curves(file("no/such/folder.png"), curves(), {}).error().code(), Errc::failed_precondition);
  EXPECT_FALSE(fs::exists(file("none.png")));
}

struct Clip {
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<Rgb8View> views;
};

/// A disc that moves over a gradient; `error` shifts it, as an imperfect prediction would.
Clip moving_disc(std::int64_t frames, double error) {
  Clip clip;
  constexpr std::int64_t kSide = 64;
  for (std::int64_t t = 0; t < frames; ++t) {
    std::vector<std::uint8_t> rgb;
    const double cx = 10 + 2.2 * static_cast<double>(t) + error * static_cast<double>(t),
                 cy = 30 + 12 * std::sin(0.3 * static_cast<double>(t));
    for (std::int64_t y = 0; y < kSide; ++y) {
      for (std::int64_t x = 0; x < kSide; ++x) {
        const bool inside = std::hypot(static_cast<double>(x) - cx, static_cast<double>(y) - cy) < 9;
        rgb.push_back(inside ? 220 : static_cast<std::uint8_t>(120 + x));
        rgb.push_back(inside ? 60 : static_cast<std::uint8_t>(140 + y));
        rgb.push_back(inside ? 50 : 200);
      }
    }
    clip.bytes.push_back(std::move(rgb));
  }
  for (const auto& rgb : clip.bytes) clip.views.push_back({rgb.data(), kSide, kSide, 3 * kSide});
  return clip;
}

TEST_F(ChartsTest, APredictionSheetShowsFramesAndActionsOfBoth) {
  const Clip truth = moving_disc(17, 0), guess = moving_disc(17, 0.35);
  PredictionSheet sheet{.title = "Held-out clip: step 400, episode 3",
                        .caption = "pick up the red ball",
                        .true_frames = truth.views,
                        .predicted_frames = guess.views,
                        .action_names = {"shoulder", "elbow", "wrist", "gripper"},
                        .action_steps = 32};
  for (int t = 0; t < 32; ++t) {
    for (int d = 0; d < 4; ++d) {
      const double value = std::sin(0.1 * t + d) * (d + 1);
      sheet.true_actions.push_back(static_cast<float>(value));
      sheet.predicted_actions.push_back(static_cast<float>(value + 0.1 * std::sin(1.7 * t + d)));
    }
  }
  draw_prediction(file("prediction.png"), sheet).value();
  const Reread r = reread(file("prediction.png"));
  EXPECT_GE(r.width, 960);
  EXPECT_GT(r.colors().size(), 500u);
  EXPECT_GT(r.count(0xDC3C32u), 2000);  // the disc, in both rows
  EXPECT_GT(r.count(0xDB5C14u), 100);   // predicted curves

  sheet.predicted_frames.pop_back();
  EXPECT_EQ(draw_prediction(file("bad.png"), sheet).error().code(), Errc::invalid_argument);
  sheet.predicted_frames = guess.views;
  sheet.true_actions.pop_back();
  EXPECT_EQ(draw_prediction(file("bad.png"), sheet).error().code(), Errc::invalid_argument);
}

TEST_F(ChartsTest, ASheetOfFramesAloneAndOneOfActionsAloneAreDrawn) {
  const Clip truth = moving_disc(3, 0);
  PredictionSheet frames{.title = "frames", .true_frames = truth.views, .predicted_frames = truth.views};
  EXPECT_TRUE(draw_prediction(file("frames.png"), frames));
  PredictionSheet actions{.title = "actions",
                          .action_names = {"x"},
                          .action_steps = 2,
                          .true_actions = {0, 1},
                          .predicted_actions = {1, 1}};
  EXPECT_TRUE(draw_prediction(file("actions.png"), actions));
  EXPECT_EQ(draw_prediction(file("empty.png"), {}).error().code(), Errc::invalid_argument);
}

TEST_F(ChartsTest, SignalToNoiseFollowsItsFormula) {
  const std::vector<std::uint8_t> a(12, 100), b(12, 110);
  const Rgb8View p{a.data(), 2, 2, 6}, q{b.data(), 2, 2, 6};
  EXPECT_NEAR(peak_signal_to_noise(p, q), 20 * std::log10(25.5), 1e-9);
  EXPECT_TRUE(std::isinf(peak_signal_to_noise(p, p)));
}

TEST_F(ChartsTest, TheRunningMeanKeepsASlopeAndEndsWhereItsWindowWouldShrink) {
  std::vector<LossPoint> line;
  for (std::int64_t i = 0; i < 50; ++i) line.push_back({i, 3.0 * static_cast<double>(i)});
  const auto smooth = running_mean(line, 9);
  ASSERT_EQ(smooth.size(), 42u);
  EXPECT_EQ(smooth.front().step, 4);
  EXPECT_EQ(smooth.back().step, 45);
  for (const LossPoint& p : smooth) EXPECT_NEAR(p.value, 3.0 * static_cast<double>(p.step), 1e-9);
  EXPECT_TRUE(running_mean(line, 1).empty());
  EXPECT_TRUE(running_mean(line, 50).empty());
}

/// Pixels of a colour in a part of the image.
std::int64_t count_in(const Reread& r, const ChartRect& part, std::uint32_t color) {
  std::int64_t count = 0;
  for (auto y = static_cast<std::int64_t>(part.y); y < static_cast<std::int64_t>(part.bottom()); ++y) {
    for (auto x = static_cast<std::int64_t>(part.x); x < static_cast<std::int64_t>(part.right()); ++x)
      count += Reread::near(r.at(x, y), color) ? 1 : 0;
  }
  return count;
}

TEST_F(ChartsTest, NegativeReturnsAreDrawn) {
  // A tenth of the way below zero, by less than a fifth of the best return.
  LossSeries series{.name = "training episodes", .role = LossRole::train, .points = {}};
  for (std::int64_t i = 0; i <= 1000; ++i)
    series.points.push_back({i * 1000, i < 100 ? -300.0 : 5.0 * static_cast<double>(i)});
  draw_loss_curves(file("return.png"), {series}, {.title = "rl: HalfCheetah-v5", .x_title = "environment steps"})
      .value();
  const Reread r = reread(file("return.png"));
  // The plot begins within the first 140 columns; its first tenth has 100 columns of curve and more.
  EXPECT_GT(count_in(r, {140, 500, 40, 160}, 0x1A4794u), 60) << "a horizontal line two pixels wide";
}

TEST_F(ChartsTest, TheLegendStandsAboveTheCurves) {
  // Curves that fill the upper right corner, where a legend inside would cover them.
  std::vector<LossSeries> rising = {{"train loss", LossRole::train, {}},
                                    {"held-out loss with a name that is long", LossRole::held_out, {}}};
  for (std::int64_t i = 1; i <= 100; ++i) {
    rising[0].points.push_back({i, static_cast<double>(i)});
    rising[1].points.push_back({i, 99.5});
  }
  draw_loss_curves(file("legend.png"), rising, {.title = std::string(200, 'T')}).value();
  const Reread r = reread(file("legend.png"));
  constexpr std::uint32_t kTrain = 0x1A4794u, kHeldOut = 0xB3215Cu, kText = 0x212126u;
  EXPECT_GT(count_in(r, {0, 45, 1200, 25}, kTrain), 50) << "the sample of its line";
  EXPECT_GT(count_in(r, {0, 45, 1200, 25}, kHeldOut), 30);
  EXPECT_EQ(count_in(r, {100, 90, 1100, 560}, kText), 0) << "no dark text among the curves";
  EXPECT_EQ(count_in(r, {1190, 0, 10, 720}, kText), 0) << "the title is not cut";
  EXPECT_GT(count_in(r, {900, 10, 276, 30}, kText), 20) << "and whole";
}

TEST_F(ChartsTest, TickLabelsDoNotTouch) {
  LossSeries series{.name = "x", .role = LossRole::train, .points = {{0, -1e6}, {1'000'000, 1e6}}};
  draw_loss_curves(file("labels.png"), {series}, {.title = "labels", .width = 400, .height = 300}).value();
  const Reread r = reread(file("labels.png"));
  // Between two labels stand at least as many blank columns as the gap is wide.
  std::int64_t labels = 0, blank = 100;
  for (std::int64_t x = 0; x < r.width; ++x) {
    std::int64_t ink = 0;
    for (std::int64_t y = 244; y < 258; ++y) ink += r.at(x, y) != 0xFFFFFFu ? 1 : 0;
    if (ink > 0 && blank >= 8) ++labels;
    blank = ink > 0 ? 0 : blank + 1;
  }
  EXPECT_GE(labels, 2);
  EXPECT_EQ(count_in(r, {398, 0, 2, 300}, 0x616169u), 0) << "the last label ends inside the picture";
}

TEST_F(ChartsTest, ALongLegendLeavesTheCurvesTheirRoom) {
  std::vector<LossSeries> groups;
  for (std::size_t g = 0; g < 36; ++g) {
    groups.push_back({.name = std::string(120, 'n'), .role = LossRole::group, .points = {}, .group = g});
    for (std::int64_t i = 0; i <= 10; ++i)
      groups.back().points.push_back({i, static_cast<double>(g == 0 ? 100 : g == 8 ? 50 : 0)});
  }
  draw_loss_curves(file("groups.png"), groups, {.title = "many groups"}).value();
  const Reread r = reread(file("groups.png"));
  constexpr std::uint32_t kFirst = 0x1A4794u;
  const double curves = static_cast<double>(r.height) - 64 - 0.5 * 720, half = 0.5 * 720 / 2;
  EXPECT_GT(curves, 36 * 22);
  const std::int64_t whole = count_in(r, {140, curves, 1000, half - 60}, kFirst),
                     dashed = count_in(r, {140, curves + half - 60, 1000, 120}, kFirst);
  EXPECT_GT(whole, 900) << "the highest curve is in the upper half";
  EXPECT_GT(dashed, 400) << "the ninth group has the colour of the first";
  EXPECT_LT(dashed, 0.8 * static_cast<double>(whole)) << "and dashes";
}

TEST_F(ChartsTest, ADivergedLossWantsALogScale) {
  EXPECT_FALSE(wants_log_scale(curves()));
  EXPECT_FALSE(wants_log_scale({}));
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(wants_log_scale({{"train loss", LossRole::train, {{1, 0.5}, {2, 1e23}, {3, nan}}}}));
  EXPECT_FALSE(wants_log_scale({{"return", LossRole::train, {{1, -0.5}, {2, 1e23}}}}));
}

}  // namespace
}  // namespace troupe::workers
