#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::model {

/// The functions that a state dict may name: collections.OrderedDict, torch._utils._rebuild_tensor_v2,
/// torch._utils._rebuild_parameter. Naming one runs nothing: PickleMachine knows what its result would hold.
enum class PickleFunction : std::uint8_t { ordered_dict, rebuild_tensor, rebuild_parameter };

/// The function that GLOBAL's two lines, module and name, mean; nothing for every other global, which is refused.
std::optional<PickleFunction> pickle_function(std::string_view module, std::string_view name);

/// Safetensors' name of a storage's dtype: "F32" for torch.FloatStorage, and so on for BFloat16, Half, Double, Long,
/// Int, Short, Char, Byte and Bool; empty for every other global. A constant of the program.
std::string_view storage_dtype(std::string_view module, std::string_view name);

/// An opcode of protocols 0 to 5 for a message: "INST (0x69)"; "0xff" for a byte that is no opcode.
std::string pickle_opcode_name(std::uint8_t opcode);

}  // namespace troupe::model
