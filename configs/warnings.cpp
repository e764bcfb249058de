#include "configs/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "configs/scalar.h"

namespace troupe::configs {

namespace {

// Rates above are none of the usual ones: 1e-5 to 1e-2.
constexpr double kMostLr = 0.1;

void doubt_adapters(const ModelConfig& model, std::vector<ConfigWarning>& warnings) {
  if (model.train_architecture != "lora" || model.init.mode != "random") return;
  warnings.push_back({"model.train_architecture",
                      "model.train_architecture: lora trains adapters on weights that stay frozen, and "
                      "model.init.mode random leaves those weights at random values",
                      "model.train_architecture=full, or model.init.mode=dreamzero (or components, checkpoint) with "
                      "model.init.path"});
}

/// One name for a folder however it is written; a name in a cache, which is no path here, stays as it is.
std::string folder_of(const std::string& path) {
  std::error_code code;
  const std::filesystem::path canonical =
      std::filesystem::weakly_canonical(std::filesystem::current_path(code) / path, code);
  if (code) return path;
  return (canonical.has_filename() ? canonical : canonical.parent_path()).string();
}

/// Whether two lists of episodes have one in common; an empty list is all of them.
bool share_episodes(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return a.empty() || b.empty() || std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

void doubt_sets(const std::vector<DataSetConfig>& sets, std::vector<ConfigWarning>& warnings) {
  for (std::size_t later = 1; later < sets.size(); ++later) {
    for (std::size_t first = 0; first < later; ++first) {
      if (folder_of(sets[first].path) != folder_of(sets[later].path)) continue;
      if (!share_episodes(sets[first].episodes, sets[later].episodes)) continue;
      const std::string key = fmt::format("data.sets[{}].path", later);
      warnings.push_back({key,
                          fmt::format("{}: '{}' is data.sets[{}] again, with episodes of it: they are drawn for both, "
                                      "and what one of the two holds out the other may train on",
                                      key, sets[later].path, first),
                          fmt::format("name it once; data.sets[{}].weight draws it more often", first)});
      break;
    }
  }
}

void doubt_rate(const JobConfig& job, std::vector<ConfigWarning>& warnings) {
  const double lr = job.optimizer.lr;
  if (lr == 0) {
    warnings.push_back({"optimizer.lr", "optimizer.lr: 0 trains nothing; the weights stay as they are", ""});
    return;
  }
  if (lr > kMostLr) {
    warnings.push_back(
        {"optimizer.lr",
         fmt::format("optimizer.lr: {} is so large that training nearly always diverges", format_number(lr)),
         fmt::format("optimizer.lr={}", format_number(lower_rate(lr)))});
  }
  if (trains_agent(job) || job.model.init.mode != "random" || lr >= kLeastLrFromRandom) return;
  warnings.push_back({"optimizer.lr",
                      fmt::format("optimizer.lr: {} is a rate for fine-tuning; with model.init.mode random the model "
                                  "starts from random values and hardly learns below {}",
                                  format_number(lr), format_number(kLeastLrFromRandom)),
                      fmt::format("optimizer.lr={}, as in presets/dreamzero_tiny.yaml, or start from weights with "
                                  "model.init",
                                  format_number(kLrFromRandom))});
}

/// A step of the second moment is (1 - b2) of the difference; where that is less than half a bf16 unit in the last
/// place, 2^-8 of the value at most, rounding to nearest takes it back.
void doubt_moments(const OptimizerConfig& optimizer, std::vector<ConfigWarning>& warnings) {
  constexpr double kLeastShare = 1.0 / 256;
  if (optimizer.moments != "bf16" || 1.0 - optimizer.betas.at(1) >= kLeastShare) return;
  warnings.push_back(
      {"optimizer.moments",
       fmt::format("optimizer.moments: with betas[1] {} a second moment kept in bf16 hardly falls, since "
                   "a step of {} of its value is rounded away; effective learning rates stay low after a "
                   "large gradient",
                   format_number(optimizer.betas.at(1)), format_number(1.0 - optimizer.betas.at(1))),
       "optimizer.betas[1]=0.99"});
}

}  // namespace

double lower_rate(double rate) { return std::min(rate / 10, kLrFromRandom); }

std::vector<ConfigWarning> find_warnings(const JobConfig& job) {
  std::vector<ConfigWarning> warnings;
  if (!trains_agent(job)) doubt_adapters(job.model, warnings);
  if (job.job.kind == JobKind::sft) doubt_sets(job.data.sets, warnings);
  doubt_rate(job, warnings);
  doubt_moments(job.optimizer, warnings);
  return warnings;
}

}  // namespace troupe::configs
