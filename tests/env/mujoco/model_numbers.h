#pragma once

#include <mujoco/mujoco.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::testing {

/// Every number of a compiled model that the simulation reads, laid out as golden/env/models/*.json: sizes, option,
/// stat, body, joint, geom, site, actuator, tendon, exclude.
nlohmann::json model_numbers(const mjModel& model);

/// How two such tables differ. Where the wanted one has an entry, the found one must have it too, texts must be
/// equal, and numbers within `tolerance` of the larger of the two; both below `tolerance` in size, within its square.
struct NumberDifference {
  std::vector<std::string> differences;  ///< "body[3].mass is 1.5, wanted 1.6"
  double largest = 0;                    ///< relative difference of numbers that pass
  long compared = 0, equal_bits = 0;
};
NumberDifference compare_numbers(const nlohmann::json& found, const nlohmann::json& wanted, double tolerance);

}  // namespace troupe::testing
