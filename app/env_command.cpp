// `troupe env list` and `troupe env describe ID`: the environments there are, and what one observes and takes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/env_option_words.h"
#include "app/exit_code.h"
#include "base/durable_file.h"
#include "env/env_spec_json.h"
#include "env/registry/registry.h"

namespace troupe::app {

namespace {

/// Every id with its description in the table. Members of a family share the family's description; a family whose
/// members are not known is listed by its pattern, such as "gymnasium:*".
std::vector<std::pair<std::string, std::string>> described_ids() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const EnvRow& row : env_registry()) {
    if (row.is_family() && row.members == nullptr) all.emplace_back(row.id, row.what);
    for (std::string& id : env_ids({&row, 1})) all.emplace_back(std::move(id), row.what);
  }
  return all;
}

template <class T>
std::string range_text(T low, T high) {
  if (std::isinf(low) && std::isinf(high)) return "any";
  return fmt::format("{:g} to {:g}", low, high);
}

std::string unit_text(const std::string& unit) { return unit.empty() ? "" : fmt::format(" ({})", unit); }

/// One line, or one a dimension where their bounds differ.
std::string action_text(const ActionSpace& action) {
  const std::string unit = unit_text(action.unit);
  if (action.is_discrete()) return fmt::format("one of {} choices{}\n", action.choices, unit);
  std::string text = fmt::format("{} number{}", action.size, action.size == 1 ? "" : "s");
  const auto same = [](const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(), [&](float value) { return value == values.front(); });
  };
  if (same(action.low) && same(action.high))
    return text + fmt::format(", {}{}\n", range_text(action.low.front(), action.high.front()), unit);
  text += unit + "\n";
  for (std::size_t i = 0; i < action.low.size(); ++i)
    text += fmt::format("  [{}]  {}\n", i, range_text(action.low[i], action.high[i]));
  return text;
}

std::string or_none(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string spec_text(const EnvSpec& spec) {
  std::string text = fmt::format("{}\nobservation\n", spec.id);
  std::size_t widest = 0;
  for (const EnvField& field : spec.observation) widest = std::max(widest, field.name.size());
  for (const EnvField& field : spec.observation) {
    text += fmt::format("  {:<{}}  {} [{}], {}{}", field.name, widest, enum_name(field.dtype),
                        fmt::join(field.shape, ", "), range_text(field.low, field.high), unit_text(field.unit));
    if (field.reader != EnvReader::policy) text += fmt::format(", {}", enum_name(field.reader));
    text += field.normalise ? "\n" : ", not normalised\n";
  }
  text += "action    " + action_text(spec.action);
  if (spec.agents > 1) text += fmt::format("agents    {}, each with these\n", spec.agents);
  text += fmt::format("steps     {}{}\n", spec.max_steps > 0 ? fmt::format("{} at most", spec.max_steps) : "no limit",
                      spec.control_hz > 0 ? fmt::format(", {:g} a second", spec.control_hz) : "");
  text += fmt::format("success   {}\n", spec.has_success ? "is told" : "is not told");
  if (!std::isnan(spec.reward_threshold)) text += fmt::format("solved    mean return {:g}\n", spec.reward_threshold);
  text += fmt::format("cameras   {}\n", or_none(spec.cameras));
  text += fmt::format("info      {}\n", or_none(spec.info));
  return text + fmt::format("digest    {}\n", env_spec_digest(spec));
}

Result<void> describe(const EnvDescribeOptions& options) {
  TROUPE_ASSIGN(const EnvOptions words, env_options_of(options.words));
  TROUPE_ASSIGN(const auto factory, make_env_factory(options.id, words));
  const EnvSpec& spec = factory->spec();
  if (!options.out.empty()) TROUPE_TRY(write_file_durably(options.out, env_spec_json(spec)));
  fmt::print("{}", options.json ? env_spec_json(spec) : spec_text(spec));
  if (!options.out.empty() && !options.json) fmt::print("written   {}\n", options.out);
  return {};
}

}  // namespace

int env_list_command(const EnvListOptions& options) {
  const auto all = described_ids();
  if (options.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& [id, what] : all) list.push_back({{"id", id}, {"what", what}});
    fmt::print("{}\n", list.dump(2));
    return kOk;
  }
  std::size_t widest = 0;
  for (const auto& [id, what] : all) widest = std::max(widest, id.size());
  for (const auto& [id, what] : all) fmt::print("{:<{}}  {}\n", id, widest, what);
  return kOk;
}

int env_describe_command(const EnvDescribeOptions& options) {
  const auto described = describe(options);
  return described ? static_cast<int>(kOk) : complain(described.error());
}

}  // namespace troupe::app
