#pragma once

#include <string>

#include "data/init/job_guess.h"
#include "data/init/robot_guess.h"

namespace troupe::data {

/// Text of a robot's YAML file, a comment before every guess. `report` is the dataset's. Pure.
std::string robot_yaml(const RobotGuess& robot, const HealthReport& report);

/// Text of a job's YAML file that trains `robot_file` (absolute) on the dataset of `report`. Pure.
std::string job_yaml(const JobGuess& job, const HealthReport& report, const std::string& robot_file);

}  // namespace troupe::data
