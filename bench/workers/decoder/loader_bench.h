#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "data/sample/sample_builder.h"

namespace troupe::bench {

/// The value, or an exception with the error's text.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

/// A job from its file. Throws with every mistake.
JobConfig load_case(const std::string& file, const std::vector<std::string>& overrides);

/// A fixed table in place of a tokenizer, as on the Python side: 100 ids, then padding.
Tokenize case_tokens();

}  // namespace troupe::bench
