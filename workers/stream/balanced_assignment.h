#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>

namespace troupe::workers {

/// A balanced assignment of numbered things (lanes of a feed, blocks of environments) to owners that come and go:
/// shares differ by one at most, and as little as possible moves. Nothing moves by itself: a caller asks wanted() for
/// each thing when it may move, and deal() moves it. The result depends only on the order of calls. Not thread-safe.
class BalancedAssignment {
 public:
  /// An owner that has nothing yet; one that is known keeps what it has.
  void add(const std::string& owner) { shares_.try_emplace(owner, 0); }
  /// The owner is gone: what it had belongs to nobody.
  void remove(const std::string& owner) {
    shares_.erase(owner);
    std::erase_if(owners_, [&](const auto& entry) { return entry.second == owner; });
  }
  /// Nobody has `thing` any more.
  void put_back(std::int64_t thing) {
    const auto found = owners_.find(thing);
    if (found == owners_.end()) return;
    --shares_[found->second];
    owners_.erase(found);
  }
  /// Whether it was added and not removed.
  bool has(const std::string& owner) const { return shares_.count(owner) != 0; }
  std::size_t num_owners() const { return shares_.size(); }
  /// Who has it; null: nobody.
  const std::string* owner(std::int64_t thing) const {
    const auto found = owners_.find(thing);
    return found == owners_.end() ? nullptr : &found->second;
  }
  /// Who should have it: its owner, unless another would still have less after taking it, or its preferred owner has
  /// nothing; without an owner, who has least, the preferred one and those behind it by name first. `place` in [0, 1)
  /// prefers one: the owner so far down the names, so that several assignments over the same owners spread what each
  /// has little of. Null: there are no owners.
  const std::string* wanted(std::int64_t thing, double place = 0) const {
    if (shares_.empty()) return nullptr;
    const auto preferred =
        std::next(shares_.begin(), static_cast<std::ptrdiff_t>(place * static_cast<double>(shares_.size())));
    auto least = preferred, it = preferred;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      if (it->second < least->second) least = it;
      if (++it == shares_.end()) it = shares_.begin();
    }
    const std::string* const present = owner(thing);
    if (present == nullptr) return &least->first;
    const std::int64_t share = shares_.at(*present);
    if (share > least->second + 1) return &least->first;
    return place > 0 && preferred->second == 0 ? &preferred->first : present;
  }
  /// Gives it to wanted() and returns that owner. Null: there are no owners. The pointer is valid until the next
  /// change.
  const std::string* deal(std::int64_t thing, double place = 0) {
    const std::string* const to = wanted(thing, place);
    if (to == nullptr || to == owner(thing)) return to;
    const std::string name = *to;
    put_back(thing);
    ++shares_[name];
    return &(owners_[thing] = name);
  }

 private:
  // By name, so that ties are broken alike everywhere.
  std::map<std::string, std::int64_t> shares_;  // things of each owner
  std::map<std::int64_t, std::string> owners_;
};

}  // namespace troupe::workers
