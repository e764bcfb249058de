// `troupe doctor --model`: parameter counts and key lists from shapes and headers alone.
#include "app/doctor_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/exit_code.h"
#include "base/hugging_face.h"
#include "configs/loader.h"
#include "model/io/tensor_source.h"
#include "model/wan/weights/checkpoint_config.h"
#include "model/wan/weights/inspect_weights.h"
#include "model/wan/weights/model_summary.h"
#include "placement/format.h"
#include "workers/inference/agent/agent.h"

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

constexpr std::array<Component, 4> kComponents = {Component::dit, Component::text_encoder, Component::image_encoder,
                                                  Component::vae};

/// fmt::print throws when a reader such as `head` has gone.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stdout);
}

void print_row(const std::string& what, std::int64_t count, bool markdown) {
  if (markdown) {
    say("| {} | {} |\n", what, format_grouped(count));
  } else {
    say("  {:<62} {:>15}\n", what, format_grouped(count));
  }
}

void print_counts(const ModelSummary& s, bool markdown) {
  if (markdown) say("| component | parameters |\n|---|---|\n");
  const auto part = [&](const std::string& name) {
    const auto found = s.dit_parts.find(name);
    return found == s.dit_parts.end() ? 0 : found->second;
  };
  const std::vector<std::pair<std::string, std::int64_t>> rows = {
      {"patch_embedding", part("patch_embedding")},
      {"text_embedding", part("text_embedding")},
      {"time_embedding", part("time_embedding")},
      {"time_projection", part("time_projection")},
      {"img_emb", part("img_emb")},
      {"one block", part("block")},
      {"- self_attn", part("block.self_attn")},
      {"- cross_attn", part("block.cross_attn")},
      {"  of which k_img, v_img, norm_k_img", part("block.image_path")},
      {"- ffn", part("block.ffn")},
      {"- norm3 + modulation", part("block.other")},
      {"all blocks", s.blocks},
      {"head", part("head")},
      {"state_encoder", part("state_encoder")},
      {"action_encoder", part("action_encoder")},
      {"action_decoder", part("action_decoder")},
      {"DiT total", s.dit},
      {"present in the Wan checkpoint", s.in_wan},
      {"newly initialised: CLIP path", s.new_image_path},
      {"newly initialised: action and state modules", s.new_action_state},
      {"frozen text encoder", s.text_encoder},
      {"- token embedding", s.token_embedding},
      {"frozen image encoder, visual tower", s.image_encoder},
      {"- used (without the last block, norm and projection)", s.image_encoder_used},
      {"frozen VAE, encoder", s.vae_encoder},
      {"frozen VAE, decoder", s.vae_decoder},
      {"frozen VAE, total with its 1x1x1 convolutions", s.vae},
  };
  for (const auto& [what, count] : rows) print_row(what, count, markdown);
}

/// "blocks.12.ffn.0.bias" -> {"blocks.N.ffn.0.bias", 12}; other names have no index.
std::pair<std::string, std::int64_t> without_layer(const std::string& name) {
  for (const std::string prefix : {"blocks.", "visual.transformer."}) {
    if (!name.starts_with(prefix)) continue;
    const auto end = name.find('.', prefix.size());
    if (end == std::string::npos) continue;
    const auto number = name.substr(prefix.size(), end - prefix.size());
    const bool digits =
        !number.empty() && std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c); });
    if (digits && number.size() < 6) return {prefix + "N" + name.substr(end), std::stoll(number)};
  }
  return {name, -1};
}

/// Names and shapes, layers of equal shape in one line.
void print_keys(const std::vector<ParamSpec>& specs) {
  std::vector<std::string> order;
  std::map<std::string, std::int64_t> layers;
  for (const auto& spec : specs) {
    const auto [name, index] = without_layer(spec.name);
    const auto line = fmt::format("{} {}", name, shape_text(spec.shape));
    if (layers.emplace(line, -1).second) order.push_back(line);
    layers[line] = std::max(layers[line], index);
  }
  for (const auto& line : order) {
    const auto last = layers[line];
    say("    {}{}\n", line, last < 0 ? "" : fmt::format(", N = 0..{}", last));
  }
}

int print_model(const ModelConfig& config, bool markdown) {
  const ModelSummary summary = summarise_model(config);
  print_counts(summary, markdown);
  for (const auto component : kComponents) {
    const auto specs = component_params(config, component);
    say("{}: {} tensors, {} parameters, stored as {}*\n", component_name(component), specs.size(),
        format_grouped(count_elements(specs)), dreamzero_name(component, ""));
    print_keys(specs);
  }
  return kOk;
}

/// The networks of a job that trains a policy for env.id, unit by unit.
int print_policy(const JobConfig& job, bool markdown) {
  const auto agent = make_agent(job);
  if (!agent) return complain(agent.error(), kUsage);
  if (markdown) say("| unit | parameters |\n|---|---|\n");
  std::int64_t total = 0;
  std::vector<ParamSpec> all;
  for (const UnitSpec& unit : state_units(agent->policy->units())) {
    if (unit.params.empty()) continue;
    const std::int64_t count = count_elements(unit.params);
    print_row(unit.average_of.empty() ? unit.name : fmt::format("{}, moving average of {}", unit.name, unit.average_of),
              count, markdown);
    total += count;
    all.insert(all.end(), unit.params.begin(), unit.params.end());
  }
  print_row("total", total, markdown);
  say("{}: {} tensors\n", fingerprint_of(agent->spec()), all.size());
  print_keys(all);
  return kOk;
}

/// The checkpoints that a path holds: itself, or its folders named for components.
std::vector<std::pair<std::string, std::optional<Component>>> checkpoints_at(const std::string& path) {
  std::vector<std::pair<std::string, std::optional<Component>>> out;
  std::error_code error;
  for (const auto component : kComponents) {
    const auto folder = fs::path(path) / component_name(component);
    if (fs::is_directory(folder, error)) out.emplace_back(folder.string(), component);
  }
  if (out.empty()) out.emplace_back(path, std::nullopt);
  return out;
}

int print_checkpoint(const std::string& path) {
  bool sound = true;
  for (const auto& [part, component] : checkpoints_at(path)) {
    const auto source = TensorSource::open(part);
    if (!source) return complain(source.error(), kUnhealthy);
    const auto report = inspect_weights(**source, component, std::nullopt);
    if (!report) return complain(report.error(), kUnhealthy);
    say("{}\n{}", part, report_text(*report));
    sound = sound && report->sound();
    const auto config = check_checkpoint_config(path, *report);
    if (!config) return complain(config.error(), kUnhealthy);
    for (const auto& line : config->facts) say("  config.json: {}\n", line);
    for (const auto& line : config->contradictions) say("  config.json contradicts the tensors: {}\n", line);
    sound = sound && config->contradictions.empty();
  }
  say("{}\n", sound ? "OK" : "PROBLEMS FOUND");
  return sound ? kOk : kUnhealthy;
}

bool is_checkpoint(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) || path.ends_with(".safetensors") || path.ends_with(".index.json") ||
         is_pickle_path(path);
}

/// The job that a name stands for, as named_model() says of its model.
Result<JobConfig> named_job(const std::string& name) {
  const bool wan22 = name == "5b", wan21 = name == "14b";
  const LoadOutcome loaded = load_job(wan22   ? "presets/dreamzero_wan22_5b.yaml"
                                      : wan21 ? "presets/dreamzero_wan21_14b.yaml"
                                              : name,
                                      {});
  if (!loaded.config) {
    const std::string hint = name.ends_with(".yaml") || name.ends_with(".yml") ? "" : download_hint(name);
    return Error{Errc::invalid_argument, fmt::format("'{}' is neither 5b, 14b, a job nor a checkpoint: {}{}{}", name,
                                                     fmt::join(loaded.errors, "\n"), hint.empty() ? "" : "\n", hint)};
  }
  JobConfig job = loaded.config->job;
  // the presets may plan with the cosine codec; their checkpoints have Wan's VAE
  if (wan22 || wan21) job.model = with_wan_codec(job.model, wan22 ? "wan22" : "wan21");
  return job;
}

}  // namespace

Result<ModelConfig> named_model(const std::string& name) {
  TROUPE_ASSIGN(JobConfig job, named_job(name));
  return std::move(job.model);
}

int doctor_model(const std::string& model, bool markdown) {
  if (is_checkpoint(model)) {
    std::error_code error;
    if (fs::exists(model, error)) return print_checkpoint(model);
    return complain({Errc::not_found, model + " does not exist"}, kUsage);
  }
  const auto job = named_job(model);
  if (!job) return complain(job.error(), kUsage);
  return trains_dreamzero(*job) ? print_model(job->model, markdown) : print_policy(*job, markdown);
}

}  // namespace troupe::app
