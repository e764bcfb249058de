#pragma once

#include <string>
#include <vector>

#include "bench/support/failures.h"
#include "configs/job_config.h"
#include "data/sample/sample_builder.h"

namespace troupe::bench {

/// A job from its file. Throws with every mistake.
JobConfig load_case(const std::string& file, const std::vector<std::string>& overrides);

/// A fixed table in place of a tokenizer, as on the Python side: 100 ids, then padding.
Tokenize case_tokens();

}  // namespace troupe::bench
