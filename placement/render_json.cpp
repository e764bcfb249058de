#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/hash.h"
#include "placement/render.h"

namespace troupe::placement {

// Structs whose keys are their fields' names.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceSnapshot, model, memory_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeSnapshot, name, cpus, memory_bytes, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlannedStream, from, to, transport, slots, slot_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MemoryTable, shard_bytes, param_slot_bytes, grad_slot_bytes, activation_bytes,
                                   encoder_bytes, snapshot_bytes, feed_bytes, margin_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BatchPlan, global, micro, data_ranks, accumulation)

namespace {

using nlohmann::json;

constexpr int kPlanFormat = 1;
/// {"nodes": [{"devices": [{"model": ...}]}]}
constexpr int kMaxDepth = 5;
/// Of every number; sums of thousands stay within 63 bits.
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 50;

std::int64_t to_milli(double cpus) { return std::llround(cpus * 1000); }

json actor_to_json(const PlannedActor& a) {
  json all = {{"cpu_milli", to_milli(a.cpus)},  {"devices", a.devices}, {"isolation", a.isolation},
              {"memory_bytes", a.memory_bytes}, {"name", a.name},       {"node", a.node},
              {"process_rank", a.process_rank}, {"role", a.role}};
  if (a.threads != 1) all["threads"] = a.threads;
  if (a.device_bytes != 0) all["device_bytes"] = a.device_bytes;
  return all;
}

// Everything but revision and plan_id.
json content(const Plan& plan) {
  json actors = json::array();
  for (const PlannedActor& a : plan.actors) actors.push_back(actor_to_json(a));
  json all = {{"actors", actors},
              {"batch", plan.batch},
              {"collective", plan.collective},
              {"decoder_memory_bytes", plan.decoder_memory_bytes},
              {"disk_bytes_per_checkpoint", plan.disk_bytes_per_checkpoint},
              {"feed_slots", plan.feed_slots},
              {"format", kPlanFormat},
              {"job", plan.job},
              {"learner_memory", plan.learner_memory},
              {"nodes", plan.nodes},
              {"parameters", plan.parameters},
              {"sample_bytes", plan.sample_bytes},
              {"streams", plan.streams},
              {"warnings", plan.warnings}};
  if (plan.frozen_parameters != 0) all["frozen_parameters"] = plan.frozen_parameters;
  // what older plans do not have stands only where it differs, so that their plan_id is still theirs
  if (plan.activation_checkpoint != "full") all["activation_checkpoint"] = plan.activation_checkpoint;
  if (plan.learner_memory.offload_bytes != 0) all["offload_bytes"] = plan.learner_memory.offload_bytes;
  if (plan.learner_memory.reference_bytes != 0) all["reference_bytes"] = plan.learner_memory.reference_bytes;
  if (plan.rollout_memory_bytes != 0) all["rollout_memory_bytes"] = plan.rollout_memory_bytes;
  if (plan.sharding != "zero3") all["sharding"] = plan.sharding;
  if (!plan.recompute_counts.empty()) all["recompute_counts"] = plan.recompute_counts;
  if (!plan.products.empty()) all["products"] = plan.products;
  if (plan.block_slots != 0) {
    all["block_slots"] = plan.block_slots;
    all["block_bytes"] = plan.block_bytes;
  }
  return all;
}

std::string id_of(const json& plan_content) { return to_hex(xxh3_64(std::string_view(plan_content.dump(2)))); }

// Throws on what no plan has: deeper containers, fractions, numbers below 0 or above kMaxNumber.
json parse_numbers(const std::string& text) {
  std::string key;
  return json::parse(text, [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) throw std::out_of_range("it is nested too deep");
    if (event == json::parse_event_t::key) key = parsed.get<std::string>();
    if (event == json::parse_event_t::value && parsed.is_number() &&
        (!parsed.is_number_unsigned() || parsed.get<std::uint64_t>() > kMaxNumber))
      throw std::out_of_range(fmt::format("{} is {}; numbers are whole, from 0 to 2^50", key, parsed.dump()));
    return true;
  });
}

PlannedActor actor_from_json(const json& j, const std::vector<NodeSnapshot>& nodes) {
  PlannedActor a{.name = j.at("name"),
                 .role = j.at("role"),
                 .process_rank = j.at("process_rank"),
                 .node = j.at("node"),
                 .devices = j.at("devices").get<std::vector<std::int64_t>>(),
                 .cpus = static_cast<double>(j.at("cpu_milli").get<std::int64_t>()) / 1000.0,
                 .threads = j.value("threads", std::int64_t{1}),
                 .isolation = j.at("isolation"),
                 .memory_bytes = j.at("memory_bytes"),
                 .device_bytes = j.value("device_bytes", std::int64_t{0})};
  if (static_cast<std::size_t>(a.node) >= nodes.size())
    throw std::out_of_range(fmt::format("actor {} sits on node {} of {}", a.name, a.node, nodes.size()));
  const std::size_t devices = nodes[static_cast<std::size_t>(a.node)].devices.size();
  for (const std::int64_t device : a.devices) {
    if (static_cast<std::size_t>(device) >= devices)
      throw std::out_of_range(fmt::format("actor {} has device {}; its node has {}", a.name, device, devices));
  }
  return a;
}

Plan plan_from(const json& j) {
  Plan plan;
  plan.job = j.at("job");
  plan.revision = j.at("revision");
  j.at("nodes").get_to(plan.nodes);
  for (const json& a : j.at("actors")) plan.actors.push_back(actor_from_json(a, plan.nodes));
  for (const char* role : {"learner", "checkpointer"}) {
    if (std::none_of(plan.actors.begin(), plan.actors.end(), [&](const PlannedActor& a) { return a.role == role; }))
      throw std::out_of_range(fmt::format("it has no {}", role));
  }
  j.at("streams").get_to(plan.streams);
  plan.collective = j.at("collective");
  j.at("batch").get_to(plan.batch);
  j.at("learner_memory").get_to(plan.learner_memory);
  plan.learner_memory.offload_bytes = j.value("offload_bytes", std::int64_t{0});
  plan.learner_memory.reference_bytes = j.value("reference_bytes", std::int64_t{0});
  plan.parameters = j.at("parameters");
  plan.frozen_parameters = j.value("frozen_parameters", std::int64_t{0});
  plan.activation_checkpoint = j.value("activation_checkpoint", plan.activation_checkpoint);
  plan.sharding = j.value("sharding", plan.sharding);
  plan.recompute_counts = j.value("recompute_counts", plan.recompute_counts);
  plan.products = j.value("products", std::string());
  plan.disk_bytes_per_checkpoint = j.at("disk_bytes_per_checkpoint");
  plan.feed_slots = j.at("feed_slots");
  plan.sample_bytes = j.at("sample_bytes");
  plan.decoder_memory_bytes = j.at("decoder_memory_bytes");
  plan.rollout_memory_bytes = j.value("rollout_memory_bytes", std::int64_t{0});
  plan.block_slots = j.value("block_slots", std::int64_t{0});
  plan.block_bytes = j.value("block_bytes", std::int64_t{0});
  plan.warnings = j.at("warnings").get<std::vector<std::string>>();
  return plan;
}

}  // namespace

std::string plan_id(const Plan& plan) { return id_of(content(plan)); }

std::string to_json(const Plan& plan) {
  json j = content(plan);
  const std::string id = id_of(j);
  j["plan_id"] = id;
  j["revision"] = plan.revision;
  return j.dump(2) + "\n";
}

Result<Plan> plan_from_json(const std::string& text) {
  try {
    const json j = parse_numbers(text);
    const json& format = j.at("format");
    if (format != kPlanFormat) {
      return Error{Errc::invalid_argument,
                   fmt::format("plan: format {}; this build reads format {}", format.dump(), kPlanFormat)};
    }
    Plan plan = plan_from(j);
    const std::string id = plan_id(plan), written = j.at("plan_id");
    if (id != written) {
      return Error{
          Errc::invalid_argument,
          fmt::format("plan: plan_id {} does not match the content ({}); the file was changed after it was written",
                      written, id)};
    }
    return plan;
  } catch (const std::exception& e) {
    return Error{Errc::invalid_argument,
                 fmt::format("plan: not a plan as written by `troupe plan --json`: {}", e.what())};
  }
}

}  // namespace troupe::placement
