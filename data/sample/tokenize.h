#pragma once

#include "base/result.h"
#include "configs/model_config.h"
#include "data/sample/sample_builder.h"

namespace troupe {

/// The tokenizer of a model as sample builders take it. Errors: those of make_tokenizer.
Result<Tokenize> make_tokenize(const TextEncoderConfig& config);

}  // namespace troupe
