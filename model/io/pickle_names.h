#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The functions that a state dict may name.
enum class PickleFunction : std::uint8_t { ordered_dict, rebuild_tensor, rebuild_parameter };

/// Nothing for every other global.
std::optional<PickleFunction> pickle_function(std::string_view module, std::string_view name);

/// "F32" for torch.FloatStorage and so on; empty for every other global.
std::string_view storage_dtype(std::string_view module, std::string_view name);

/// "INST (0x69)"; "0xff" for a byte that is no opcode.
std::string pickle_opcode_name(std::uint8_t opcode);

}  // namespace troupe
