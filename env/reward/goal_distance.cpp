#include "env/reward/goal_distance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "configs/scalar.h"

namespace troupe::env {

namespace {

/// The whole number `name`, 0 or more. Errors: invalid_argument; where it is missing the error says `what` it is.
Result<std::int64_t> whole_number(const NamedOptions& options, const std::string& name, std::string_view what) {
  const auto found = options.find(name);
  if (found == options.end()) return invalid_argument(fmt::format("'{}' is missing: {}", name, what));
  const auto value = configs::parse_integer(found->second);
  if (value && *value >= 0) return *value;
  return invalid_argument(fmt::format("{} is '{}'; wanted a whole number, 0 or more: {}", name, found->second, what));
}

}  // namespace

Result<std::shared_ptr<const RewardModel>> GoalDistance::make(const NamedOptions& options, const EnvSpec& spec,
                                                              double gamma) {
  TROUPE_TRY(check_options("it", options, {"field", "first", "count"}));
  const std::string what = "the vector from goal to thing is numbers first to first + count - 1 of the field";
  TROUPE_ASSIGN(const std::int64_t first, whole_number(options, "first", what));
  TROUPE_ASSIGN(const std::int64_t count, whole_number(options, "count", what));
  const auto named = options.find("field");
  const std::string name = named == options.end() ? "state" : named->second;
  const auto field = std::find_if(spec.observation.begin(), spec.observation.end(),
                                  [&](const EnvField& candidate) { return candidate.name == name; });
  if (field == spec.observation.end() || field->dtype == EnvDType::u8) {
    std::vector<std::string> vectors;
    for (const EnvField& candidate : spec.observation)
      if (candidate.dtype != EnvDType::u8) vectors.push_back(candidate.name);
    return invalid_argument(fmt::format("field is '{}'; {} observes numbers in: {}", name, spec.id,
                                        vectors.empty() ? "none" : fmt::format("{}", fmt::join(vectors, ", "))));
  }
  if (count == 0 || first > field->numel() || count > field->numel() - first) {
    return invalid_argument(
        fmt::format("first is {} and count {}; field '{}' of {} has {} numbers, and count wants 1 "
                    "or more",
                    first, count, name, spec.id, field->numel()));
  }
  return std::shared_ptr<const RewardModel>(std::make_shared<GoalDistance>(
      static_cast<std::size_t>(field - spec.observation.begin()), field->dtype, first, count, gamma));
}

double GoalDistance::distance(const std::byte* field) const {
  double squares = 0;
  for (std::int64_t i = first_; i < first_ + count_; ++i) {
    const double x =
        dtype_ == EnvDType::f32 ? reinterpret_cast<const float*>(field)[i] : reinterpret_cast<const double*>(field)[i];
    squares += x * x;
  }
  return std::sqrt(squares);
}

Result<double> GoalDistance::reward(const RewardStep& step) const {
  const double before = -distance(step.observation[field_]);
  const double after = step.is_terminated ? 0 : -distance(step.next_observation[field_]);
  return gamma_ * after - before;
}

}  // namespace troupe::env
