#include "workers/checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/file_io.h"
#include "base/hash.h"
#include "configs/loader.h"
#include "configs/number_fields.h"
#include "workers/checkpoint/manifest_file_json.h"

namespace troupe::workers {

namespace {

using nlohmann::json;

constexpr std::int64_t kMaxManifest = std::int64_t{256} << 20;

json unit_to_json(const ManifestUnit& unit) {
  json params = json::array();
  for (const ManifestParam& p : unit.params) {
    params.push_back({{"name", p.name}, {"numel", p.numel}, {"offset", p.offset}, {"shape", p.shape}});
  }
  json j = {{"layout_class", unit.layout_class},
            {"layout_hash", to_hex(unit.layout_hash)},
            {"name", unit.name},
            {"numel", unit.numel},
            {"params", params}};
  if (!unit.trainable) j["trainable"] = false;
  if (unit.in_base) j["in_base"] = true;
  if (unit.has_average) j["average"] = true;
  if (unit.bf16_moments) j["moments"] = "bf16";
  return j;
}

ManifestParam param_from_json(const json& j, const std::string& unit, std::int64_t covered) {
  ManifestParam p{.name = j.at("name"),
                  .shape = whole_list(j.at("shape")),
                  .offset = whole_field(j.at("offset")),
                  .numel = whole_field(j.at("numel"))};
  std::int64_t numel = 1;
  for (const std::int64_t d : p.shape) {
    if (d < 0 || __builtin_mul_overflow(numel, d, &numel))
      throw std::runtime_error(fmt::format("parameter '{}': bad shape", p.name));
  }
  if (numel != p.numel)
    throw std::runtime_error(fmt::format("parameter '{}': {} elements; its shape has {}", p.name, p.numel, numel));
  if (p.offset < covered)
    throw std::runtime_error(fmt::format("unit '{}': parameter '{}' overlaps the one before it", unit, p.name));
  return p;
}

bool moments_from_json(const json& j) {
  const auto dtype = j.value("moments", std::string("fp32"));
  if (dtype != "fp32" && dtype != "bf16") throw std::runtime_error(fmt::format("moments '{}'; fp32 or bf16", dtype));
  return dtype == "bf16";
}

ManifestUnit unit_from_json(const json& j) {
  ManifestUnit unit{.name = j.at("name"),
                    .layout_class = j.at("layout_class"),
                    .numel = whole_field(j.at("numel")),
                    .layout_hash = hex_field(j.at("layout_hash")),
                    .trainable = j.value("trainable", true),
                    .in_base = j.value("in_base", false),
                    .has_average = j.value("average", false),
                    .bf16_moments = moments_from_json(j)};
  if (unit.in_base && unit.trainable)
    throw std::runtime_error(fmt::format("unit '{}' is trained and in the base", unit.name));
  if ((unit.has_average || unit.bf16_moments) && !unit.trainable)
    throw std::runtime_error(fmt::format("unit '{}' has moments or an average and is not trained", unit.name));
  std::int64_t covered = 0;
  for (const json& p : j.at("params")) {
    unit.params.push_back(param_from_json(p, unit.name, covered));
    if (__builtin_add_overflow(unit.params.back().offset, unit.params.back().numel, &covered)) {
      throw std::runtime_error(fmt::format("unit '{}': offsets overflow", unit.name));
    }
  }
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 50;
  if (unit.numel != covered || covered > kMaxElements) {
    throw std::runtime_error(
        fmt::format("unit '{}': {} elements; its parameters end at {}", unit.name, unit.numel, covered));
  }
  return unit;
}

/// Every unit in a base has one, and its name is a digest: it becomes part of a path.
void check_base(const Manifest& m) {
  const bool is_digest = m.base.size() == 32 && m.base.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!m.base.empty() && !is_digest) throw std::runtime_error(fmt::format("base '{}' is no digest", m.base));
  const bool needed = std::any_of(m.units.begin(), m.units.end(), [](const ManifestUnit& u) { return u.in_base; });
  if (needed != !m.base.empty())
    throw std::runtime_error(needed ? "units are in a base, and none is named"
                                    : "a base is named, and no unit is in it");
}

Manifest manifest_from(const json& j) {
  Manifest m;
  m.format = whole_field(j.at("format"));
  if (m.format < 1 || m.format > Manifest::kFormat)
    throw std::runtime_error(fmt::format("format {}; this build reads 1 to {}", m.format, Manifest::kFormat));
  m.step = whole_field(j.at("step"));
  m.fence = hex_field(j.at("fence"));
  m.world = whole_field(j.at("world"));
  if (m.step < 0 || m.world < 1 || m.world > 65'536)
    throw std::runtime_error(fmt::format("step {}, world {}", m.step, m.world));
  for (const json& unit : j.at("units")) m.units.push_back(unit_from_json(unit));
  m.layout_hash = hex_field(j.at("layout_hash"));
  const json& o = j.at("optimizer");
  m.optimizer = {.name = o.at("name"),
                 .lr = o.at("lr"),
                 .betas = o.at("betas").get<std::vector<double>>(),
                 .eps = o.at("eps"),
                 .weight_decay = o.at("weight_decay"),
                 .updates = whole_field(o.at("updates")),
                 .groups = whole_map(o.value("groups", json::object()))};
  m.seed = whole_field(j.at("seed"));
  m.next_position = whole_field(j.at("next_position"));
  m.dataset_fingerprint = j.at("dataset_fingerprint");
  m.config = j.at("config");
  m.encoder_hash = j.at("encoder_hash");
  for (const json& file : j.at("files")) m.files.push_back(file_from_json(file));
  m.base = j.value("base", std::string());
  check_base(m);
  m.previous = j.at("previous");
  m.version = j.at("version");
  for (std::int64_t rank = 0; rank < m.world; ++rank) {
    const std::string name = Manifest::rank_file(rank, m.world);
    const bool listed =
        std::any_of(m.files.begin(), m.files.end(), [&](const ManifestFile& f) { return f.name == name; });
    if (!listed)
      throw std::runtime_error(
          fmt::format("{} is not listed; a checkpoint of world {} has one file per rank", name, m.world));
  }
  return m;
}

}  // namespace

bool Manifest::has_average() const {
  return std::any_of(units.begin(), units.end(), [](const ManifestUnit& unit) { return unit.has_average; });
}

bool Manifest::has_bf16_moments() const {
  return std::any_of(units.begin(), units.end(), [](const ManifestUnit& unit) { return unit.bf16_moments; });
}

std::string Manifest::rank_file(std::int64_t rank, std::int64_t world) {
  return fmt::format("rank-{:05d}-of-{:05d}.safetensors", rank, world);
}

std::string manifest_to_json(const Manifest& m) {
  json units = json::array(), files = json::array();
  for (const ManifestUnit& unit : m.units) units.push_back(unit_to_json(unit));
  for (const ManifestFile& f : m.files) files.push_back(file_to_json(f));
  json j = {{"config", m.config},
            {"dataset_fingerprint", m.dataset_fingerprint},
            {"encoder_hash", m.encoder_hash},
            {"fence", to_hex(m.fence)},
            {"files", files},
            {"format", m.format},
            {"layout_hash", to_hex(m.layout_hash)},
            {"next_position", m.next_position},
            {"optimizer",
             {{"betas", m.optimizer.betas},
              {"eps", m.optimizer.eps},
              {"lr", m.optimizer.lr},
              {"name", m.optimizer.name},
              {"updates", m.optimizer.updates},
              {"weight_decay", m.optimizer.weight_decay}}},
            {"previous", m.previous},
            {"seed", m.seed},
            {"step", m.step},
            {"units", units},
            {"version", m.version},
            {"world", m.world}};
  if (!m.base.empty()) j["base"] = m.base;
  if (!m.optimizer.groups.empty()) j["optimizer"]["groups"] = m.optimizer.groups;
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<Manifest> manifest_from_json(const std::string& text, const std::string& path) {
  try {
    return manifest_from(json::parse(text));
  } catch (const std::exception& e) {
    return Error{Errc::data_loss, fmt::format("{}: not a checkpoint manifest: {}", path, e.what())};
  }
}

Result<Manifest> read_manifest(const std::string& directory) {
  const std::string path = directory + "/manifest.json";
  TROUPE_ASSIGN(const std::string text, read_file(path, kMaxManifest));
  return manifest_from_json(text, path);
}

Result<JobConfig> job_of(const Manifest& manifest, const std::string& directory) {
  LoadOutcome outcome = load_job_text(directory + "/manifest.json: config", manifest.config, {});
  if (outcome.config) return std::move(outcome.config->job);
  return Error{Errc::data_loss,
               outcome.errors.empty() ? directory + "/manifest.json: config does not read" : outcome.errors.front()};
}

}  // namespace troupe::workers
