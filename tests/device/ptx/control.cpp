// Branches, calls, barriers and fences. Source: PTX ISA 9.0, "Control Flow Instructions", "Parallel Synchronization and
// Communication Instructions: bar, barrier, membar, fence".
#include <fmt/format.h>

#include "tests/device/ptx/block_state.h"
#include "tests/device/ptx/lanes.h"
#include "tests/device/ptx/warp.h"

namespace troupe::device::ptx {
namespace {

void nothing(WarpState&, const Op&) {}

bool branch(Decoder& decoder) {
  decoder.take("uni");
  if (decoder.operands() != 1) return false;
  decoder.emit({.run = &nothing, .flow = Flow::branch, .target = decoder.label(decoder.operand(0))});
  return true;
}

/// refs: the index. Op::target: the table.
bool indexed_branch(Decoder& decoder) {
  if (!decoder.take("idx")) return false;
  decoder.take("uni");
  const auto list = decoder.function().branch_targets.find(decoder.operand(1).name);
  if (list == decoder.function().branch_targets.end()) return false;
  std::vector<std::uint32_t> table;
  for (const std::string_view name : list->second) table.push_back(decoder.label(Operand{.name = name}));
  Op op{.run = &nothing, .flow = Flow::indexed_branch};
  op.target = static_cast<std::uint32_t>(decoder.kernel().branch_tables.size());
  op.refs[0] = decoder.source(decoder.operand(0), Type::u32);
  decoder.kernel().branch_tables.push_back(std::move(table));
  decoder.emit(op);
  return true;
}

/// Moves parameters and results between the local memories of caller and callee. Op::a: place in Kernel::copies.
void copy_local(WarpState& warp, const Op& op) {
  const Kernel& kernel = *warp.block->launch->kernel;
  for (const Kernel::Copy& copy : kernel.copies[op.a]) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if ((warp.active >> lane & 1) == 0) continue;
      const std::size_t base = lane * kernel.local_bytes;
      std::memcpy(warp.local + base + copy.to, warp.local + base + copy.from, copy.size);
      std::memcpy(warp.local_written + base + copy.to, warp.local_written + base + copy.from, copy.size);
    }
  }
}

void trap(WarpState& warp, const Op& op) { warp.report(FindingKind::trap, op, warp.active, "the kernel stops itself"); }

bool emit_trap(Decoder& decoder) {
  decoder.emit({.run = &trap, .flow = Flow::exit, .a = 1});
  return true;
}

/// `call (results), function, (parameters)`; results and parameters may be missing.
bool call(Decoder& decoder) {
  decoder.take("uni");
  std::size_t at = 0;
  const std::vector<Operand> none;
  const bool has_results = decoder.operand(0).kind == Operand::Kind::list;
  const auto& results = has_results ? decoder.operand(at++).parts : none;
  if (at >= decoder.operands()) return false;
  const std::string_view name = decoder.operand(at++).name;
  if (name == "__assertfail") return emit_trap(decoder);
  const auto& parameters = at < decoder.operands() ? decoder.operand(at).parts : none;
  const Function* callee = decoder.function_named(name);
  if (callee == nullptr || parameters.size() != callee->parameters.size() || results.size() != callee->results.size()) {
    decoder.fail(fmt::format("a call of {}, which is no function with a body here", name));
    return false;
  }
  if (callee == &decoder.function()) {
    decoder.fail("a recursive call");
    return false;
  }
  std::vector<Kernel::Copy> in, out;
  const auto bytes = [&](std::int32_t variable) {
    return static_cast<std::uint32_t>(callee->variables[static_cast<std::size_t>(variable)].size);
  };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto formal = callee->parameters[i];
    in.push_back({static_cast<std::uint32_t>(decoder.place(parameters[i]).address),
                  decoder.local_offset(*callee, formal), bytes(formal)});
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto formal = callee->results[i];
    out.push_back({decoder.local_offset(*callee, formal), static_cast<std::uint32_t>(decoder.place(results[i]).address),
                   bytes(formal)});
  }
  auto& copies = decoder.kernel().copies;
  const auto first = static_cast<std::uint32_t>(copies.size());
  copies.push_back(std::move(in));
  copies.push_back(std::move(out));
  decoder.emit({.run = &copy_local, .a = first});
  decoder.emit({.run = &nothing, .flow = Flow::call, .target = decoder.entry_of(*callee)});
  decoder.emit({.run = &copy_local, .a = first + 1});
  return true;
}

/// refs: d, barrier, threads, p. Op::a: BarrierKind; Op::b: threads are given; Op::c: p is negated.
bool barrier(Decoder& decoder) {
  decoder.take("cta");
  Op op{.run = &nothing, .flow = Flow::barrier};
  std::size_t at = 0;
  if (decoder.take("red")) {
    const std::string_view what = decoder.take_one({"popc", "and", "or"});
    if (what.empty()) return false;
    op.a = static_cast<std::uint32_t>(what == "popc"  ? BarrierKind::popc
                                      : what == "and" ? BarrierKind::all
                                                      : BarrierKind::any);
    decoder.take("aligned");
    if (!decoder.take(what == "popc" ? "u32" : "pred")) return false;
    op.refs[0] = decoder.destination(decoder.operand(at++));
  } else if (decoder.take("arrive")) {
    op.a = static_cast<std::uint32_t>(BarrierKind::arrive);
  } else if (!decoder.take("sync")) {
    return false;
  }
  decoder.take("aligned");
  const bool reduces = op.a >= static_cast<std::uint32_t>(BarrierKind::popc);
  std::size_t left = decoder.operands() - at;
  if (left < (reduces ? 2U : 1U)) return false;
  op.refs[1] = decoder.source(decoder.operand(at++), Type::b32);
  if (left > (reduces ? 2U : 1U)) {
    op.b = 1;
    op.refs[2] = decoder.source(decoder.operand(at++), Type::b32);
  }
  if (reduces) {
    op.refs[3] = decoder.source(decoder.operand(at), Type::b32);
    op.c = decoder.operand(at).negated ? 1 : 0;
  }
  decoder.emit(op);
  return true;
}

}  // namespace

bool decode_control(Decoder& decoder, std::string_view mnemonic) {
  if (mnemonic == "bra") return branch(decoder);
  if (mnemonic == "brx") return indexed_branch(decoder);
  if (mnemonic == "call") return decoder.operands() > 0 && call(decoder);
  if (mnemonic == "ret" || mnemonic == "exit") {
    decoder.take("uni");
    decoder.emit({.run = &nothing, .flow = mnemonic == "ret" ? Flow::ret : Flow::exit});
    return true;
  }
  if (mnemonic == "trap") return emit_trap(decoder);
  if (mnemonic == "bar" || mnemonic == "barrier") return barrier(decoder);
  // memory is seen by all at once here, so that fences order nothing more
  if (mnemonic == "membar" || mnemonic == "fence") {
    decoder.take_one({"sc", "acq_rel", "acquire", "release"});
    if (decoder.take_one({"cta", "gl", "gpu", "sys"}).empty()) return false;
    decoder.emit({.run = &nothing});
    return true;
  }
  return false;
}

}  // namespace troupe::device::ptx
