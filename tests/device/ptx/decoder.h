#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/device/ptx/program.h"

namespace troupe::device::ptx {

/// Turns the functions of one kernel into instructions. The families (integer.cpp, float.cpp, ...) ask it for
/// modifiers, operands and types of the instruction in hand; what they do not ask for is an error in the end.
class Decoder {
 public:
  /// `dynamic_shared`: offset of the dynamic shared memory, known once the kernel has been decoded before.
  Decoder(const Module& module, const std::map<std::string, std::uint64_t, std::less<>>& addresses,
          std::uint32_t dynamic_shared)
      : module_(module), addresses_(addresses), dynamic_shared_(dynamic_shared) {}

  Result<Kernel> decode(const Function& entry);

  // ---- of the instruction in hand
  /// The next modifier is `what`, and is taken.
  bool take(std::string_view what);
  /// Takes whichever of them is next; empty if none is.
  std::string_view take_one(std::initializer_list<std::string_view> of);
  /// Takes the next modifier, a type; the error is noted when it is none.
  Type take_type();
  /// The type that ends the opcode, not taken; nothing if it ends with something else.
  std::optional<Type> last_type() const { return type_named(modifiers_.back()); }
  std::size_t operands() const { return statement_->operands.size(); }
  const Operand& operand(std::size_t i) const { return statement_->operands[i]; }
  /// The register that operand `i` names, to be written; `_` is a register that no instruction reads.
  Ref destination(const Operand& operand);
  /// A register, special register, immediate or address; immediates are of `type`.
  Ref source(const Operand& operand, Type type);
  Ref constant(std::uint64_t bits, std::uint32_t size);
  /// Bytes of the register's values; 0 for a predicate, of what is no register -1.
  int width(const Operand& operand) const;
  /// Destination first, then sources of `type`, all of that width, into the refs of `op`.
  void refs(Op& op, Type destination_type, std::initializer_list<Type> sources);
  /// The same register width as `type`, or the error is noted.
  void require_width(const Operand& operand, Type type);
  /// A register of the kernel that no PTX name has.
  Ref scratch(std::uint32_t size) { return make_register(size); }

  /// Notes what is wrong; the first note is the error.
  void fail(std::string what);
  Op& emit(Op op);
  Kernel& kernel() { return kernel_; }
  bool in_entry() const { return function_->is_entry; }
  /// Where a variable of the function or module stands: its space and address. Errors are noted.
  struct Place {
    Space space = Space::generic;
    std::uint64_t address = 0;
  };
  Place place(const Operand& operand);
  /// An access of `bytes` to that space sets the granule of races.
  void note_access(Space space, std::uint32_t bytes);
  /// A call's target: queues the function for decoding and returns what stands for its entry until all are decoded.
  std::uint32_t label(const Operand& operand);
  const Function* function_named(std::string_view name) const;
  std::uint32_t entry_of(const Function& function);
  /// Offset in a lane's local memory of a `.local` or `.param` variable of a function.
  std::uint32_t local_offset(const Function& function, std::int32_t variable);
  const Function& function() const { return *function_; }

 private:
  struct Placed {
    std::vector<Ref> registers;
    std::vector<std::uint64_t> offsets;
    std::uint32_t entry = kNone;
  };
  Result<void> decode_function(const Function& function);
  Result<void> decode_statement(const Statement& statement);
  Placed& place_function(const Function& function);
  Ref make_register(std::uint32_t size);
  Ref special(std::string_view name);
  std::uint64_t shared_offset(const Variable& variable);
  Error error(const Statement& statement, std::string_view what) const;

  const Module& module_;
  const std::map<std::string, std::uint64_t, std::less<>>& addresses_;
  const std::uint32_t dynamic_shared_;
  Kernel kernel_;
  std::map<const Function*, Placed> placed_;
  std::vector<const Function*> pending_;
  std::map<std::string_view, Ref> specials_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Ref> constants_;
  std::map<const Variable*, std::uint32_t> shared_;
  const Function* function_ = nullptr;
  const Statement* statement_ = nullptr;
  std::vector<std::string_view> modifiers_;
  std::size_t next_modifier_ = 0;
  std::string failure_;
};

/// Decodes the instruction in hand, whose first word (`mnemonic`) is taken; false for one it does not know.
using Family = bool (*)(Decoder& decoder, std::string_view mnemonic);
bool decode_integer(Decoder& decoder, std::string_view mnemonic);
bool decode_bits(Decoder& decoder, std::string_view mnemonic);
bool decode_float(Decoder& decoder, std::string_view mnemonic);
bool decode_half(Decoder& decoder, std::string_view mnemonic);
bool decode_compare(Decoder& decoder, std::string_view mnemonic);
bool decode_convert(Decoder& decoder, std::string_view mnemonic);
bool decode_move(Decoder& decoder, std::string_view mnemonic);
bool decode_memory(Decoder& decoder, std::string_view mnemonic);
bool decode_async_copy(Decoder& decoder, std::string_view mnemonic);
bool decode_atomic(Decoder& decoder, std::string_view mnemonic);
bool decode_warp(Decoder& decoder, std::string_view mnemonic);
bool decode_matrix(Decoder& decoder, std::string_view mnemonic);
bool decode_control(Decoder& decoder, std::string_view mnemonic);

/// Fills Op::join of every branch of `code[begin, end)`, one function.
void find_joins(Kernel& kernel, std::uint32_t begin, std::uint32_t end);

}  // namespace troupe::device::ptx
