#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "configs/data_config.h"

namespace troupe::data {

/// True for a text without an instruction: blank, "not provided" in any case, or an empty Python list or tuple.
bool is_placeholder(std::string_view text);

/// The instruction of training sample `position`, before its markers are read: the default instruction with
/// always_default and with the probability of `dropout`; else one of `texts`, drawn uniformly. With skip_placeholder
/// texts that are placeholders are not drawn while another one is there. A pure function of its arguments: dropout from
/// stream 4, the draw from stream 2 of (seed, position) (base/random.h). Requires at least one text.
const std::string& draw_instruction(const LanguageConfig& language, std::span<const std::string> texts,
                                    std::uint64_t seed, std::uint64_t position);

/// The instruction of an evaluation window: the default one with always_default, else the first text.
const std::string& first_instruction(const LanguageConfig& language, std::span<const std::string> texts);

}  // namespace troupe::data
