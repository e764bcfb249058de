#pragma once

#include "base/result.h"
#include "configs/model_config.h"
#include "data/sample/sample_builder.h"

namespace troupe::data {

/// The tokenizer of a model as sample builders take it: ids [max_length] padded with the pad id, mask 1 where a token
/// is real. The function owns the tokenizer; copies share it, and any thread may call it. Errors: those of
/// make_tokenizer.
Result<Tokenize> make_tokenize(const TextEncoderConfig& config);

}  // namespace troupe::data
