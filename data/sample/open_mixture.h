#pragma once

#include <memory>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/mixture.h"

namespace troupe::data {

/// Opens the job's datasets, after a look at what a sample is to be: a window or canvas that cannot be is found
/// before any file is opened. Errors: those of sample_layout and Mixture::open; with bad files and bad_sample fail,
/// all are listed.
Result<std::shared_ptr<const Mixture>> open_mixture(const JobConfig& job);

}  // namespace troupe::data
