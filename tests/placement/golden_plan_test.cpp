// Plans that must not move. Each tests/golden/plans/NAME.case.json describes a cluster and a job; NAME.json is the
// plan. Rewrite them after an intended change: TROUPE_REWRITE_GOLDEN=1
// build/dev/tests/placement/placement_golden_plan_test
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "placement/planner.h"
#include "placement/pretend.h"
#include "placement/render.h"
#include "tests/placement/model_costs.h"

namespace troupe::placement {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kFolder = fs::path(TROUPE_SOURCE_DIR) / "tests/golden/plans";

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string file = entry.path().filename();
    if (file.ends_with(".case.json")) names.push_back(file.substr(0, file.size() - std::string(".case.json").size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

ModelCost cost_of(const std::string& name) {
  if (name == "5b") return testing::cost_5b();
  if (name == "14b") return testing::cost_14b();
  if (name == "14b_lora") return testing::cost_14b_lora();
  EXPECT_EQ(name, "tiny");
  return testing::tiny_cost();
}

JobConfig job_of(const json& c) {
  JobConfig job = testing::small_job();
  job.training.global_batch_size = c.value("global", job.training.global_batch_size);
  job.training.micro_batch_size = c.value("micro", job.training.micro_batch_size);
  job.cluster.num_nodes = c.value("num_nodes", job.cluster.num_nodes);
  job.precision.param = c.value("param", job.precision.param);
  job.eval.every = c.value("eval_every", job.eval.every);
  job.data.features.encode = c.value("encode", job.data.features.encode);
  // Named: the temporary of value() would not outlive the loop's items().
  const json placement = c.value("placement", json::object()), isolation = c.value("isolation", json::object());
  const json groups = c.value("groups", json::object());
  for (const auto& [role, rule] : placement.items()) {
    job.cluster.component_placement[role] = {.node_group = rule.at(0), .placement = rule.at(1)};
  }
  for (const auto& [role, value] : isolation.items()) job.cluster.isolation[role] = value;
  for (const auto& [label, ranks] : groups.items()) {
    NodeGroupConfig group;
    group.label = label;
    group.node_ranks = ranks;
    job.cluster.node_groups.push_back(group);
  }
  return job;
}

TEST(GoldenPlanTest, EveryCaseGivesItsPlan) {
  const auto names = case_names();
  ASSERT_GE(names.size(), 12u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const json c = json::parse(read_text(kFolder / (name + ".case.json")));
    const auto cluster = pretend_cluster(c.at("cluster").get<std::string>());
    const JobConfig job = job_of(c);
    const ModelCost cost = cost_of(c.at("model"));
    const auto made =
        make_plan(*cluster, job, job.data.features.encode == "encoder" ? testing::encoders_apart(cost) : cost);
    const std::string text = to_json(std::get<Plan>(made));
    const fs::path path = kFolder / (name + ".json");
    if (std::getenv("TROUPE_REWRITE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(read_text(path), text);
  }
}

}  // namespace
}  // namespace troupe::placement
