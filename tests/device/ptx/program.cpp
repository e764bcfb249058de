#include "tests/device/ptx/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tests/device/ptx/decoder.h"

namespace troupe::device::ptx {

Result<Program> Program::load(Module module, DeviceMemory& memory) {
  Program program;
  program.module_ = std::make_unique<const Module>(std::move(module));
  program.memory_ = &memory;
  TROUPE_TRY(program.place_variables());
  for (const Function& function : program.module_->functions) {
    if (!function.is_entry || !function.has_body) continue;
    // the first pass says how much static shared memory there is, behind which the dynamic part begins
    TROUPE_ASSIGN(const Kernel first, Decoder(*program.module_, program.addresses_, 0).decode(function));
    TROUPE_ASSIGN(Kernel kernel, Decoder(*program.module_, program.addresses_, first.dynamic_shared).decode(function));
    program.kernels_.push_back(std::move(kernel));
  }
  return program;
}

Result<void> Program::place_variables() {
  for (const Variable& variable : module_->variables) {
    if (variable.space == Space::shared) continue;
    TROUPE_ASSIGN(const std::uint64_t address, memory_->allocate(variable.size));
    addresses_[variable.name] = address;
    // what has no initial value is zero: PTX ISA 9.0, "Initializers"
    TROUPE_TRY(memory_->fill(address, std::byte{0}, variable.size));
    TROUPE_TRY(memory_->copy_in(address, variable.initial));
  }
  for (const Variable& variable : module_->variables) {
    for (const Variable::Reference& reference : variable.references) {
      TROUPE_ASSIGN(const std::uint64_t to, address_of(reference.name));
      const std::uint64_t value = to + static_cast<std::uint64_t>(reference.addend);
      TROUPE_TRY(memory_->copy_in(addresses_[variable.name] + reference.offset, std::as_bytes(std::span(&value, 1))));
    }
    if (variable.space == Space::constant) memory_->make_constant(addresses_[variable.name]);
  }
  return {};
}

const Kernel* Program::find(std::string_view name) const {
  const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const Kernel& k) { return k.name == name; });
  return found == kernels_.end() ? nullptr : &*found;
}

Result<std::uint64_t> Program::address_of(std::string_view variable) const {
  const auto found = addresses_.find(variable);
  if (found != addresses_.end()) return found->second;
  return Error{Errc::not_found, fmt::format("the module has no variable {}", variable)};
}

}  // namespace troupe::device::ptx
