#include "env/env_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "configs/suggest.h"

namespace troupe::env {

namespace {

Error unknown(std::string_view whose, std::string_view what, const std::string& found,
              std::initializer_list<std::string_view> known) {
  if (known.size() == 0) {
    return {Errc::invalid_argument, fmt::format("{} has no {}s; remove '{}'", whose, what, found)};
  }
  const std::string near = nearest_name(found, std::vector<std::string>(known.begin(), known.end()));
  return {Errc::invalid_argument,
          fmt::format("{} has no {} '{}'{}; it has {}", whose, what, found,
                      near.empty() ? "" : fmt::format(", did you mean '{}'?", near), fmt::join(known, ", "))};
}

bool contains(std::initializer_list<std::string_view> known, std::string_view name) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

}  // namespace

Result<void> check_env_options(std::string_view id, const EnvOptions& options,
                               std::initializer_list<std::string_view> profiles,
                               std::initializer_list<std::string_view> names) {
  const std::string whose = fmt::format("env: {}", id);
  if (!options.profile.empty() && !contains(profiles, options.profile))
    return unknown(whose, "profile", options.profile, profiles);
  TROUPE_TRY(check_options(whose, options.options, names));
  if (options.max_steps < 0) {
    return invalid_argument(
        fmt::format("env.max_episode_steps is {}; wanted 0 (the environment's own) or more", options.max_steps));
  }
  return {};
}

bool changes_observation(std::string_view option) {
  return contains({"image_size", "instruction", "obs_dtype", "seg", "supersample"}, option);
}

Result<void> check_options(std::string_view whose, const NamedOptions& options,
                           std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : options) {
    if (!contains(names, name)) return unknown(whose, "option", name, names);
  }
  return {};
}

}  // namespace troupe::env
