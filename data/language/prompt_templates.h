#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::data {

/// The sentences around an instruction: prefix + instruction, and where `layout` is not empty + layout + instruction.
/// Literal strings, byte for byte those that released checkpoints were trained with. Source: `collate` of
/// GEAR's transform/dreamzero_cotrain.py, and the data_transforms of RLinf.
struct PromptTemplate {
  std::string_view name;    ///< as data.embodiment.prompt names it
  std::string_view prefix;  ///< before the instruction
  std::string_view layout;  ///< between its two occurrences: says how the views share the canvas
  std::int64_t min_views = 1;
};

/// Every template: none, single_view_human, and those of the embodiments.
std::span<const PromptTemplate> prompt_templates();

/// The negative prompt of classifier-free guidance. It stands in no template and is not lower-cased; it is cleaned and
/// tokenised as it is.
std::string_view negative_prompt();

/// The instruction inside the template `name`. Errors: invalid_argument (an unknown template, fewer views than it
/// describes).
Result<std::string> wrap_instruction(std::string_view name, std::string_view instruction, std::int64_t num_views);

}  // namespace troupe::data
