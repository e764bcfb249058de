#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/clip.h"
#include "model/optim/adamw.h"
#include "model/shard/network.h"

namespace troupe::model {

/// How the units of one group (UnitSpec::group) are trained.
struct GroupOptions {
  AdamWOptions adamw = {};
  /// largest norm of the gradient of the groups that are clipped together; 0: off
  double clip_grad_norm = 0;
  /// Groups with the same word here, and the same clip_grad_norm, are clipped together, by the norm over those of them
  /// that one commit updates. Empty: the group alone.
  std::string clip_with = {};
};

/// Learning rates by group: what a commit updates.
using GroupRates = std::map<std::string, double>;

/// Which unit belongs to which group, what the groups' options are and how often each was updated. Groups are those of
/// trainable units in order of first appearance. Those without options of their own have the defaults and are clipped
/// together.
class UnitGroups {
 public:
  /// `defaults` is for groups that `options` does not name. An option for a group without units, or a clip set whose
  /// members differ in their limit, aborts the process.
  UnitGroups(const std::vector<UnitSpec>& units, const GroupOptions& defaults,
             const std::map<std::string, GroupOptions>& options);

  std::size_t size() const noexcept { return groups_.size(); }
  /// In order; StepVote::group_squares has the same.
  const std::vector<std::string>& names() const noexcept { return names_; }
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  /// Index of a unit's group; kNone where nothing is trained.
  std::size_t group_of(std::size_t unit) const { return of_unit_[unit]; }
  /// Of all units, kNoGroup where nothing is trained.
  std::vector<std::int32_t> of_units() const;
  /// Index of a name; kNone for one that no unit has.
  std::size_t find(const std::string& name) const;
  const std::vector<std::size_t>& units_of(std::size_t group) const { return groups_[group].units; }
  const AdamWOptions& adamw(std::size_t group) const { return groups_[group].options.adamw; }

  /// How an update of those groups clips.
  std::vector<kernels::ClipGroup> clip_groups(std::span<const std::size_t> updated) const;
  /// Clip factor of each group of `updated` (others 1), from the sums of squares of all groups.
  std::vector<float> clip_factors(std::span<const std::size_t> updated, std::span<const double> squares) const;

  /// Optimizer updates of each group: what corrects the bias of its moments.
  std::int64_t updates(std::size_t group) const { return groups_[group].updates; }
  void set_updates(std::size_t group, std::int64_t count) { groups_[group].updates = count; }

 private:
  struct Group {
    GroupOptions options;
    /// number of the first group of its clip set
    std::size_t clip_set = 0;
    std::int64_t updates = 0;
    std::vector<std::size_t> units;
  };
  std::vector<std::string> names_;
  std::vector<Group> groups_;
  std::vector<std::size_t> of_unit_;
};

}  // namespace troupe::model
