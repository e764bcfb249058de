#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::workers {

/// A licence in the words of Hugging Face's front matter.
struct CardLicense {
  /// Such as apache-2.0, or other.
  std::vector<std::string> ids{};
  /// license_name and license_link, which tell what `other` is.
  std::string name{}, link{};
};

/// A dataset as a model card names it.
struct CardDataset {
  /// owner/name where it came from the Hugging Face Hub, else its folder's name.
  std::string name;
  bool is_repo_id = false;
  /// -1: not known.
  std::int64_t episodes = -1, frames = -1, held_out_episodes = 0;
  /// 0: not known.
  double frames_per_second = 0;
  std::optional<CardLicense> license{};
};

/// Weights that were there before the training.
struct CardWeights {
  /// owner/name where they came from the Hugging Face Hub, else the name of their file or folder.
  std::string name;
  bool is_repo_id = false;
  /// As their own card states it.
  std::optional<CardLicense> license{};
};

/// What an exported folder says of itself. Names are what users wrote: any text.
struct ModelCard {
  std::string name;
  /// One paragraph: what it is.
  std::string summary;
  std::vector<std::string> tags{};
  /// That training began from; nothing when they were random.
  std::optional<CardWeights> base{};
  /// "text encoder" and its weights, of what was loaded and stayed as it was.
  std::vector<std::pair<std::string, CardWeights>> frozen{};
  /// Name and value, in order: cameras, state, action; then what it was trained with, and how good it is.
  std::vector<std::pair<std::string, std::string>> interface {
  }, recipe{};
  std::vector<std::pair<std::string, double>> metrics{};
  std::vector<CardDataset> datasets{};
  /// The environment that was played, of reinforcement learning; else empty.
  std::string env{};
  /// The whole configuration as YAML.
  std::string config{};
  /// Commands that take the folder, a line each; empty: none does.
  std::string commands{};
};

/// README.md of a model repository: YAML front matter (Hugging Face's model card metadata: library_name, pipeline_tag,
/// tags, license with name and link, base_model, datasets, model-index), then Markdown. `license` is the base weights'
/// and is left out where they state none; nothing is invented.
/// Format: https://huggingface.co/docs/hub/model-cards, read 2026-11.
std::string model_card_text(const ModelCard& card);

}  // namespace troupe::workers
