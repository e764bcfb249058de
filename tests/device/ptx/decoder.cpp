#include "tests/device/ptx/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace troupe::device::ptx {
namespace {

constexpr std::uint32_t round_up(std::uint64_t value, std::uint32_t to) {
  return static_cast<std::uint32_t>((value + to - 1) / to * to);
}

std::vector<std::string_view> split(std::string_view opcode) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t dot = opcode.find('.');
    parts.push_back(opcode.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    opcode.remove_prefix(dot + 1);
  }
}

}  // namespace

Result<Kernel> Decoder::decode(const Function& entry) {
  kernel_.name = entry.name;
  pending_ = {&entry};
  placed_.clear();
  // functions are found while their callers are decoded
  for (std::size_t i = 0; i < pending_.size(); ++i) TROUPE_TRY(decode_function(*pending_[i]));
  for (Op& op : kernel_.code) {
    if (op.flow == Flow::call) op.target = placed_[pending_[op.target]].entry;
  }
  kernel_.dynamic_shared = round_up(kernel_.shared_bytes, 16);
  kernel_.local_bytes = round_up(kernel_.local_bytes, 16);
  kernel_.register_bytes = round_up(kernel_.register_bytes, kHeader);
  return std::move(kernel_);
}

Decoder::Placed& Decoder::place_function(const Function& function) {
  Placed& placed = placed_[&function];
  while (placed.registers.size() < function.variables.size()) {
    const Variable& variable = function.variables[placed.registers.size()];
    std::uint64_t offset = 0;
    Ref ref;
    const bool is_parameter = function.is_entry && placed.registers.size() < function.parameters.size();
    if (variable.space == Space::reg) {
      ref = make_register(variable.type == Type::pred ? 0 : size_of(variable.type));
    } else if (is_parameter) {
      offset = round_up(kernel_.parameter_bytes, variable.align);
      kernel_.parameter_bytes = static_cast<std::uint32_t>(offset + variable.size);
      kernel_.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(variable.size)});
    } else if (variable.space == Space::shared) {
      offset = shared_offset(variable);
    } else {
      offset = round_up(kernel_.local_bytes, variable.align);
      kernel_.local_bytes = static_cast<std::uint32_t>(offset + variable.size);
    }
    placed.registers.push_back(ref);
    placed.offsets.push_back(offset);
  }
  return placed;
}

std::uint64_t Decoder::shared_offset(const Variable& variable) {
  if (variable.size == 0) return dynamic_shared_;
  const auto found = shared_.find(&variable);
  if (found != shared_.end()) return found->second;
  const std::uint32_t offset = round_up(kernel_.shared_bytes, variable.align);
  kernel_.shared_bytes = static_cast<std::uint32_t>(offset + variable.size);
  return shared_[&variable] = offset;
}

Result<void> Decoder::decode_function(const Function& function) {
  function_ = &function;
  const auto begin = static_cast<std::uint32_t>(kernel_.code.size());
  place_function(function).entry = begin;
  std::vector<std::uint32_t> starts;
  for (const Statement& statement : function.statements) {
    starts.push_back(static_cast<std::uint32_t>(kernel_.code.size()));
    TROUPE_TRY(decode_statement(statement));
  }
  starts.push_back(static_cast<std::uint32_t>(kernel_.code.size()));
  Op last{.run = nullptr, .flow = Flow::ret};  // a label may stand behind the last instruction
  emit(last);
  const auto end = static_cast<std::uint32_t>(kernel_.code.size());
  // labels were noted as indices of statements
  for (std::uint32_t i = begin; i < end; ++i) {
    Op& op = kernel_.code[i];
    if (op.flow == Flow::branch) op.target = starts[op.target];
    if (op.flow == Flow::indexed_branch) {
      for (std::uint32_t& target : kernel_.branch_tables[op.target]) target = starts[target];
    }
  }
  find_joins(kernel_, begin, end);
  return {};
}

Result<void> Decoder::decode_statement(const Statement& statement) {
  constexpr Family kFamilies[] = {decode_integer, decode_bits,   decode_float,  decode_half,       decode_compare,
                                  decode_convert, decode_move,   decode_memory, decode_async_copy, decode_atomic,
                                  decode_warp,    decode_matrix, decode_control};
  statement_ = &statement;
  modifiers_ = split(statement.opcode);
  failure_.clear();
  const std::size_t before = kernel_.code.size();
  for (const Family family : kFamilies) {
    next_modifier_ = 1;
    if (!family(*this, modifiers_[0])) {
      if (!failure_.empty()) return error(statement, failure_);
      continue;
    }
    if (failure_.empty() && next_modifier_ < modifiers_.size()) {
      failure_ = fmt::format("modifier .{}", modifiers_[next_modifier_]);
    }
    if (!failure_.empty()) return error(statement, failure_);
    if (statement.guard >= 0 && width(Operand{.variable = statement.guard}) != 0) {
      return error(statement, "a guard that is no predicate");
    }
    for (std::size_t i = before; i < kernel_.code.size(); ++i) {
      if (statement.guard < 0) break;
      kernel_.code[i].guard = place_function(*function_).registers[static_cast<std::size_t>(statement.guard)].offset;
      kernel_.code[i].guard_negated = statement.guard_negated;
    }
    return {};
  }
  return error(statement, "the instruction");
}

Error Decoder::error(const Statement& statement, std::string_view what) const {
  return invalid_argument(fmt::format("{}: line {} of the PTX: {}: not in the supported set: {}",
                                      module_.describe(statement.source), statement.ptx_line, statement.opcode, what));
}

void Decoder::fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

Op& Decoder::emit(Op op) {
  op.index = static_cast<std::uint32_t>(kernel_.code.size());
  kernel_.code.push_back(op);
  kernel_.positions.push_back(statement_ == nullptr ? SourcePosition{} : statement_->source);
  kernel_.mnemonics.emplace_back(statement_ == nullptr ? "" : statement_->opcode);
  return kernel_.code.back();
}

bool Decoder::take(std::string_view what) {
  if (next_modifier_ >= modifiers_.size() || modifiers_[next_modifier_] != what) return false;
  ++next_modifier_;
  return true;
}

std::string_view Decoder::take_one(std::initializer_list<std::string_view> of) {
  for (const std::string_view what : of) {
    if (take(what)) return what;
  }
  return {};
}

Type Decoder::take_type() {
  const auto type = next_modifier_ < modifiers_.size() ? type_named(modifiers_[next_modifier_]) : std::nullopt;
  if (type) {
    ++next_modifier_;
    return *type;
  }
  fail(next_modifier_ < modifiers_.size() ? fmt::format("modifier .{}", modifiers_[next_modifier_]) : "no type");
  return Type::b32;
}

Ref Decoder::make_register(std::uint32_t size) {
  const std::uint32_t at = round_up(kernel_.register_bytes, kHeader);
  kernel_.register_headers.push_back(at);
  kernel_.register_bytes = at + kHeader + std::max(size * kLanes, kHeader);
  return {at + kHeader};
}

Ref Decoder::constant(std::uint64_t bits, std::uint32_t size) {
  if (size < 8) bits &= (std::uint64_t{1} << (8 * size)) - 1;
  const auto [found, is_new] = constants_.try_emplace({bits, size});
  if (!is_new) return found->second;
  const std::size_t at = kernel_.constants.size();
  kernel_.constants.resize(at + kHeader + size * kLanes);
  std::memset(kernel_.constants.data() + at, 0xFF, kHeader);
  for (std::size_t i = 0; i < kLanes; ++i) std::memcpy(kernel_.constants.data() + at + kHeader + i * size, &bits, size);
  kernel_.constants.resize(round_up(kernel_.constants.size(), kHeader));
  return found->second = {static_cast<std::uint32_t>(at + kHeader) | kConstantBit};
}

int Decoder::width(const Operand& operand) const {
  if (operand.variable < 0) return -1;
  const Variable& variable = function_->variables[static_cast<std::size_t>(operand.variable)];
  if (variable.space != Space::reg) return -1;
  return variable.type == Type::pred ? 0 : static_cast<int>(size_of(variable.type));
}

void Decoder::require_width(const Operand& operand, Type type) {
  const int wanted = type == Type::pred ? 0 : static_cast<int>(size_of(type));
  const int found = width(operand);
  if (operand.kind == Operand::Kind::name && found >= 0 && found != wanted) {
    fail(fmt::format("register {} has another width than the instruction", operand.name));
  }
}

Ref Decoder::destination(const Operand& operand) {
  if (operand.name == "_") return make_register(8);
  if (width(operand) >= 0) return place_function(*function_).registers[static_cast<std::size_t>(operand.variable)];
  fail(fmt::format("destination {}", operand.name));
  return {};
}

Ref Decoder::source(const Operand& operand, Type type) {
  const std::uint32_t size = size_of(type);
  switch (operand.kind) {
    case Operand::Kind::integer:
      if (is_float(type)) fail("an integer where a float is wanted");
      return constant(static_cast<std::uint64_t>(operand.value), size);
    case Operand::Kind::f32:
    case Operand::Kind::f64: {
      // the assembler rounds a double literal of an f32 instruction; nvcc writes each as what it is
      if ((operand.kind == Operand::Kind::f32) != (size == 4)) fail("a float literal of another type");
      return constant(static_cast<std::uint64_t>(operand.value), size);
    }
    case Operand::Kind::name:
      break;
    default:
      fail("an operand of that form");
      return {};
  }
  if (width(operand) >= 0) return place_function(*function_).registers[static_cast<std::size_t>(operand.variable)];
  if (operand.name.starts_with("%")) {
    if (size != 4) fail(fmt::format("{} in another type than 32 bits", operand.name));
    return special(operand.name);
  }
  const Place at = place(operand);
  return constant(at.address, size);
}

Decoder::Place Decoder::place(const Operand& operand) {
  const auto addend = static_cast<std::uint64_t>(operand.value);
  if (operand.variable >= 0) {
    const Variable& variable = function_->variables[static_cast<std::size_t>(operand.variable)];
    const std::uint64_t offset = place_function(*function_).offsets[static_cast<std::size_t>(operand.variable)];
    const bool is_parameter =
        function_->is_entry && static_cast<std::size_t>(operand.variable) < function_->parameters.size();
    if (variable.space == Space::param && !is_parameter) return {Space::local, offset + addend};
    return {variable.space, offset + addend};
  }
  for (const Variable& variable : module_.variables) {
    if (variable.name != operand.name) continue;
    if (variable.space == Space::shared) {
      return {Space::shared, shared_offset(variable) + addend};
    }
    return {variable.space, addresses_.find(variable.name)->second + addend};
  }
  fail(fmt::format("the name {}", operand.name));
  return {};
}

Ref Decoder::special(std::string_view name) {
  constexpr std::string_view kNames[] = {"%tid.x",          "%tid.y",       "%tid.z",
                                         "%ntid.x",         "%ntid.y",      "%ntid.z",
                                         "%ctaid.x",        "%ctaid.y",     "%ctaid.z",
                                         "%nctaid.x",       "%nctaid.y",    "%nctaid.z",
                                         "%laneid",         "%warpid",      "%nwarpid",
                                         "%lanemask_eq",    "%lanemask_le", "%lanemask_lt",
                                         "%lanemask_ge",    "%lanemask_gt", "%dynamic_smem_size",
                                         "%total_smem_size"};
  const auto found = specials_.find(name);
  if (found != specials_.end()) return found->second;
  const auto* at = std::find(std::begin(kNames), std::end(kNames), name);
  if (at == std::end(kNames)) {
    fail(fmt::format("special register {}", name));
    return {};
  }
  const Ref ref = make_register(4);
  kernel_.specials.emplace_back(static_cast<Special>(at - std::begin(kNames)), ref);
  return specials_[*at] = ref;
}

void Decoder::refs(Op& op, Type destination_type, std::initializer_list<Type> sources) {
  if (operands() != sources.size() + 1) {
    fail(fmt::format("{} operands", operands()));
    return;
  }
  require_width(operand(0), destination_type);
  op.refs[0] = destination(operand(0));
  std::size_t i = 0;
  for (const Type type : sources) {
    ++i;
    require_width(operand(i), type);
    if (operand(i).negated) fail("a negated operand");
    op.refs[i] = source(operand(i), type);
  }
}

void Decoder::note_access(Space space, std::uint32_t bytes) {
  const auto granule = static_cast<std::uint32_t>(std::bit_width(bytes)) - 1;
  if (space == Space::shared || space == Space::generic) {
    kernel_.shared_granule = std::min(kernel_.shared_granule, granule);
  }
  if (space == Space::global || space == Space::constant || space == Space::generic) {
    kernel_.global_granule = std::min(kernel_.global_granule, granule);
  }
}

std::uint32_t Decoder::label(const Operand& operand) {
  const auto found = function_->labels.find(operand.name);
  if (found != function_->labels.end()) return found->second;
  fail(fmt::format("the label {}", operand.name));
  return 0;
}

const Function* Decoder::function_named(std::string_view name) const {
  for (const Function& function : module_.functions) {
    if (function.name == name && function.has_body) return &function;
  }
  return nullptr;
}

std::uint32_t Decoder::entry_of(const Function& function) {
  const auto found = std::find(pending_.begin(), pending_.end(), &function);
  const auto index = static_cast<std::uint32_t>(found - pending_.begin());
  if (found == pending_.end()) pending_.push_back(&function);
  return index;
}

std::uint32_t Decoder::local_offset(const Function& function, std::int32_t variable) {
  return static_cast<std::uint32_t>(place_function(function).offsets[static_cast<std::size_t>(variable)]);
}

}  // namespace troupe::device::ptx
