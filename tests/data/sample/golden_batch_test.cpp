// Golden kinds `batch_*`: whole training samples, each from a dataset and an embodiment that the case or its folder
// names. Videos are below the dataset, or recorded elsewhere under the view's name.
#include <gtest/gtest.h>

#include "configs/embodiment_file.h"
#include "data/language/language.h"
#include "data/lerobot/lerobot_meta.h"
#include "data/lerobot/modality.h"
#include "data/sampling/multi_anchor.h"
#include "data/statistics/state_action.h"
#include "data/video/clip_decoder.h"
#include "image/image_chain.h"
#include "tests/data/data_test_support.h"
#include "tests/data/golden_dataset.h"
#include "tests/support/safetensors_bytes.h"

namespace troupe::data {
namespace {

using Json = OrderedJson;

constexpr double kGear = 1e-12, kRlinf = 5e-5;
constexpr std::int64_t kHorizon = 24;
constexpr std::size_t kStateDim = 64, kActionDim = 32;
/// Images: at most one level on at most this share of the sampled values.
constexpr double kSampledShare = 0.05;

/// The statistics that a case's samples were made with, {TAG: {"statistics": ...}}.
const Json& metadata_of_case(const Json& file) {
  const Json& metadata = part_of(file, "experiment_metadata");
  return metadata.empty() ? part_of(file, "experiment_metadata_for_rlinf_samples") : metadata;
}

/// What identifies a case's dataset where the case names none: the widths of the keys it has statistics of.
DatasetTraits traits_of(const Json& file) {
  const Json& metadata = metadata_of_case(file);
  if (metadata.empty()) return {};
  const Json& statistics = metadata.begin().value()["statistics"];
  return {.state = widths_of(statistics["state"]), .action = widths_of(statistics["action"])};
}

/// Tag of a case's embodiment: its key, the one its statistics are under, or that of the dataset. Empty without any.
std::string tag_of(const Json& file, const std::string& root) {
  if (file.contains("embodiment_tag")) return file["embodiment_tag"];
  if (!metadata_of_case(file).empty()) return metadata_of_case(file).begin().key();
  std::ifstream in(root + "/meta/embodiment.json");
  return in ? Json::parse(in).value("embodiment_tag", "") : "";
}

/// Our embodiment of that tag, with the keys that the case states in place of its own.
Result<EmbodimentConfig> embodiment_of(const Json& file, const std::string& tag) {
  TROUPE_ASSIGN(EmbodimentConfig embodiment, configs::load_embodiment(tag));
  if (file.contains("keys")) embodiment.state_keys = embodiment.action_keys = file["keys"];
  if (file.contains("relative_action_keys")) embodiment.relative_action_keys = file["relative_action_keys"];
  return embodiment;
}

/// RLinf's samples were made with a modality.json in which no state key reads the action column. Returns whether one
/// did before.
bool use_state_columns(Modality& modality) {
  bool changed = false;
  for (VectorKey& key : modality.state) {
    if (key.column != "action") continue;
    key.column = "observation.state";
    changed = true;
  }
  return changed;
}

/// The file of one view: that of the dataset, else a recording of the view's name below the shared data; empty where
/// there is none.
std::string video_of(const std::string& root, const LerobotInfo& info, const NamedColumn& view, std::int64_t episode) {
  const auto own = fill_path_template(info.video_path, PathFields::of_episode(info, episode, view.column));
  if (own && std::filesystem::exists(root + "/" + *own)) return root + "/" + *own;
  std::error_code absent;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared_data(), absent)) {
    if (entry.path().filename() == view.name + ".mp4") return entry.path().string();
  }
  return {};
}

KeyStatistics statistics_of_metadata(const Json& metadata, const SampleColumns& columns) {
  const Json& stats = metadata.begin().value()["statistics"];
  KeyStatistics out;
  for (const VectorKey& key : columns.state) out.state.push_back(statistics_of(stats["state"][key.name]));
  for (const ActionKey& key : columns.action) out.action.push_back(statistics_of(stats["action"][key.key.name]));
  return out;
}

class GoldenBatchTest : public ::testing::TestWithParam<testing::GoldenCase> {
 protected:
  void SetUp() override {
    file_ = parse_golden(GetParam());
    ASSERT_TRUE(has_any_part(file_, {"samples"})) << "nothing to compare";
    tensors_.emplace(GetParam().tensors().string());
    root_ = dataset_of(GetParam(), traits_of(file_));
    if (root_.empty()) GTEST_SKIP() << "the dataset of " << GetParam().file << " is not here";
    const std::string tag = tag_of(file_, root_);
    ASSERT_FALSE(tag.empty()) << GetParam().file << " has no key \"embodiment_tag\", nor has its dataset " << root_;
    auto embodiment = embodiment_of(file_, tag);
    embodiment_ = std::move(*embodiment);
    info_ = read_lerobot_info(root_).value();
  }

  SampleColumns columns_of(bool rlinf) {
    Modality modality = read_modality(root_, info_).value();
    if (rlinf) use_state_columns(modality);
    return resolve_columns(modality, info_, embodiment_).value();
  }

  EpisodeTable table_of(const Json& sample, const SampleColumns& columns) {
    TableColumns wanted;
    wanted.vectors = columns.vector_columns();
    wanted.integers = {columns.label_column};
    const auto path = fill_path_template(info_.data_path, PathFields::of_episode(info_, sample["episode"]));
    return read_parquet(root_ + "/" + *path, wanted).value();
  }

  SampleWindow window_of(const Json& sample, const EpisodeTable& table, const SampleColumns& columns) {
    return multi_anchor_window(WindowConfig{}, table.integers.at(columns.label_column), sample["anchor"]);
  }

  template <class T>
  void check_vectors(const Json& sample, const std::string& prefix, bool rlinf, double tolerance) {
    const SampleColumns columns = columns_of(rlinf);
    const EpisodeTable table = table_of(sample, columns);
    const SampleWindow window = window_of(sample, table, columns);
    const auto check = [&](const std::string& name, const auto& got, double allowed) {
      if (!tensors_->contains(prefix + name)) return;
      using Value = typename std::decay_t<decltype(got)>::value_type;
      EXPECT_LE(worst_error(got, tensors_->at(prefix + name).template as<Value>()), allowed) << name;
      ++compared_;
    };
    for (const VectorKey& key : columns.state)
      check("raw/state." + key.name, gather_rows<T>(table, key, window.states), tolerance);
    for (const ActionKey& key : columns.action)
      check("raw/action." + key.key.name, gather_actions<T>(table, key, window.actions, kHorizon), tolerance);
    const Json& metadata = metadata_of(rlinf);
    if (metadata.empty()) return;
    const StateActionTransform<T> transform(columns, NormalizationMode::q99, statistics_of_metadata(metadata, columns));

    std::vector<T> state(window.states.size() * kStateDim), action(window.actions.size() * kActionDim);
    std::vector<std::uint8_t> state_mask(state.size()), action_mask(action.size());
    transform.state(table, window.states, kStateDim, state, state_mask);
    transform.action(table, window.actions, kHorizon, kActionDim, action, action_mask);
    check("state", state, tolerance);
    check("action", action, tolerance);
    check("state_mask", state_mask, 0);
    check("action_mask", action_mask, 0);
  }

  /// RLinf's samples have statistics of their own where they read other columns; null where the file lacks those that a
  /// sample was made with.
  const Json& metadata_of(bool rlinf) const {
    Modality modality = read_modality(root_, info_).value();
    const bool own = rlinf && use_state_columns(modality);
    return part_of(file_, own ? "experiment_metadata_for_rlinf_samples" : "experiment_metadata");
  }

  /// Size of one view on the canvas, from the case or from the canvas of one of its samples.
  ImageConfig size_of_view(const Json& sample, std::int64_t views) const {
    ImageConfig config;
    if (file_.contains("per_view_hw")) {
      config.height = file_["per_view_hw"][0];
      config.width = file_["per_view_hw"][1];
      return config;
    }
    const auto of_two = CanvasLayout::make(embodiment_.layout, views, 2, 2);
    EXPECT_TRUE(of_two) << of_two.error().message();
    if (!of_two) return config;
    config.height = sample["images"]["shape"][1].get<std::int64_t>() * 2 / of_two->height;
    config.width = sample["images"]["shape"][2].get<std::int64_t>() * 2 / of_two->width;
    return config;
  }

  Json file_;
  std::string root_;  ///< of the dataset
  EmbodimentConfig embodiment_;
  LerobotInfo info_;
  std::optional<SafetensorsBytes> tensors_;
  int compared_ = 0;  ///< tensors
};

bool is_rlinf(const Json& sample) { return sample["pipeline"].get<std::string>().rfind("RLinf", 0) == 0; }

TEST_P(GoldenBatchTest, StateAndActionMatchBothReferences) {
  for (const Json& sample : file_["samples"]) {
    const bool rlinf = is_rlinf(sample);
    SCOPED_TRACE(sample["sample"].get<std::string>() + (rlinf ? " RLinf" : " GEAR"));
    if (sample.contains("rejected")) {
      const SampleColumns columns = columns_of(true);
      EXPECT_FALSE(is_full(WindowConfig{}, window_of(sample, table_of(sample, columns), columns)));
      continue;
    }
    const std::string prefix = sample["sample"].get<std::string>() + (rlinf ? "/rlinf/" : "/gear/");
    if (rlinf) {
      check_vectors<float>(sample, prefix, true, kRlinf);
    } else {
      check_vectors<double>(sample, prefix, false, kGear);
    }
  }
  EXPECT_GT(compared_, 0) << "no sample has a tensor to compare";
}

TEST_P(GoldenBatchTest, PromptsMatch) {
  const auto tasks = read_tasks(root_, info_);
  for (const Json& sample : file_["samples"]) {
    if (!sample.contains("text_before_tokeniser")) continue;
    const std::string want = sample["text_before_tokeniser"];
    const auto instruction = read_instruction(sample["text"]);
    const bool listed =
        std::any_of(tasks->begin(), tasks->end(), [&](const auto& t) { return t.second == sample["text"]; });
    EXPECT_TRUE(listed) << sample["text"];
    const auto views = static_cast<std::int64_t>(columns_of(false).views.size());
    EXPECT_EQ(*make_prompt(embodiment_.prompt, instruction->text, views), want);
  }
}

/// Rows of a sample are frames in presentation order: RLinf's frames are ours; GEAR reads one frame later on gr1.
TEST_P(GoldenBatchTest, RowsAreFramesAndCanvasesMatch) {
  ClipDecoder decoder;
  for (const Json& sample : file_["samples"]) {
    if (!is_rlinf(sample) || sample.contains("rejected")) continue;
    SCOPED_TRACE(sample["sample"].get<std::string>());
    const SampleColumns columns = columns_of(true);
    const SampleWindow window = window_of(sample, table_of(sample, columns), columns);
    ASSERT_EQ(window.video, expand_runs(sample["video_frames_used"].begin().value()));
    // RLinf's samples were made with the crop and jitter of the GEAR sample of the same name.
    const auto gear = std::find_if(file_["samples"].begin(), file_["samples"].end(),
                                   [&](const Json& s) { return s["sample"] == sample["sample"] && !is_rlinf(s); });
    ASSERT_NE(gear, file_["samples"].end());

    const auto views = static_cast<std::int64_t>(columns.views.size());
    const ImageConfig config = size_of_view(sample, views);
    auto chain = ImageChain::make(config, embodiment_.layout, views);
    const auto bytes = static_cast<std::size_t>(chain->canvas_bytes());
    std::vector<std::uint8_t> canvases(window.video.size() * bytes);
    for (std::size_t view = 0; view < columns.views.size(); ++view) {
      const std::string path = video_of(root_, info_, columns.views[view], sample["episode"]);
      if (path.empty())
        GTEST_SKIP() << "no video of the view " << columns.views[view].name << " in " << root_ << " or "
                     << shared_data();
      const auto read = decoder.read(
          path, window.video,
          [&](std::size_t i, const Rgb8View& p) {
            ImageAugmentation a = centre_augmentation(config, p.height, p.width);
            a.top = (*gear)["crop"]["top"];
            a.left = (*gear)["crop"]["left"];
            const Json& j = (*gear)["jitter"];
            for (const auto& op : j["order"]) a.jitter.order[static_cast<std::size_t>(a.jitter.operations++)] = op;
            a.jitter.brightness_factor = j.value("b", 1.0);
            a.jitter.contrast_factor = j.value("c", 1.0);
            a.jitter.saturation_factor = j.value("s", 1.0);
            a.jitter.hue_shift = j.value("h", 0.0);
            return chain->run_view(static_cast<std::int64_t>(view), p, a,
                                   std::span(canvases).subspan(i * bytes, bytes));
          },
          std::chrono::steady_clock::now() + std::chrono::minutes(2));
      ASSERT_TRUE(read) << read.error().message();
    }

    const Json& pixels = sample["images"]["sampled_pixels"];
    const std::int64_t row_step = pixels["row_step"], column_step = pixels["col_step"];
    std::size_t different = 0, total = 0;
    for (std::size_t f = 0; f < pixels["frames"].size(); ++f) {
      const std::uint8_t* canvas = canvases.data() + pixels["frames"][f].get<std::size_t>() * bytes;
      std::size_t at = 0;
      for (std::int64_t y = 0; y < chain->canvas_height(); y += row_step) {
        for (std::int64_t x = 0; x < chain->canvas_width(); x += column_step) {
          for (std::int64_t c = 0; c < 3; ++c) {
            const int apart =
                std::abs(canvas[(y * chain->canvas_width() + x) * 3 + c] - pixels["values"][f][at++].get<int>());
            ASSERT_LE(apart, 1) << "frame " << f << " row " << y << " column " << x;
            different += apart != 0;
            ++total;
          }
        }
      }
      ASSERT_EQ(at, pixels["values"][f].size());
    }
    EXPECT_LE(static_cast<double>(different), kSampledShare * static_cast<double>(total));
  }
}

std::vector<testing::GoldenCase> batch_cases() {
  auto cases = testing::golden_cases("data");
  std::erase_if(cases, [](const auto& c) { return !c.file.stem().string().starts_with("batch_"); });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenBatchTest, ::testing::ValuesIn(batch_cases()), golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenBatchTest);

}  // namespace
}  // namespace troupe::data
