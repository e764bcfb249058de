#include "workers/learner/divergence.h"

#include <fmt/format.h>

namespace troupe::workers {

namespace {
constexpr std::size_t kRemembered = 5;
}

void Divergence::applied(std::int64_t step, double gradient_norm) {
  in_a_row_ = 0;
  before_.push_back({.step = step, .gradient_norm = gradient_norm});
  if (before_.size() > kRemembered) before_.pop_front();
}

Result<void> Divergence::discarded(std::int64_t step, double learning_rate) {
  if (in_a_row_++ == 0) first_ = step;
  if (in_a_row_ < rule_.most_in_a_row) return {};
  const std::string advice =
      before_.empty()
          ? fmt::format("No update was ever made: look at {}, or at the weights it starts from", rule_.suspect)
          : fmt::format(
                "Lower optimizer.lr, to {:.3g} for a start, or training.clip_grad_norm; if that does "
                "not help, look at {}",
                learning_rate / 10, rule_.suspect);
  return Error{Errc::failed_precondition,
               fmt::format("training diverged: {} {} in a row, from step {} on, had a loss or gradient that is not "
                           "finite ({}). {}",
                           in_a_row_, rule_.updates, first_, story(learning_rate), advice)};
}

std::string Divergence::story(double learning_rate) const {
  std::string text = fmt::format("learning rate {:g}; gradient norms before: ", learning_rate);
  for (std::size_t i = 0; i < before_.size(); ++i) {
    text += fmt::format("{}step {} {:.3g}", i == 0 ? "" : ", ", before_[i].step, before_[i].gradient_norm);
  }
  return before_.empty() ? text + "none" : text;
}

void Divergence::reset() {
  before_.clear();
  in_a_row_ = 0;
}

}  // namespace troupe::workers
