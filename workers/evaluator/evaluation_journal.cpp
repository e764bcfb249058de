#include "workers/evaluator/evaluation_journal.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/log.h"
#include "configs/number_fields.h"

namespace troupe::workers {

namespace {

using nlohmann::json;

constexpr const char* kForgone = "if the evaluator's process ends, the evaluation is played again from its start";

/// A return may be no number, which JSON has as null.
double number_of(const json& line, const char* key) {
  const json& value = line.at(key);
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

EvaluationEpisode episode_of(const json& line) {
  EvaluationEpisode episode{.seed = whole_field(line.at("end"))};
  if (line.contains("lost")) {
    episode.lost = line.at("lost").get<std::string>();
    return episode;
  }
  episode.total_return = number_of(line, "return");
  episode.length = whole_field(line.at("length"));
  episode.success_once = line.at("success_once").get<bool>();
  episode.success_at_end = line.at("success_at_end").get<bool>();
  return episode;
}

/// What the lines of a journal say.
struct Told {
  std::uint64_t fence = 0;
  std::int64_t version = -1;
  EvaluationUnderWay under_way;
  bool is_reported = false;
};

Told read_lines(const std::string& text) {
  Told told;
  // Whether an episode that has begun and not ended was repeated.
  std::map<std::int64_t, bool> begun;
  std::istringstream lines(text);
  for (std::string each; std::getline(lines, each);) {
    const json line = json::parse(each);
    if (line.contains("evaluation")) {
      told.fence = static_cast<std::uint64_t>(whole_field(line.at("fence")));
      told.version = whole_field(line.at("evaluation"));
      told.under_way.begun_at = line.at("wall").get<double>();
    } else if (line.contains("start")) {
      ++told.under_way.starts;
    } else if (line.contains("begin")) {
      begun[whole_field(line.at("begin"))] = line.at("repeats").get<bool>();
    } else if (line.contains("end")) {
      told.under_way.ended.push_back(episode_of(line));
      begun.erase(told.under_way.ended.back().seed);
    } else if (line.contains("reported")) {
      told.is_reported = true;
    }
  }
  for (const auto& [seed, repeats] : begun) {
    if (repeats)
      told.under_way.ended.push_back({.seed = seed, .lost = "the evaluator's process ended, and again in its repeat"});
    else
      told.under_way.suspects.push_back(seed);
  }
  return told;
}

}  // namespace

EvaluationJournal::EvaluationJournal(std::string folder, const PolicyNet& net)
    : folder_(std::move(folder)), stream_(net) {}

Result<std::optional<EvaluationUnderWay>> EvaluationJournal::recover() {
  if (!std::filesystem::exists(journal_path())) return std::optional<EvaluationUnderWay>{};
  TROUPE_TRY(open_journal());  // cuts off a line that a crash left half written
  TROUPE_ASSIGN(const std::string text, read_file(journal_path()));
  Told told;
  try {
    told = read_lines(text);
  } catch (const std::exception& e) {
    return Error{Errc::data_loss, fmt::format("{}: {}", journal_path(), e.what())};
  }
  if (told.version < 0) return std::optional<EvaluationUnderWay>{};
  if (told.is_reported) {
    reported_ = {told.fence, told.version};
    return std::optional<EvaluationUnderWay>{};
  }
  TROUPE_ASSIGN(told.under_way.weights, read_weights(told.fence, told.version));
  note(json{{"start", true}}.dump());
  ++told.under_way.starts;
  return std::optional(std::move(told.under_way));
}

void EvaluationJournal::begin(const PublishedWeights& weights, double wall) {
  file_.reset();
  const auto begun = [&]() -> Result<void> {
    TROUPE_TRY(write_weights(weights));
    std::error_code absent;
    std::filesystem::remove(journal_path(), absent);
    return open_journal();
  }();
  if (!begun) return log::warn("{}: {}", kForgone, begun.error().message());
  note(json{{"evaluation", weights.version}, {"fence", weights.fence}, {"wall", wall}}.dump());
}

void EvaluationJournal::episode_begins(std::int64_t seed, bool repeats) {
  note(json{{"begin", seed}, {"repeats", repeats}}.dump());
}

void EvaluationJournal::episode_ended(const EvaluationEpisode& episode) {
  json line{{"end", episode.seed}};
  if (!episode.lost.empty()) {
    line["lost"] = episode.lost;
  } else {
    line.update({{"return", episode.total_return},
                 {"length", episode.length},
                 {"success_once", episode.success_once},
                 {"success_at_end", episode.success_at_end}});
  }
  note(line.dump(-1, ' ', false, json::error_handler_t::replace));
}

void EvaluationJournal::close() {
  note(json{{"reported", true}}.dump());
  std::error_code absent;
  std::filesystem::remove(weights_path(), absent);
}

Result<void> EvaluationJournal::open_journal() {
  TROUPE_ASSIGN(file_, AppendFile::open(journal_path(), AppendFile::Open::resume));
  return {};
}

void EvaluationJournal::note(const std::string& line) {
  if (!file_) return;
  auto written = file_->append(line + "\n");
  if (written) written = file_->flush();
  if (written) return;
  log::warn("{}: {}", kForgone, written.error().message());
  file_->abandon();
  file_.reset();
  // Half a journal would take episodes that have ended for suspects.
  std::error_code absent;
  std::filesystem::remove(journal_path(), absent);
}

Result<void> EvaluationJournal::write_weights(const PublishedWeights& weights) const {
  const std::string state = encode(weights.normaliser);
  json head{{"fence", weights.fence}, {"version", weights.version}, {"elements", json::array()}};
  std::size_t bytes = state.size();
  for (const at::Tensor& flat : weights.flats) {
    head["elements"].push_back(flat.numel());
    bytes += flat.nbytes();
  }
  std::string text = head.dump() + "\n";
  text.reserve(text.size() + bytes);  // weights may be large: there is one copy of them
  for (const at::Tensor& flat : weights.flats)
    text.append(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
  return write_file_durably(weights_path(), text += state, 0600);
}

Result<PublishedWeightsPtr> EvaluationJournal::read_weights(std::uint64_t fence, std::int64_t version) const {
  TROUPE_ASSIGN(const std::string text, read_file(weights_path()));
  const Error damaged(Errc::data_loss, fmt::format("{} is not that of version {}", weights_path(), version));
  const auto& layouts = stream_.layouts();
  const std::size_t line = std::min(text.find('\n'), text.size());
  std::vector<std::int64_t> sizes;
  bool fits = false;
  try {
    const json head = json::parse(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(line));
    sizes = whole_list(head.at("elements"));
    fits = static_cast<std::uint64_t>(whole_field(head.at("fence"))) == fence &&
           whole_field(head.at("version")) == version && sizes.size() == layouts.size();
  } catch (const std::exception& e) {
    return Error{Errc::data_loss, fmt::format("{}: {}", weights_path(), e.what())};
  }
  if (!fits) return damaged;
  std::string_view rest = std::string_view(text).substr(line + 1);
  const std::size_t width = c10::elementSize(stream_.dtype());
  auto weights = std::make_shared<PublishedWeights>();
  weights->fence = fence;
  weights->version = version;
  for (std::size_t u = 0; u < layouts.size(); ++u) {
    const std::int64_t elements = sizes[u];
    if (elements < layouts[u].numel || static_cast<std::size_t>(elements) > rest.size() / width) return damaged;
    const auto bytes = static_cast<std::size_t>(elements) * width;
    at::Tensor flat = at::empty({elements}, stream_.dtype());
    std::memcpy(flat.data_ptr(), rest.data(), bytes);
    rest.remove_prefix(bytes);
    weights->views[stream_.names()[u]] = views_of(layouts[u], flat, /*leaves=*/false);
    weights->flats.push_back(std::move(flat));
  }
  TROUPE_ASSIGN(weights->normaliser, decode_normaliser(rest));
  return PublishedWeightsPtr(std::move(weights));
}

}  // namespace troupe::workers
