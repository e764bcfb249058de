#include "app/env_option_words.h"

#include <fmt/format.h>

#include <charconv>

namespace troupe::app {

Result<EnvOptions> env_options_of(const std::vector<std::string>& words) {
  EnvOptions options;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{
          Errc::invalid_argument,
          fmt::format("'{}'; wanted an option of the environment as name=value, such as max_episode_steps=50", word)};
    }
    std::string name = word.substr(0, equals);
    for (const char* prefix : {"env.", "options."}) {
      if (name.starts_with(prefix)) name = name.substr(std::string(prefix).size());
    }
    const std::string value = word.substr(equals + 1);
    if (name == "profile") {
      options.profile = value;
    } else if (name != "max_episode_steps") {
      options.options[name] = value;
    } else {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.max_steps);
      if (error != std::errc() || end != value.data() + value.size() || options.max_steps < 1) {
        return Error{Errc::invalid_argument,
                     fmt::format("max_episode_steps is '{}'; wanted a number of control steps from 1", value)};
      }
    }
  }
  return options;
}

}  // namespace troupe::app
