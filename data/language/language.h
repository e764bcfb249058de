#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace troupe::data {

/// An instruction ready for a prompt template, and the markers that were cut out of it.
struct Instruction {
  std::string text;
  bool lapa = false;     ///< <LAPA>: latent actions, no real ones
  bool dream = false;    ///< <DREAM>
  bool cotrain = false;  ///< <COTRAIN>
};

/// The rules of GEAR's collate function before the template: markers are cut out; a text that is a Python literal
/// becomes its first element (list, tuple) or its str(); the result is lower-cased by Unicode's rules. Blanks at the
/// ends stay. With `formalize` (data.language.formalize) formalize_language comes between the markers and the literal,
/// as in GEAR.
/// Errors: invalid_argument (an empty list or tuple; a set of several elements, whose order Python does not define; not
/// UTF-8).
Result<Instruction> read_instruction(const std::string& raw, bool formalize = false);

/// The instruction inside the template `prompt` of data.embodiment.prompt (data/language/prompt_templates.h). Errors:
/// invalid_argument (an unknown template, fewer views than it describes).
Result<std::string> make_prompt(const std::string& prompt, const std::string& instruction, std::int64_t num_views);

/// From a task as a dataset or a client words it to the text for Tokenizer::tokenize: read_instruction, make_prompt,
/// clean_prompt. Errors: those of the three.
Result<std::string> prompt_from_task(const std::string& prompt, const std::string& task, std::int64_t num_views);

}  // namespace troupe::data
