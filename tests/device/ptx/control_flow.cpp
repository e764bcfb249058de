// Where lanes that part at a branch meet again: at the nearest instruction that every way from there passes. Ways that
// only end the kernel do not count, or no warp with an early `return` would ever be whole again.
#include <algorithm>
#include <map>
#include <set>

#include "tests/device/ptx/decoder.h"

namespace troupe::device::ptx {
namespace {

struct BasicBlock {
  std::uint32_t begin = 0, end = 0;
  std::vector<std::uint32_t> next = {};
  std::uint32_t num_before = 0;
  /// By block: it is on every way from here.
  std::vector<bool> always = {};
};

class Blocks {
 public:
  Blocks(Kernel& kernel, std::uint32_t begin, std::uint32_t end) : kernel_(kernel) {
    std::set<std::uint32_t> starts = {begin};
    for (std::uint32_t i = begin; i < end; ++i) {
      if (!ends_block(kernel.code[i])) continue;
      if (i + 1 < end) starts.insert(i + 1);
      for (const std::uint32_t target : targets(kernel.code[i])) starts.insert(target);
    }
    std::map<std::uint32_t, std::uint32_t> block_at;
    for (const std::uint32_t start : starts) {
      block_at[start] = static_cast<std::uint32_t>(blocks_.size());
      if (!blocks_.empty()) blocks_.back().end = start;
      blocks_.push_back({.begin = start, .end = end});
    }
    for (BasicBlock& block : blocks_) {
      const Op& last = kernel.code[block.end - 1];
      const bool leaves = last.flow == Flow::ret || last.flow == Flow::exit;
      for (const std::uint32_t target : targets(last)) block.next.push_back(block_at[target]);
      const bool falls_through = last.guard != kNone || !(leaves || is_jump(last));
      if (falls_through && block.end < end) block.next.push_back(block_at[block.end]);
      for (const std::uint32_t next : block.next) ++blocks_[next].num_before;
    }
  }

  void find_joins() {
    // from all blocks down to those on every way, until nothing changes
    for (BasicBlock& block : blocks_) block.always.assign(blocks_.size(), true);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = blocks_.size(); i-- > 0;) {
        std::vector<bool> always = common(blocks_[i]);
        always[i] = true;
        changed = changed || always != blocks_[i].always;
        blocks_[i].always = std::move(always);
      }
    }
    for (const BasicBlock& block : blocks_) {
      Op& last = kernel_.code[block.end - 1];
      if (!is_jump(last) || block.next.size() < 2) continue;
      // the nearest is the one from which all others are still to come
      const auto all = common(block);
      std::ptrdiff_t most = 0;
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const auto count = std::count(blocks_[i].always.begin(), blocks_[i].always.end(), true);
        if (!all[i] || count <= most) continue;
        most = count;
        last.join = blocks_[i].begin;
      }
    }
  }

 private:
  static bool is_jump(const Op& op) { return op.flow == Flow::branch || op.flow == Flow::indexed_branch; }
  static bool ends_block(const Op& op) { return is_jump(op) || op.flow == Flow::ret || op.flow == Flow::exit; }

  std::vector<std::uint32_t> targets(const Op& op) const {
    if (op.flow == Flow::branch) return {op.target};
    if (op.flow == Flow::indexed_branch) return kernel_.branch_tables[op.target];
    return {};
  }

  /// Ends the kernel and joins no other arm: one that returns early, or the bare `ret` that all arms jump to.
  bool only_leaves(std::uint32_t index, int depth = 0) const {
    const BasicBlock& block = blocks_[index];
    if (block.next.empty() && block.end - block.begin == 1) return true;
    if (block.num_before > 1 || depth > 8) return false;
    return std::all_of(block.next.begin(), block.next.end(), [&](auto next) { return only_leaves(next, depth + 1); });
  }

  /// Blocks on every way that goes on from the end of `block`.
  std::vector<bool> common(const BasicBlock& block) const {
    std::vector<std::uint32_t> ways;
    for (const std::uint32_t next : block.next) {
      if (!only_leaves(next)) ways.push_back(next);
    }
    if (ways.empty()) ways = block.next;
    std::vector<bool> all(blocks_.size(), !ways.empty());
    for (const std::uint32_t way : ways) {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = all[i] && blocks_[way].always[i];
    }
    return all;
  }

  Kernel& kernel_;
  std::vector<BasicBlock> blocks_;
};

}  // namespace

void find_joins(Kernel& kernel, std::uint32_t begin, std::uint32_t end) { Blocks(kernel, begin, end).find_joins(); }

}  // namespace troupe::device::ptx
