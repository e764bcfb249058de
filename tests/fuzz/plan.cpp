// A plan's JSON. One whose plan_id is wrong is read again with the id that the refusal names, so that what lies behind
// it is reached.
#include "configs/job_config.h"
#include "placement/render.h"
#include "tests/fuzz/fuzz.h"

namespace troupe::testing {

namespace {

Result<Plan> read(std::string text) {
  auto plan = plan_from_json(text);
  if (plan) return plan;
  refused(plan.error());
  const std::string& why = plan.error().message();
  constexpr std::string_view kBefore = "does not match the content (", kKey = "\"plan_id\": \"";
  const auto named = why.find(kBefore);
  const auto at = text.find(kKey);
  if (named == std::string::npos || at == std::string::npos) return plan;
  const auto begin = at + kKey.size();
  text.replace(begin, text.find('"', begin) - begin, why.substr(named + kBefore.size(), 16));
  return plan_from_json(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = read(std::string(text_of(data, size)));
  if (!plan) return 0;
  const std::string text = to_json(*plan);
  const auto back = plan_from_json(text);
  TROUPE_CHECK(back, back.error().message());
  TROUPE_CHECK(to_json(*back) == text && diff(*plan, *back).empty(), "what was written is read as it was");
  static_cast<void>(to_table(*plan, JobConfig{}));
  return 0;
}

}  // namespace troupe::testing
