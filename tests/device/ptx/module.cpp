#include "tests/device/ptx/module.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "tests/device/ptx/lexer.h"

namespace troupe::device::ptx {
namespace {

/// A decimal or hexadecimal integer, with or without "U".
std::optional<std::uint64_t> integer_of(std::string_view text) {
  int base = 10;
  if (text.ends_with("U")) text.remove_suffix(1);
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "0f3F800000" and "0d3FF0000000000000": the kind and the bits.
std::optional<Operand> float_of(std::string_view text) {
  const bool single = text.starts_with("0f") || text.starts_with("0F");
  const bool twice = text.starts_with("0d") || text.starts_with("0D");
  if (text.size() != (single ? 10U : 18U) || !(single || twice)) return std::nullopt;
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Operand{.kind = single ? Operand::Kind::f32 : Operand::Kind::f64, .value = static_cast<std::int64_t>(bits)};
}

class Parser {
 public:
  explicit Parser(std::string text)
      : module_{.text = std::make_shared<const std::string>(std::move(text))}, lexer_(*module_.text) {}

  Result<Module> run() {
    find_files();
    while (lexer_.peek().kind != Token::Kind::end) TROUPE_TRY(module_item());
    return std::move(module_);
  }

 private:
  using Scope = std::map<std::string_view, std::int32_t>;

  Error error(std::string_view what) const {
    return invalid_argument(
        fmt::format("{}: line {} of the PTX: {} {}", module_.describe(position_), lexer_.peek().line, opcode_, what));
  }
  Error unexpected() const { return error(fmt::format("\"{}\" is not in the supported set", lexer_.peek().text)); }
  Result<void> expect(std::string_view what) {
    if (lexer_.take_if(what)) return {};
    return error(fmt::format("found \"{}\", wanted \"{}\"", lexer_.peek().text, what));
  }
  Result<std::uint64_t> number() {
    const auto value = integer_of(lexer_.peek().text);
    if (!value) return error(fmt::format("found \"{}\", wanted an integer", lexer_.peek().text));
    lexer_.take();
    return *value;
  }

  /// nvcc writes `.file` behind the code, and errors in the code name files.
  void find_files() {
    Lexer lexer(*module_.text);
    for (Token token = lexer.take(); token.kind != Token::Kind::end; token = lexer.take()) {
      if (!token.is(".file")) continue;
      const auto index = integer_of(lexer.take().text);
      if (index) module_.files[static_cast<std::uint32_t>(*index)] = std::string(lexer.take().text);
    }
  }

  Result<void> skip_section() {
    while (!lexer_.peek().is("{")) lexer_.take();
    for (int depth = 0; lexer_.peek().kind != Token::Kind::end;) {
      const Token token = lexer_.take();
      depth += token.is("{") - token.is("}");
      if (depth == 0) return {};
    }
    return error("a .section without its end");
  }

  Result<void> module_item() {
    const Token token = lexer_.peek();
    if (lexer_.take_if(".version")) {
      lexer_.take();
      while (lexer_.peek().kind == Token::Kind::word && lexer_.peek().text.size() < 4) lexer_.take();
      return {};
    }
    if (lexer_.take_if(".target")) {
      lexer_.take();
      while (lexer_.take_if(",")) lexer_.take();
      return {};
    }
    if (lexer_.take_if(".address_size")) {
      TROUPE_ASSIGN(const std::uint64_t bits, number());
      if (bits != 64) return error("addresses must have 64 bits");
      return {};
    }
    if (lexer_.take_if(".file")) {
      lexer_.take();
      lexer_.take();
      while (lexer_.take_if(",")) lexer_.take();
      return {};
    }
    if (lexer_.take_if(".loc")) return location();
    if (lexer_.take_if(".section")) return skip_section();
    if (lexer_.take_if(".pragma")) return skip_pragma();
    if (lexer_.take_if(".visible") || lexer_.take_if(".weak") || lexer_.take_if(".common") || lexer_.take_if(".extern"))
      return {};
    if (token.is(".entry") || token.is(".func")) return function();
    if (token.is(".global") || token.is(".const") || token.is(".shared")) return variables(module_.variables, nullptr);
    return unexpected();
  }

  Result<void> skip_pragma() {
    while (!lexer_.take_if(";")) lexer_.take();
    return {};
  }

  /// After `.loc`: file line column [, function_name label [+ offset], inlined_at file line column].
  Result<void> location() {
    SourcePosition position;
    const auto place = [&](std::uint32_t& file, std::uint32_t& line) -> Result<void> {
      TROUPE_ASSIGN(const std::uint64_t f, number());
      TROUPE_ASSIGN(const std::uint64_t l, number());
      TROUPE_TRY(number());
      file = static_cast<std::uint32_t>(f);
      line = static_cast<std::uint32_t>(l);
      return {};
    };
    TROUPE_TRY(place(position.file, position.line));
    while (lexer_.take_if(",")) {
      if (lexer_.take_if("function_name")) {
        lexer_.take();
        if (lexer_.take_if("+")) lexer_.take();
      } else {
        TROUPE_TRY(expect("inlined_at"));
        TROUPE_TRY(place(position.caller_file, position.caller_line));
      }
    }
    // what the toolkit's own headers inline (sm_30_intrinsics.hpp, cuda_bf16.hpp) belongs to the line that calls it
    if (position.caller_line != 0 && module_.files[position.file].ends_with(".hpp")) {
      position = {.file = position.caller_file, .line = position.caller_line};
    }
    // line 0 is the compiler's: what it moved stays with the line before
    if (position.line != 0) position_ = position;
    return {};
  }

  static Space space_of(std::string_view directive) {
    if (directive == ".global") return Space::global;
    if (directive == ".const") return Space::constant;
    if (directive == ".shared") return Space::shared;
    if (directive == ".local") return Space::local;
    return directive == ".param" ? Space::param : Space::reg;
  }

  /// `.global .align 16 .b8 name[4][32] = {...}`, and of registers lists and ranges `%r<12>`. Ends before `;` or `,` of
  /// a parameter list, which `scope` of a function with `in_list` says.
  Result<void> variables(std::vector<Variable>& into, Scope* scope, bool in_list = false) {
    Variable model;
    model.space = space_of(lexer_.take().text);
    while (true) {
      if (lexer_.take_if(".align")) {
        TROUPE_ASSIGN(const std::uint64_t align, number());
        model.align = static_cast<std::uint32_t>(align);
      } else if (lexer_.take_if(".ptr")) {  // what a kernel's parameter points to: says nothing that we check
        while (lexer_.peek().is(".global") || lexer_.peek().is(".const") || lexer_.peek().is(".shared")) lexer_.take();
      } else if (lexer_.peek().text.starts_with(".")) {
        const auto type = type_named(lexer_.peek().text.substr(1));
        if (!type) return unexpected();
        lexer_.take();
        model.type = *type;
      } else {
        break;
      }
    }
    if (model.align == 0) model.align = size_of(model.type);
    do {
      Variable variable = model;
      const std::string_view name = lexer_.take().text;
      variable.name = std::string(name);
      variable.size = size_of(model.type);
      if (lexer_.take_if("<")) {
        TROUPE_ASSIGN(const std::uint64_t count, number());
        TROUPE_TRY(expect(">"));
        ranges_.push_back({name, count, model});
        continue;
      }
      while (lexer_.take_if("[")) {
        std::uint64_t count = 0;
        if (!lexer_.peek().is("]")) {
          TROUPE_ASSIGN(count, number());
        }
        TROUPE_TRY(expect("]"));
        variable.size *= count;
      }
      if (lexer_.take_if("=")) TROUPE_TRY(initialiser(variable));
      if (scope != nullptr) (*scope)[name] = static_cast<std::int32_t>(into.size());
      into.push_back(std::move(variable));
    } while (!in_list && lexer_.take_if(","));
    if (in_list) return {};
    return expect(";");
  }

  Result<void> initialiser(Variable& variable) {
    std::uint64_t offset = 0;
    variable.initial.assign(variable.size, std::byte{0});
    int depth = 0;
    do {
      while (lexer_.take_if("{")) ++depth;
      if (!lexer_.peek().is("}")) TROUPE_TRY(initial_value(variable, offset));
      offset += size_of(variable.type);
      while (depth > 0 && lexer_.take_if("}")) --depth;
    } while (depth > 0 && lexer_.take_if(","));
    return depth == 0 ? Result<void>{} : unexpected();
  }

  Result<void> initial_value(Variable& variable, std::uint64_t offset) {
    if (offset + size_of(variable.type) > variable.size) return error("more initial values than elements");
    std::uint64_t bits = 0;
    const Token token = lexer_.peek();
    if (token.kind == Token::Kind::word) {
      lexer_.take();
      const bool generic = token.is("generic");
      if (generic) TROUPE_TRY(expect("("));
      Variable::Reference reference{.offset = offset, .name = generic ? lexer_.take().text : token.text};
      if (generic) TROUPE_TRY(expect(")"));
      if (lexer_.take_if("+")) {
        TROUPE_ASSIGN(const std::uint64_t addend, number());
        reference.addend = static_cast<std::int64_t>(addend);
      }
      if (size_of(variable.type) != 8) return error("an address in less than 8 bytes");
      variable.references.push_back(reference);
    } else {
      TROUPE_ASSIGN(const Operand value, literal());
      bits = static_cast<std::uint64_t>(value.value);
    }
    std::memcpy(variable.initial.data() + offset, &bits, size_of(variable.type));
    return {};
  }

  Result<Operand> literal() {
    const bool minus = lexer_.take_if("-");
    const std::string_view text = lexer_.peek().text;
    if (auto value = float_of(text)) {
      lexer_.take();
      if (minus) value->value ^= std::int64_t{1} << (value->kind == Operand::Kind::f32 ? 31 : 63);
      return *value;
    }
    TROUPE_ASSIGN(const std::uint64_t bits, number());
    return Operand{.kind = Operand::Kind::integer, .value = static_cast<std::int64_t>(minus ? 0 - bits : bits)};
  }

  Result<void> parameter_list(std::vector<std::int32_t>& into) {
    TROUPE_TRY(expect("("));
    while (!lexer_.take_if(")")) {
      into.push_back(static_cast<std::int32_t>(function_.variables.size()));
      if (!lexer_.peek().is(".param")) return unexpected();
      TROUPE_TRY(variables(function_.variables, &scopes_.back(), true));
      lexer_.take_if(",");
    }
    return {};
  }

  Result<void> function() {
    function_ = Function{};
    scopes_.assign(1, {});
    ranges_.clear();
    function_.is_entry = lexer_.take().is(".entry");
    if (!function_.is_entry && lexer_.peek().is("(")) TROUPE_TRY(parameter_list(function_.results));
    function_.name = std::string(lexer_.take().text);
    if (lexer_.peek().is("(")) TROUPE_TRY(parameter_list(function_.parameters));
    while (!lexer_.peek().is("{") && !lexer_.peek().is(";")) {
      const Token directive = lexer_.peek();
      if (directive.is(".maxntid") || directive.is(".reqntid") || directive.is(".minnctapersm") ||
          directive.is(".maxnreg") || directive.is(".noreturn")) {
        lexer_.take();
        while (lexer_.peek().kind == Token::Kind::number || lexer_.peek().is(",")) lexer_.take();
      } else {
        return unexpected();
      }
    }
    if (!lexer_.take_if(";")) {
      function_.has_body = true;
      TROUPE_TRY(body());
    }
    module_.functions.push_back(std::move(function_));
    return {};
  }

  Result<void> body() {
    TROUPE_TRY(expect("{"));
    scopes_.emplace_back();
    while (scopes_.size() > 1) {
      const Token token = lexer_.peek();
      if (lexer_.take_if("{")) {
        scopes_.emplace_back();
      } else if (lexer_.take_if("}")) {
        scopes_.pop_back();
      } else if (lexer_.take_if(".loc")) {
        TROUPE_TRY(location());
      } else if (lexer_.take_if(".pragma")) {
        TROUPE_TRY(skip_pragma());
      } else if (token.is(".reg") || token.is(".local") || token.is(".param") || token.is(".shared")) {
        TROUPE_TRY(variables(function_.variables, &scopes_.back()));
      } else if (token.kind == Token::Kind::end || token.text.starts_with(".")) {
        return unexpected();
      } else if (!lexer_.take_if(";")) {
        TROUPE_TRY(statement());
      }
    }
    return {};
  }

  /// The function's variable of that name, made now if it is one of a range of registers.
  std::int32_t find(std::string_view name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return found->second;
    }
    for (const Range& range : ranges_) {
      if (!name.starts_with(range.prefix)) continue;
      const auto index = integer_of(name.substr(range.prefix.size()));
      if (!index || *index >= range.count) continue;
      function_.variables.push_back(range.model);
      function_.variables.back().name = std::string(name);
      return scopes_[0][name] = static_cast<std::int32_t>(function_.variables.size()) - 1;
    }
    return -1;
  }

  Result<void> statement() {
    Statement statement{.source = position_, .ptx_line = lexer_.peek().line};
    if (lexer_.take_if("@")) {
      statement.guard_negated = lexer_.take_if("!");
      statement.guard = find(lexer_.take().text);
      if (statement.guard < 0) return error("a guard that is no predicate register");
    }
    const Token opcode = lexer_.take();
    if (opcode.kind != Token::Kind::word) return error(fmt::format("found \"{}\", wanted an instruction", opcode.text));
    if (lexer_.take_if(":")) return label(opcode.text);
    statement.opcode = opcode_ = opcode.text;
    while (!lexer_.take_if(";")) {
      TROUPE_ASSIGN(Operand next, operand());
      statement.operands.push_back(std::move(next));
      if (!lexer_.peek().is(";")) TROUPE_TRY(expect(","));
    }
    function_.statements.push_back(std::move(statement));
    opcode_ = {};
    return {};
  }

  Result<void> label(std::string_view name) {
    if (lexer_.take_if(".branchtargets")) {
      auto& targets = function_.branch_targets[name];
      do {
        targets.push_back(lexer_.take().text);
      } while (lexer_.take_if(","));
      return expect(";");
    }
    if (lexer_.peek().text.starts_with(".call")) return unexpected();
    function_.labels[name] = static_cast<std::uint32_t>(function_.statements.size());
    return {};
  }

  Result<Operand> parts(Operand::Kind kind, std::string_view end) {
    lexer_.take();
    Operand all{.kind = kind};
    while (!lexer_.take_if(end)) {
      TROUPE_ASSIGN(Operand part, operand());
      all.parts.push_back(std::move(part));
      if (!lexer_.peek().is(end)) TROUPE_TRY(expect(","));
    }
    return all;
  }

  Result<Operand> operand() {
    const Token token = lexer_.peek();
    if (token.is("{")) return parts(Operand::Kind::vector, "}");
    if (token.is("(")) return parts(Operand::Kind::list, ")");
    if (token.is("-") || token.kind == Token::Kind::number) return literal();
    if (lexer_.take_if("[")) {
      TROUPE_ASSIGN(Operand address, operand());
      TROUPE_TRY(expect("]"));
      if (address.kind != Operand::Kind::name && address.kind != Operand::Kind::integer) return unexpected();
      address.kind = Operand::Kind::address;
      return address;
    }
    Operand named{.negated = lexer_.take_if("!")};
    named.name = lexer_.take().text;
    named.variable = find(named.name);
    if (lexer_.take_if("|")) {
      TROUPE_ASSIGN(Operand second, operand());
      named.parts.push_back(std::move(second));
    } else if (lexer_.peek().is("+") || lexer_.peek().is("-")) {
      lexer_.take_if("+");
      TROUPE_ASSIGN(const Operand offset, literal());
      named.value = offset.value;
    }
    return named;
  }

  struct Range {
    std::string_view prefix;
    std::uint64_t count;
    Variable model;
  };

  Module module_;
  Lexer lexer_;
  SourcePosition position_;
  std::string_view opcode_ = {};
  Function function_;
  std::vector<Scope> scopes_;
  std::vector<Range> ranges_;
};

}  // namespace

Result<Module> Module::parse(std::string text) { return Parser(std::move(text)).run(); }

std::string Module::describe(const SourcePosition& position) const {
  const auto place = [this](std::uint32_t file, std::uint32_t line) {
    const auto found = files.find(file);
    return found == files.end() ? std::string("PTX without lines") : fmt::format("{}:{}", found->second, line);
  };
  if (position.caller_line == 0) return place(position.file, position.line);
  return place(position.file, position.line) + ", inlined at " + place(position.caller_file, position.caller_line);
}

}  // namespace troupe::device::ptx
