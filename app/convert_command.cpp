// `troupe convert weights`: another container, other names, another dtype.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <optional>

#include "app/command_progress.h"
#include "app/commands.h"
#include "app/doctor_model.h"
#include "app/exit_code.h"
#include "model/io/tensor_source.h"
#include "model/wan/weights/convert.h"
#include "model/wan/weights/inspect_weights.h"

namespace troupe::app {
namespace {

Result<std::optional<Component>> component_option(const std::string& name) {
  if (name == "auto" || name.empty()) return std::optional<Component>();
  for (const auto component : {Component::dit, Component::text_encoder, Component::image_encoder, Component::vae}) {
    if (name == component_name(component)) return std::optional(component);
  }
  return Error{Errc::invalid_argument,
               fmt::format("--component {}; wanted auto, dit, text_encoder, image_encoder or vae", name)};
}

Result<WeightLayout> layout_option(const std::string& name) {
  if (name == "troupe") return WeightLayout::troupe;
  if (name == "wan") return WeightLayout::wan;
  if (name == "dreamzero") return WeightLayout::dreamzero;
  return Error{Errc::invalid_argument, fmt::format("--to {}; wanted troupe, wan or dreamzero", name)};
}

Result<WeightDtype> dtype_option(const std::string& name) {
  if (name == "keep") return WeightDtype::keep;
  if (name == "fp32") return WeightDtype::fp32;
  if (name == "bf16") return WeightDtype::bf16;
  return Error{Errc::invalid_argument, fmt::format("--dtype {}; wanted keep, fp32 or bf16", name)};
}

Result<ConvertRequest> request_of(const ConvertOptions& options) {
  ConvertRequest request{.out = options.out,
                         .merge_lora = options.merge_lora,
                         .lora_scale = options.lora_scale,
                         .shard_bytes = options.shard_bytes};
  TROUPE_ASSIGN(request.layout, layout_option(options.to));
  TROUPE_ASSIGN(request.dtype, dtype_option(options.dtype));
  if (options.out.empty() && !options.check)
    return Error{Errc::invalid_argument, "--out is needed, or --check to list only"};
  return request;
}

Result<int> convert(const ConvertOptions& options) {
  TROUPE_ASSIGN(const ConvertRequest request, request_of(options));
  TROUPE_ASSIGN(const auto component, component_option(options.component));
  std::optional<ModelConfig> model;
  if (!options.model.empty()) {
    TROUPE_ASSIGN(model, named_model(options.model));
  }
  TROUPE_ASSIGN(const auto source, TensorSource::open(options.source));
  TROUPE_ASSIGN(const WeightsReport report, inspect_weights(*source, component, model));
  fmt::print("{}\n{}", options.source, report_text(report));
  if (options.check) {
    fmt::print("{}\n", report.sound() ? "OK" : "PROBLEMS FOUND");
    return static_cast<int>(report.sound() ? kOk : kDataProblem);
  }
  std::fflush(stdout);
  const auto watched = [&] {
    CommandProgress line("convert");
    return convert_weights(*source, report, request, line.of_units("tensors"));
  };
  TROUPE_ASSIGN(const auto files, watched());
  for (const auto& file : files) {
    fmt::print("  {}/{}  {} bytes{}\n", options.out, file.path, file.bytes,
               file.reused ? "  (was finished already)" : "");
  }
  return static_cast<int>(kOk);
}

}  // namespace

int convert_command(const ConvertOptions& options) {
  const auto result = convert(options);
  return result ? *result : complain_of_data(result.error());
}

}  // namespace troupe::app
