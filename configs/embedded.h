#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::configs {

/// A configuration file inside the binary: configs/presets, configs/recipes and configs/embodiments, put there by
/// configs/embed.cmake at build time.
struct EmbeddedFile {
  /// "presets/dreamzero_tiny.yaml".
  std::string_view name;
  std::string_view text;
};

/// All of them, sorted by name.
const std::vector<EmbeddedFile>& embedded_files();

/// What one types for a recipe: "rl_cartpole_ppo", "quickstart:sft". None for other files.
std::optional<std::string> short_name(const EmbeddedFile& file);

/// The file that a name stands for: "presets/dreamzero_tiny.yaml", with or without ".yaml" and the folder, or
/// "quickstart:sft" for recipes/quickstart_sft.yaml.
std::optional<EmbeddedFile> find_embedded(const std::string& name);

}  // namespace troupe::configs
