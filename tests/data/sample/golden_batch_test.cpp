#include <gtest/gtest.h>

#include "data/image/image_chain.h"
#include "data/language/language.h"
#include "data/lerobot/lerobot_meta.h"
#include "data/lerobot/modality.h"
#include "data/sampling/multi_anchor.h"
#include "data/statistics/state_action.h"
#include "data/video/clip_decoder.h"
#include "tests/data/data_test_support.h"
#include "tests/support/safetensors_bytes.h"

namespace troupe::data {
namespace {

using Json = OrderedJson;

constexpr double kGear = 1e-12, kRlinf = 5e-5;
constexpr std::int64_t kHorizon = 24;
constexpr std::size_t kStateDim = 64, kActionDim = 32;
/// Images: at most one level on at most this share of the sampled values.
constexpr double kSampledShare = 0.05;

/// What a batch file leaves to its README: keys, views and canvas of each dataset.
struct Recipe {
  std::string root;
  EmbodimentConfig embodiment;
  std::vector<std::string> videos;  ///< view files, "EPISODE" stands for the episode's stem
  std::int64_t height = 256, width = 256;
  bool single_view_prompt = true;
};

Recipe recipe_of(const std::string& dataset) {
  Recipe r;
  if (dataset == "gr1-pick-place") {
    r.root = shared_data() + "/gr1-pick-place";
    r.embodiment.state_keys = r.embodiment.action_keys = {"left_arm", "left_hand", "right_arm", "right_hand", "waist"};
    r.embodiment.relative_action_keys = {"left_arm", "right_arm"};
    r.embodiment.layout = "single";
    r.videos = {r.root + "/videos/chunk-000/observation.images.ego_view/EPISODE.mp4"};
  } else if (dataset == "droid-mini") {
    r.root = golden_data() + "/droid-mini";
    r.embodiment.state_keys = r.embodiment.action_keys = {"joint_position", "gripper_position"};
    r.embodiment.relative_action_keys = {"joint_position"};
    r.embodiment.views = {"exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"};
    r.embodiment.layout = "droid";
    r.height = 176;
    r.width = 320;
    r.single_view_prompt = false;
    for (const std::string& view : r.embodiment.views)
      r.videos.push_back(shared_data() + "/droid-views/" + view + ".mp4");
  }
  return r;
}

/// RLinf's samples of gr1 were made with a modality.json in which state.left_arm reads the state column.
void use_state_columns(Modality& modality) {
  for (VectorKey& key : modality.state) key.column = "observation.state";
}

KeyStatistics statistics_of_metadata(const Json& metadata, const SampleColumns& columns) {
  const Json& stats = metadata.begin().value()["statistics"];
  KeyStatistics out;
  for (const VectorKey& key : columns.state) out.state.push_back(statistics_of(stats["state"][key.name]));
  for (const ActionKey& key : columns.action) out.action.push_back(statistics_of(stats["action"][key.key.name]));
  return out;
}

class GoldenBatchTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto files = golden_files(GetParam());
    if (files.empty()) GTEST_SKIP() << "no golden kind " << GetParam() << " in " << golden_data();
    file_ = files.front();
    const std::string dataset = file_.value("dataset", GetParam() == "batch_gr1" ? "gr1-pick-place" : "droid-mini");
    recipe_ = recipe_of(dataset);
    ASSERT_FALSE(recipe_.root.empty()) << "no recipe for the dataset " << dataset;
    if (!std::filesystem::exists(recipe_.root)) GTEST_SKIP() << "no dataset " << dataset;
    ASSERT_TRUE(has_any_part(file_, {"samples"})) << "nothing to compare";
    tensors_.emplace(golden_data() + "/" + GetParam() + ".safetensors");
    info_ = read_lerobot_info(recipe_.root).value();
  }

  SampleColumns columns_of(bool rlinf) {
    Modality modality = read_modality(recipe_.root, info_).value();
    if (rlinf) use_state_columns(modality);
    return resolve_columns(modality, info_, recipe_.embodiment).value();
  }

  EpisodeTable table_of(const Json& sample, const SampleColumns& columns) {
    TableColumns wanted;
    wanted.vectors = columns.vector_columns();
    wanted.integers = {columns.label_column};
    const auto path = fill_path_template(info_.data_path, PathFields::of_episode(info_, sample["episode"]));
    return read_parquet(recipe_.root + "/" + *path, wanted).value();
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

  /// RLinf's samples of gr1 have statistics of their own; null where the file lacks those that a sample was made with.
  const Json& metadata_of(bool rlinf) const {
    const bool own = rlinf && GetParam() == "batch_gr1";
    return part_of(file_, own ? "experiment_metadata_for_rlinf_samples" : "experiment_metadata");
  }

  Json file_;
  Recipe recipe_;
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
  const auto tasks = read_tasks(recipe_.root, info_);
  ASSERT_TRUE(tasks);
  for (const Json& sample : file_["samples"]) {
    if (!sample.contains("text_before_tokeniser")) continue;
    const std::string want = sample["text_before_tokeniser"];
    const auto instruction = read_instruction(sample["text"]);
    ASSERT_TRUE(instruction);
    const bool listed =
        std::any_of(tasks->begin(), tasks->end(), [&](const auto& t) { return t.second == sample["text"]; });
    EXPECT_TRUE(listed) << sample["text"];
    if (recipe_.single_view_prompt) {
      EXPECT_EQ(*make_prompt("single_view_human", instruction->text, 1), want);
      continue;
    }
    // The DROID template is prefix (38 bytes), instruction, layout (353 bytes), instruction.
    EXPECT_EQ(want.size(), 38 + 353 + 2 * instruction->text.size());
    EXPECT_EQ(want.substr(38, instruction->text.size()), instruction->text);
    EXPECT_EQ(want.substr(want.size() - instruction->text.size()), instruction->text);
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

    ImageConfig config;
    config.height = recipe_.height;
    config.width = recipe_.width;
    auto chain = ImageChain::make(config, recipe_.embodiment.layout, static_cast<std::int64_t>(recipe_.videos.size()));
    ASSERT_TRUE(chain);
    const auto bytes = static_cast<std::size_t>(chain->canvas_bytes());
    std::vector<std::uint8_t> canvases(window.video.size() * bytes);
    for (std::size_t view = 0; view < recipe_.videos.size(); ++view) {
      std::string path = recipe_.videos[view];
      if (const std::size_t at = path.find("EPISODE"); at != std::string::npos) {
        path.replace(at, 7, "episode_00000" + std::to_string(sample["episode"].get<int>()));
      }
      if (!std::filesystem::exists(path)) GTEST_SKIP() << "no shared video " << path;
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

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenBatchTest, ::testing::Values("batch_gr1", "batch_droid"),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace troupe::data
