#pragma once

#include <vector>

#include "data/lerobot/dataset_problem.h"
#include "data/lerobot/lerobot_dataset.h"

namespace troupe::data {

/// Compares the columns of the first episode's table with the features of info.json: D02 for columns that are no
/// feature, which nothing reads, and for columns of another kind of values (fractions, whole numbers, texts, bool) than
/// their dtype says. A table that cannot be read gives none: the check of its episode says why.
void check_features(const LerobotDataset& dataset, std::vector<DatasetProblem>& findings);

}  // namespace troupe::data
