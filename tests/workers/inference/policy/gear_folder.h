#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/scratch_folder.h"
#include "workers/inference/policy/gear_experiment.h"
#include "workers/inference/policy/read_spec.h"

namespace troupe::workers {

/// A DreamZero folder of its own, removed at the end.
class GearFolder {
 public:
  const std::string& root() const { return root_; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name, std::ios::binary) << text;
  }
  void remove(const std::string& name) const { std::filesystem::remove(root_ + "/" + name); }

  /// config.json, conf.yaml and metadata.json of a specification.
  void write_spec(const PolicySpec& spec) const {
    write("config.json", gear_config_json(to_gear_config(spec)));
    write("experiment_cfg/conf.yaml", gear_experiment_yaml(spec));
    write("experiment_cfg/metadata.json", metadata_of(spec).dump());
  }
  static nlohmann::ordered_json metadata_of(const PolicySpec& spec) {
    nlohmann::ordered_json statistics = {{"state", nlohmann::ordered_json::object()},
                                         {"action", nlohmann::ordered_json::object()}};
    nlohmann::ordered_json video = nlohmann::ordered_json::object();
    for (const auto& [section, keys] : {std::pair{"state", &spec.state}, std::pair{"action", &spec.action}}) {
      for (const PolicyKey& key : *keys) {
        const FeatureStatistics& s = key.statistics.front();
        statistics[section][key.name] = {{"min", s.min}, {"max", s.max}, {"mean", s.mean},
                                         {"std", s.std}, {"q01", s.q01}, {"q99", s.q99}};
      }
    }
    for (const std::string& view : spec.embodiment.views) video[view] = {{"channels", 3}};
    return {{spec.embodiment.tag, {{"statistics", statistics}, {"modalities", {{"video", video}}}}}};
  }

 private:
  const ScratchFolder scratch_;
  const std::string root_ = scratch_.path();
};

}  // namespace troupe::workers
