#include "workers/report/card/card_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/enum_names.h"
#include "base/file_io.h"
#include "base/grouped_digits.h"
#include "base/hugging_face.h"
#include "base/version.h"
#include "configs/diagnostics.h"
#include "configs/dump.h"
#include "configs/loader.h"
#include "configs/scalar.h"
#include "configs/yaml_reader.h"
#include "data/lerobot/dataset_location.h"
#include "data/lerobot/lerobot_info.h"
#include "workers/checkpoint/manifest.h"
#include "workers/report/compare/measure.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;

/// owner/name of a path into a Hugging Face cache, .../models--owner--name/...; empty for others.
std::string repo_id_of(const fs::path& path) {
  for (const fs::path& part : path) {
    const std::string text = part.string();
    for (const std::string kind : {"models--", "datasets--"}) {
      const std::size_t name = text.find("--", kind.size());
      if (text.starts_with(kind) && name != std::string::npos)
        return text.substr(kind.size(), name - kind.size()) + "/" + text.substr(name + 2);
    }
  }
  return {};
}

std::string folder_name(fs::path path) {
  path = path.lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

CardDataset dataset_of(const DataSetConfig& set, const DataConfig& data) {
  const std::string repo = repo_id_of(set.path);
  CardDataset out{.name = !repo.empty() ? repo : folder_name(set.path), .is_repo_id = !repo.empty()};
  const auto& held_out = set.eval_episodes.empty() ? data.eval_episodes : set.eval_episodes;
  out.held_out_episodes = static_cast<std::int64_t>(held_out.size());
  const auto folder = find_dataset(set.path);
  if (!folder) return out;
  if (!out.is_repo_id && is_repo_id(set.path) && !fs::exists(set.path)) {  // it was named owner/name
    out.name = set.path;
    out.is_repo_id = true;
  }
  out.license = stated_license(*folder);
  if (const auto info = read_lerobot_info(*folder)) {
    out.episodes = info->total_episodes;
    out.frames = info->total_frames;
    out.frames_per_second = info->fps;
  }
  return out;
}

CardWeights weights_of(const std::string& path) {
  const std::string repo = repo_id_of(path);
  return {
      .name = repo.empty() ? folder_name(path) : repo, .is_repo_id = !repo.empty(), .license = stated_license(path)};
}

void put_weights(const ModelInitConfig& init, ModelCard& card) {
  if (init.mode != "random") card.base = weights_of(init.path);
  if (!init.text_encoder.empty()) card.frozen.emplace_back("text encoder", weights_of(init.text_encoder));
  if (!init.image_encoder.empty()) card.frozen.emplace_back("image encoder", weights_of(init.image_encoder));
  if (!init.vae.empty()) card.frozen.emplace_back("VAE", weights_of(init.vae));
}

void put_recordings(const JobConfig& job, ModelCard& card) {
  const EmbodimentConfig& robot = job.data.embodiment;
  const WindowConfig& window = job.data.window;
  const auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? std::string("the whole column") : fmt::format("{}", fmt::join(names, ", "));
  };
  card.interface = {{"robot", robot.tag},
                    {"cameras", fmt::format("{}, {}x{} pixels each (width x height)", list(robot.views),
                                            job.data.image.width, job.data.image.height)},
                    {"state", list(robot.state_keys)},
                    {"action", list(robot.action_keys)},
                    {"actions of a call", std::to_string(window.action_horizon)},
                    {"prompt", robot.prompt}};
  for (const DataSetConfig& set : job.data.sets) card.datasets.push_back(dataset_of(set, job.data));
}

void put_env(const JobConfig& job, ModelCard& card) {
  card.env = job.env.id;
  card.interface = {{"environment", job.env.id}, {"actions of a call", std::to_string(job.env.chunk)}};
  if (!job.env.profile.empty()) card.interface.emplace_back("profile", job.env.profile);
}

void put_recipe(const JobConfig& job, std::int64_t step, ModelCard& card) {
  card.recipe = {
      {"steps", std::to_string(step)},         {"global batch", std::to_string(job.training.global_batch_size)},
      {"optimizer", job.optimizer.name},       {"learning rate", format_number(job.optimizer.lr)},
      {"schedule", job.lr_scheduler.name},     {"seed", std::to_string(job.job.seed)},
      {"initial weights", job.model.init.mode}};
  if (job.job.kind == JobKind::rl) card.recipe.emplace_back("algorithm", enum_name(job.algorithm.name));
  if (trains_dreamzero(job)) card.recipe.emplace_back("trained", job.model.train_architecture);
}

Result<void> put_metrics(const std::string& run, ModelCard& card) {
  if (run.empty() || !fs::exists(RunDirectory(run).path("metrics.jsonl"))) return {};
  TROUPE_ASSIGN(const ComparedRun read, read_compared_run(RunDirectory(run)));
  for (const Measure& measure : measures_of({&read})) {
    if (measure.kind == MeasureKind::cost || !measure.values[0] || !std::isfinite(*measure.values[0])) continue;
    card.metrics.emplace_back(measure.name, *measure.values[0]);
  }
  return {};
}

/// What takes the exported folder.
std::string commands_of(const JobConfig& job, const std::string& format, const std::string& folder) {
  if (format == "gear") {
    return fmt::format("troupe serve {0} --protocol openpi\ntroupe eval {0} --open-loop --data DATASET --out eval",
                       folder);
  }
  if (trains_agent(job)) return {};
  return "from safetensors.torch import load_file\nweights = load_file(\"model.safetensors\")  # names: Troupe's "
         "docs/weights.md\n";
}

/// The folder whose README.md speaks for a file or folder: its snapshot in a Hugging Face cache, else the
/// folder itself.
fs::path described_folder(const fs::path& path) {
  for (fs::path folder = path; folder.has_relative_path(); folder = folder.parent_path()) {
    if (folder.parent_path().filename() == "snapshots") return folder;
  }
  return fs::is_directory(path) ? path : path.parent_path();
}

/// Of the front matter that a README.md begins with, read as leniently as configurations are read strictly: what is
/// wrong elsewhere in it does not matter.
std::optional<CardLicense> license_of_readme(const std::string& text) {
  const std::size_t end = text.find("\n---", 3);
  if (!text.starts_with("---") || end == std::string::npos) return std::nullopt;
  const std::size_t begin = text.find('\n');
  configs::Diagnostics ignored("README.md");
  const auto front = configs::read_yaml("README.md", text.substr(begin, end + 1 - begin), ignored);
  if (!front) return std::nullopt;
  const auto text_of = [&](const char* key) {
    const configs::ConfigEntry* entry = front->find(key);
    return entry != nullptr && entry->value.is_scalar() ? entry->value.text : std::string();
  };
  CardLicense license{.name = text_of("license_name"), .link = text_of("license_link")};
  const configs::ConfigEntry* ids = front->find("license");
  if (ids == nullptr) return std::nullopt;
  for (const configs::ConfigNode& id : ids->value.is_list() ? ids->value.items : std::vector{ids->value}) {
    if (id.is_scalar() && !id.text.empty()) license.ids.push_back(id.text);
  }
  if (license.ids.empty()) return std::nullopt;
  return license;
}

/// The whole configuration. Absolute paths say where something lay on this machine: their last part is kept.
std::string published_config(const JobConfig& job) {
  std::string out = to_yaml(job);
  std::vector<std::string> paths;
  for (const auto& leaf : configs::leaf_values(configs::job_spec(), &job)) {
    if (leaf.text.starts_with('/') || leaf.text.starts_with("\"/")) paths.push_back(leaf.text);
  }
  // longer ones first: one may be the beginning of another
  std::sort(paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::string& path : paths) {
    const std::string name = (path[0] == '"' ? "\"" : "") + path.substr(path.rfind('/') + 1);
    for (std::size_t at = out.find(path); at != std::string::npos; at = out.find(path, at + name.size()))
      out.replace(at, path.size(), name);
  }
  return out;
}

}  // namespace

std::optional<CardLicense> stated_license(const std::string& path) {
  const std::string folder = described_folder(path).string();
  if (const auto readme = read_file(folder + "/README.md")) {
    if (auto license = license_of_readme(*readme)) return license;
  }
  const auto info = read_file(folder + "/meta/info.json");
  if (!info) return std::nullopt;
  const auto json = nlohmann::json::parse(*info, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("license") || !json["license"].is_string()) return std::nullopt;
  return CardLicense{.ids = {json["license"].get<std::string>()}};
}

Result<ModelCard> card_of(const std::string& checkpoint, const std::string& run, const std::string& format,
                          const std::string& folder, const ExportSummary& exported) {
  TROUPE_ASSIGN(const Manifest manifest, read_manifest(checkpoint));
  TROUPE_ASSIGN(const JobConfig job, job_of(manifest, checkpoint));
  ModelCard card{.name = job.job.name, .summary = {}};
  const std::string size = format_grouped(exported.parameters);
  if (trains_agent(job)) {
    card.summary =
        fmt::format("A policy of {} parameters for {}, trained with Troupe {}: {}.", size, job.env.id, kTroupeVersion,
                    is_imitation(job) ? "imitation of recordings" : "reinforcement learning in simulation");
    card.tags = {"robotics", "troupe", is_imitation(job) ? "imitation-learning" : "reinforcement-learning"};
    put_env(job, card);
    if (is_imitation(job) || replays_demonstrations(job)) {
      for (const DataSetConfig& set : job.data.sets) card.datasets.push_back(dataset_of(set, job.data));
    }
  } else {
    card.summary = fmt::format(
        "A video-and-action diffusion transformer of DreamZero's shape ({}, {} layers of {} channels), {} parameters "
        "in these files, fine-tuned on recordings with Troupe {}.",
        job.model.dit.type, job.model.dit.num_layers, job.model.dit.dim, size, kTroupeVersion);
    card.tags = {"robotics", "troupe", "dreamzero", "video-action-model", "lerobot"};
    put_recordings(job, card);
  }
  put_weights(job.model.init, card);
  put_recipe(job, manifest.step, card);
  TROUPE_TRY(put_metrics(run, card));
  card.config = published_config(job);
  card.commands = commands_of(job, format, folder_name(folder));
  return card;
}

}  // namespace troupe::workers
