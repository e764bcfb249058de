#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tests/device/ptx/types.h"

namespace troupe::device::ptx {

/// Where an instruction comes from: file and line of the `.loc` before it and, for inlined code, of the call.
/// Source: PTX ISA 9.0, "Debugging Directives: .loc".
struct SourcePosition {
  std::uint32_t file = 0, line = 0;
  std::uint32_t caller_file = 0, caller_line = 0;
  bool operator==(const SourcePosition&) const = default;
};

/// A variable of a module or of a function: `.global`, `.const`, `.shared`, `.local`, `.param`, or a register.
struct Variable {
  /// A place in the initial bytes that holds the address of another variable.
  struct Reference {
    std::uint64_t offset = 0;
    std::string_view name = {};
    std::int64_t addend = 0;
  };
  std::string name;
  Space space = Space::reg;
  Type type = Type::b32;
  std::uint32_t align = 0;
  /// Bytes; 0 for the dynamic shared memory, whose size a launch says.
  std::uint64_t size = 0;
  std::vector<std::byte> initial;
  std::vector<Reference> references;
};

/// One operand as it is written. Registers and variables of the function are resolved to an index of its `variables`.
struct Operand {
  enum class Kind : std::uint8_t { name, integer, f32, f64, vector, address, list };
  Kind kind = Kind::name;
  std::string_view name = {};
  /// Index into Function::variables, or -1: a label, a special register, a variable of the module, a function.
  std::int32_t variable = -1;
  bool negated = false;
  /// Of integers and floats the bits, of an address or a name what is added to it.
  std::int64_t value = 0;
  /// Elements of a vector or list; of `a|b` the second.
  std::vector<Operand> parts = {};
};

/// One instruction: `@p ld.global.f32 %f1, [%rd1+4];`.
struct Statement {
  std::string_view opcode = {};
  /// The predicate register, -1 without a guard.
  std::int32_t guard = -1;
  bool guard_negated = false;
  std::vector<Operand> operands = {};
  SourcePosition source = {};
  std::uint32_t ptx_line = 0;
};

/// An `.entry` or `.func` with its body.
struct Function {
  std::string name;
  bool is_entry = false, has_body = false;
  std::vector<Variable> variables = {};
  /// Indices into `variables`, in order.
  std::vector<std::int32_t> parameters, results;
  std::vector<Statement> statements;
  /// Index of the statement that a label stands before; the lists of `.branchtargets`.
  std::map<std::string_view, std::uint32_t> labels = {};
  std::map<std::string_view, std::vector<std::string_view>> branch_targets = {};
};

/// A module of PTX text as nvcc writes it, parsed and its names resolved; not yet decoded (program.h). Immutable.
struct Module {
  /// The text that the views point into.
  std::shared_ptr<const std::string> text;
  std::map<std::uint32_t, std::string> files = {};
  std::vector<Variable> variables = {};
  std::vector<Function> functions = {};

  /// Errors: invalid_argument that names the directive and the line of what the interpreter does not know.
  static Result<Module> parse(std::string text);

  /// "kernels/norm.cu:31, inlined at kernels/norm.cu:70"
  std::string describe(const SourcePosition& position) const;
};

}  // namespace troupe::device::ptx
