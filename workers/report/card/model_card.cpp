#include "workers/report/card/model_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "workers/report/text_layout.h"

namespace troupe::workers {

namespace {

using Json = nlohmann::ordered_json;

/// JSON is YAML, and needs no rules for what is quoted.
std::string yaml_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Front matter of a licence. A link into the repository that states it says which.
std::string license_fields(const CardWeights& base) {
  const CardLicense& license = *base.license;
  std::string out =
      fmt::format("license: {}\n", yaml_of(license.ids.size() == 1 ? Json(license.ids[0]) : Json(license.ids)));
  if (!license.name.empty()) out += fmt::format("license_name: {}\n", yaml_of(license.name));
  const bool is_address = license.link.find("://") != std::string::npos;
  if (is_address) out += fmt::format("license_link: {}\n", yaml_of(license.link));
  if (!is_address && !license.link.empty() && base.is_repo_id) {
    out += fmt::format("license_link: {}\n",
                       yaml_of(fmt::format("https://huggingface.co/{}/blob/main/{}", base.name, license.link)));
  }
  return out;
}

std::string license_text(const std::optional<CardLicense>& license) {
  if (!license) return "not stated";
  std::string out = fmt::format("{}", fmt::join(license->ids, ", "));
  if (!license->name.empty()) out += " " + license->name;
  if (!license->link.empty()) out += fmt::format(" ({})", license->link);
  return out;
}

Json model_index(const ModelCard& card) {
  Json metrics = Json::array();
  for (const auto& [name, value] : card.metrics) metrics.push_back({{"type", name}, {"value", value}, {"name", name}});
  const std::string data = !card.env.empty() ? card.env : card.datasets.empty() ? card.name : card.datasets[0].name;
  return Json::array({{{"name", card.name},
                       {"results", Json::array({{{"task", {{"type", "robotics"}}},
                                                 {"dataset", {{"type", data}, {"name", data}}},
                                                 {"metrics", metrics}}})}}});
}

std::string front_matter(const ModelCard& card) {
  Json repositories = Json::array();
  for (const CardDataset& dataset : card.datasets) {
    if (dataset.is_repo_id) repositories.push_back(dataset.name);
  }
  std::string out = "---\n";
  if (card.base && card.base->license) out += license_fields(*card.base);
  out += fmt::format("library_name: troupe\npipeline_tag: robotics\ntags: {}\n", yaml_of(card.tags));
  if (card.base && card.base->is_repo_id) out += fmt::format("base_model: {}\n", yaml_of(card.base->name));
  if (!repositories.empty()) out += fmt::format("datasets: {}\n", yaml_of(repositories));
  if (!card.metrics.empty()) out += fmt::format("model-index: {}\n", yaml_of(model_index(card)));
  return out + "---\n";
}

/// On one line, and no end of a cell.
std::string in_cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string table(const std::string& title, const std::vector<std::pair<std::string, std::string>>& rows) {
  if (rows.empty()) return {};
  std::string out = fmt::format("\n## {}\n\n| | |\n|---|---|\n", title);
  for (const auto& [name, value] : rows) out += fmt::format("| {} | {} |\n", in_cell(name), in_cell(value));
  return out;
}

std::string count_text(std::int64_t count) { return count < 0 ? "not known" : std::to_string(count); }

std::string datasets(const ModelCard& card) {
  if (card.datasets.empty()) return {};
  std::string out =
      "\n## Data\n\n| dataset | episodes | frames | frames/s | held out | licence |\n|---|---|---|---|---|---|\n";
  for (const CardDataset& d : card.datasets) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", in_cell(d.name), count_text(d.episodes),
                       count_text(d.frames), d.frames_per_second > 0 ? number_text(d.frames_per_second) : "not known",
                       d.held_out_episodes, in_cell(license_text(d.license)));
  }
  return out;
}

std::string metrics(const ModelCard& card) {
  if (card.metrics.empty()) return "\n## Metrics\n\nThe run recorded none.\n";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& [name, value] : card.metrics) rows.emplace_back(name, number_text(value));
  return table("Metrics", rows);
}

std::string licence(const ModelCard& card) {
  std::string out = "\n## Licence\n\n";
  const auto line = [](const std::string& what, const CardWeights& weights) {
    return fmt::format("- {}: {}, licence {}\n", what, in_cell(weights.name), in_cell(license_text(weights.license)));
  };
  out += card.base ? line("weights that training began from", *card.base) : "- training began from random values\n";
  for (const auto& [part, weights] : card.frozen) out += line(part + ", which was not trained", weights);
  if (!card.datasets.empty())
    out += "\nLicences of the data stand above. What binds the result is for its publisher to say.\n";
  return out;
}

/// A fence longer than any in the text.
std::string fenced(const std::string& language, const std::string& text) {
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  return fmt::format("{}{}\n{}{}{}\n", fence, language, text, text.ends_with('\n') ? "" : "\n", fence);
}

}  // namespace

std::string model_card_text(const ModelCard& card) {
  std::string out = front_matter(card) + fmt::format("\n# {}\n\n{}\n", in_cell(card.name), card.summary);
  if (!card.commands.empty()) out += "\n## Use\n\n" + fenced("", card.commands);
  out += table("Interface", card.interface) + datasets(card) + table("Recipe", card.recipe) + metrics(card) +
         licence(card);
  return out + "\n## Configuration\n\n" + fenced("yaml", card.config);
}

}  // namespace troupe::workers
