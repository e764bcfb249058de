#include "model/policy/ppo_gradient.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace troupe::model {
namespace {

double scalar_or(const at::Tensor& x, std::int64_t index, double fallback) {
  if (!x.defined()) return fallback;
  // an operation for each number costs more than the loss of a small minibatch
  if (x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous() && index < x.numel())
    return static_cast<double>(x.const_data_ptr<float>()[index]);
  return x.reshape({-1})[index].item<double>();
}

const float* data_of(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; }

/// Weight of every cell in the metrics and in the loss, [rows * cells] (make_cell_weights), and what of it was
/// executed.
struct Cells {
  std::int64_t rows = 0, count = 0;  ///< cells of a row: K, or 1 with rewards of whole chunks
  std::int64_t chunk = 1;            ///< K
  std::vector<float> metric, loss;
  /// Executed actions of every cell.
  std::vector<std::int64_t> actions;
  /// [rows * K]; null: every action of a cell that counts.
  const bool* executed = nullptr;
};

/// Fills `cells`, whose memory is kept from one micro-batch to the next.
void count_cells(const PolicyGradientInputs& in, const PolicyGradientOptions& o, Cells& cells) {
  cells.rows = in.old_logp.size(0);
  cells.count = o.reward_per_action ? o.chunk : 1;
  cells.chunk = o.chunk;
  cells.executed = nullptr;
  const auto total = static_cast<std::size_t>(cells.rows * cells.count);
  cells.actions.assign(total, o.chunk / cells.count);
  // 1 for a cell any of whose actions was executed
  cells.metric.assign(total, 1.0f);
  auto valid = static_cast<std::int64_t>(total);
  if (in.mask.defined()) {
    const std::int64_t width = in.mask.size(1);
    TORCH_CHECK(in.mask.dim() == 2 && in.mask.size(0) == cells.rows && (width == o.chunk || width == cells.count),
                "the mask has shape ", in.mask.sizes(), "; it must be [", cells.rows, ", ", o.chunk, "]");
    const bool* mask = in.mask.const_data_ptr<bool>();
    const bool has_actions = width == o.chunk && o.chunk > 1;
    if (has_actions) cells.executed = mask;
    const std::int64_t per_cell = width / cells.count;
    for (std::size_t c = 0; c < total; ++c, mask += per_cell) {
      const auto counted = std::count(mask, mask + per_cell, true);
      if (counted == 0) cells.metric[c] = 0, --valid;
      if (has_actions) cells.actions[c] = counted;
    }
  }
  const double mean = 1.0 / static_cast<double>(std::max<std::int64_t>(1, valid));
  const float metric = static_cast<float>(scalar_or(in.scale, 0, mean));
  cells.loss = cells.metric;
  for (float& weight : cells.metric) weight *= metric;
  if (o.aggregation == Aggregation::mean) {
    cells.loss = cells.metric;
    return;
  }
  TORCH_CHECK(in.valid_steps.defined() && o.max_episode_steps > 0,
              "aggregation trajectory needs the valid steps of every row's trajectory and the longest episode's steps");
  const double all = in.scale.defined() ? scalar_or(in.scale, in.scale.numel() - 1, 1)
                                        : 1.0 / static_cast<double>(std::max<std::size_t>(1, total));
  const float* steps = in.valid_steps.const_data_ptr<float>();
  for (std::size_t c = 0; c < total; ++c) {
    const double valid_steps = std::max(1.0f, steps[c / static_cast<std::size_t>(cells.count)]);
    cells.loss[c] *= static_cast<float>(static_cast<double>(o.max_episode_steps) / valid_steps * all);
  }
}

double sum_of(const float* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

/// How the L numbers of a row are grouped: entry e is the sum of those of `width` neighbours that belong to executed
/// actions. Several entries of a cell share its weight, as far as they were executed.
class Entries {
 public:
  Entries(std::int64_t l, const Cells& cells, Granularity level)
      : count(level == Granularity::chunk    ? 1
              : level == Granularity::action ? cells.chunk
                                             : l),
        width(l / count),
        cells_(cells),
        per_action_(l / cells.chunk) {}

  const std::int64_t count, width;

  /// Calls f(first number, numbers) for each stretch of an entry's numbers that was executed.
  template <class F>
  void for_executed(std::int64_t row, std::int64_t entry, const F& f) const {
    const std::int64_t first = row * count * width + entry * width;
    const bool* executed = cells_.executed == nullptr ? nullptr : cells_.executed + row * cells_.chunk;
    if (executed == nullptr) {
      f(first, width);
    } else if (width <= per_action_) {
      if (executed[entry * width / per_action_]) f(first, width);
    } else {
      for (std::int64_t a = 0; a < cells_.chunk; ++a) {
        if (executed[a]) f(first + a * per_action_, per_action_);
      }
    }
  }
  double sum(const float* x, std::int64_t row, std::int64_t entry) const {
    double sum = 0;
    for_executed(row, entry, [&](std::int64_t first, std::int64_t n) { sum += sum_of(x + first, n); });
    return sum;
  }
  bool is_executed(std::int64_t row, std::int64_t entry) const {
    bool any = false;
    for_executed(row, entry, [&any](std::int64_t, std::int64_t) { any = true; });
    return any;
  }
  /// 1 / entries that share a cell's weight; 1 where an entry is as wide as a cell, or wider.
  float share(std::int64_t cell) const {
    if (count <= cells_.count) return 1.0f;
    return 1.0f / static_cast<float>(cells_.actions[static_cast<std::size_t>(cell)] * (count / cells_.chunk));
  }
  /// `value` to an entry's executed numbers.
  void fill(float* x, std::int64_t row, std::int64_t entry, float value) const {
    for_executed(row, entry, [&](std::int64_t first, std::int64_t n) { std::fill_n(x + first, n, value); });
  }

 private:
  const Cells& cells_;
  const std::int64_t per_action_;
};

struct ActorSums {
  double loss = 0, loss_abs = 0, ratio = 0, ratio_abs = 0, clipped = 0, dual = 0, log_ratio = 0, k3 = 0,
         clip_fraction = 0;
};

/// d loss / d logp of one entry, times 1; adds to the sums, which are weighed by the entry's share of its cell.
float actor_entry(float difference, float advantage, const PpoClip& clip, float loss_weight, float metric_weight,
                  ActorSums& sums) {
  const float lowest = static_cast<float>(clip.log_ratio_min), highest = static_cast<float>(clip.log_ratio_max);
  const float log_ratio = std::clamp(difference, lowest, highest);
  const float ratio = std::exp(log_ratio);
  const float lower = static_cast<float>(clip.reciprocal ? 1.0 / (1.0 + clip.low) : 1.0 - clip.low);
  const float clipped = std::clamp(ratio, lower, static_cast<float>(1.0 + clip.high));
  const float free_loss = -advantage * ratio, clipped_loss = -advantage * clipped;
  float loss = std::max(free_loss, clipped_loss);
  float slope = free_loss >= clipped_loss ? -advantage * ratio : 0.0f;
  if (difference < lowest || difference > highest) slope = 0;
  bool is_dual = false;
  if (clip.dual > 0) {
    const float bound = static_cast<float>(clip.dual) * std::abs(advantage);
    is_dual = bound < loss;
    if (is_dual) {
      loss = bound;
      slope = 0;
    }
  }
  const double m = static_cast<double>(metric_weight);
  sums.loss += static_cast<double>(loss * loss_weight);
  sums.loss_abs += static_cast<double>(std::abs(loss) * loss_weight);
  sums.ratio += m * static_cast<double>(ratio);
  sums.ratio_abs += m * static_cast<double>(std::abs(ratio - 1));
  sums.clipped += m * static_cast<double>(clipped);
  sums.dual += is_dual ? m * static_cast<double>(ratio) : 0.0;
  sums.log_ratio += m * static_cast<double>(log_ratio);
  sums.k3 += m * static_cast<double>(1 / ratio + log_ratio - 1);
  sums.clip_fraction += free_loss < clipped_loss ? m : 0.0;
  return slope * loss_weight;
}

ActorSums actor_gradient(const at::Tensor& new_logp, const PolicyGradientInputs& in, const PolicyGradientOptions& o,
                         const Cells& cells, float factor, const at::Tensor& target) {
  const Entries entries(new_logp.size(1), cells, o.logp_level);
  TORCH_CHECK(entries.count % cells.count == 0, "log-probabilities of whole chunks do not fit rewards of actions");
  const std::int64_t per_cell = entries.count / cells.count;
  const float* logp = data_of(new_logp);
  const float* old_logp = data_of(in.old_logp);
  const float* advantage = data_of(in.advantage);
  float* out = target.data_ptr<float>();
  std::fill_n(out, target.numel(), 0.0f);
  ActorSums sums;
  for (std::int64_t c = 0; c < cells.rows * cells.count; ++c) {
    const auto cell = static_cast<std::size_t>(c);
    if (cells.metric[cell] == 0) continue;
    const std::int64_t row = c / cells.count, first = c % cells.count * per_cell;
    const float share = entries.share(c);
    for (std::int64_t e = first; e < first + per_cell; ++e) {
      if (!entries.is_executed(row, e)) continue;
      // f64: log-probabilities of many numbers are large, and their difference small
      const auto difference = static_cast<float>(entries.sum(logp, row, e) - entries.sum(old_logp, row, e));
      const float slope =
          actor_entry(difference, advantage[cell], o.clip, cells.loss[cell] * share, cells.metric[cell] * share, sums);
      entries.fill(out, row, e, factor * slope);
    }
  }
  return sums;
}

/// Mean entropy; its gradient is the same for all numbers of an entry.
double entropy_gradient(const at::Tensor& entropies, const PolicyGradientOptions& o, const Cells& cells, float factor,
                        const at::Tensor& target) {
  const Entries entries(entropies.size(1), cells, o.entropy_level);
  const float* entropy = data_of(entropies);
  float* out = target.data_ptr<float>();
  std::fill_n(out, target.numel(), 0.0f);
  double mean = 0;
  const bool is_coarse = entries.count < cells.count;  // than a cell: it counts once for each
  const std::int64_t per_cell = is_coarse ? 1 : entries.count / cells.count;
  for (std::int64_t row = 0; row < cells.rows; ++row) {
    for (std::int64_t e = 0; e < entries.count; ++e) {
      const std::int64_t cell = row * cells.count + (is_coarse ? 0 : e / per_cell);
      const float* const metric = cells.metric.data() + cell;
      const float weight = is_coarse ? static_cast<float>(sum_of(metric, cells.count)) : *metric;
      if (weight == 0) continue;
      mean += static_cast<double>(weight * entries.share(cell)) * entries.sum(entropy, row, e);
      entries.fill(out, row, e, factor * weight * entries.share(cell));
    }
  }
  return mean;
}

/// An error's loss and its slope.
struct Judged {
  float loss, slope;
};
Judged judge(float error, const ValueLossOptions& o) {
  const float size = std::abs(error), delta = static_cast<float>(o.huber_delta);
  if (!o.is_huber || size < delta) return {0.5f * error * error, error};
  return {delta * (size - 0.5f * delta), error > 0 ? delta : error < 0 ? -delta : 0.0f};
}

struct CriticSums {
  double loss = 0, clip_fraction = 0, returns = 0, returns_sq = 0, error = 0, error_sq = 0;
};

CriticSums critic_gradient(const at::Tensor& values, const PolicyGradientInputs& in, const PolicyGradientOptions& o,
                           const Cells& cells, float factor, const at::Tensor& target) {
  const float* value = data_of(values);
  const float* old_value = data_of(in.old_value);
  const float* returns = data_of(in.returns);
  const float reach = static_cast<float>(o.value.clip);
  float* out = target.data_ptr<float>();
  CriticSums sums;
  for (std::size_t c = 0; c < cells.metric.size(); ++c) {
    const double m = static_cast<double>(cells.metric[c]);
    const float error = returns[c] - value[c];
    auto [loss, slope] = judge(error, o.value);
    if (reach > 0) {
      const float moved = value[c] - old_value[c];
      const bool is_inside = moved >= -reach && moved <= reach;
      const auto clipped = judge(returns[c] - (old_value[c] + std::clamp(moved, -reach, reach)), o.value);
      const float clipped_slope = is_inside ? clipped.slope : 0.0f;
      if (clipped.loss == loss) {
        slope = 0.5f * (slope + clipped_slope);  // as autograd shares a tie
      } else if (clipped.loss > loss) {
        loss = clipped.loss;
        slope = clipped_slope;
      }
      sums.clip_fraction += is_inside ? 0.0 : m;
    }
    out[c] = -factor * cells.loss[c] * slope;
    sums.loss += static_cast<double>(cells.loss[c] * loss);
    sums.returns += m * static_cast<double>(returns[c]);
    sums.returns_sq += m * static_cast<double>(returns[c]) * static_cast<double>(returns[c]);
    sums.error += m * static_cast<double>(error);
    sums.error_sq += m * static_cast<double>(error) * static_cast<double>(error);
  }
  return sums;
}

bool is_plain(const at::Tensor& x) {
  return !x.defined() || (x.is_cpu() && x.scalar_type() == at::kFloat && x.is_contiguous() && x.dim() == 2);
}

/// Every number is finite, or absent.
bool is_finite(const at::Tensor& x) {
  if (!x.defined()) return true;
  const float* data = x.const_data_ptr<float>();
  return std::all_of(data, data + x.numel(), [](float number) { return std::isfinite(number); });
}

}  // namespace

void make_contiguous(PolicyGradientInputs& in) {
  for (auto* x : {&in.logp, &in.entropy, &in.value, &in.old_logp, &in.proximal_logp, &in.reference_logp, &in.advantage,
                  &in.returns, &in.old_value, &in.valid_steps, &in.mask}) {
    if (x->defined()) *x = x->contiguous();
  }
}

struct PpoGradient::State {
  PolicyGradientInputs in;
  double weight = 1, policy_weight = 1;
  Cells cells;
  ActorSums actor;
  double entropy = 0;
  std::optional<CriticSums> critic;
};

PpoGradient::PpoGradient(const PolicyGradientOptions& options) : options_(options), state_(std::make_unique<State>()) {}
PpoGradient::~PpoGradient() = default;

bool PpoGradient::begin(const PolicyGradientInputs& in, double weight) {
  if (options_.actor != ActorLoss::ppo || options_.parity || in.reference_logp.defined()) return false;
  TORCH_CHECK(in.old_logp.defined() && in.advantage.defined(),
              "a policy loss needs old log-probabilities and advantages");
  for (const auto* x : {&in.old_logp, &in.advantage, &in.returns, &in.old_value})
    if (!is_plain(*x) || !is_finite(*x)) return false;
  if (!is_plain(in.valid_steps)) return false;
  if (in.mask.defined() && !(in.mask.is_cpu() && in.mask.scalar_type() == at::kBool && in.mask.is_contiguous()))
    return false;
  State& state = *state_;
  state.in = in;
  count_cells(in, options_, state.cells);
  check_cells(in.advantage);
  state.weight = weight;
  state.policy_weight = scalar_or(in.policy_weight, 0, 1);
  state.actor = {};
  state.entropy = 0;
  state.critic.reset();
  return true;
}

void PpoGradient::check_cells(const at::Tensor& x) const {
  const Cells& cells = state_->cells;
  TORCH_CHECK(x.defined() && x.size(0) == cells.rows && x.size(1) == cells.count,
              "advantages, values and returns must be [", cells.rows, ", ", cells.count,
              "] (policy_gradient.reward_level); one has shape ", x.sizes());
}

bool PpoGradient::actor(const at::Tensor& logp, const at::Tensor& entropy, const at::Tensor& d_logp,
                        const at::Tensor& d_entropy) {
  State& state = *state_;
  TORCH_CHECK(logp.sizes() == state.in.old_logp.sizes(), "log-probabilities have shape ", logp.sizes(),
              " and the old ones ", state.in.old_logp.sizes());
  if (!entropy.defined() || entropy.sizes() != logp.sizes()) return false;
  if (!is_plain(logp) || !is_plain(entropy) || !is_finite(logp) || !is_finite(entropy)) return false;
  const double weight = state.weight * state.policy_weight;
  state.actor = actor_gradient(logp, state.in, options_, state.cells, static_cast<float>(weight), d_logp);
  state.entropy =
      entropy_gradient(entropy, options_, state.cells, static_cast<float>(-weight * options_.entropy_bonus), d_entropy);
  return true;
}

bool PpoGradient::critic(const at::Tensor& value, const at::Tensor& d_value) {
  State& state = *state_;
  check_cells(value);
  check_cells(state.in.returns);
  if (options_.value.clip > 0) check_cells(state.in.old_value);
  if (!is_plain(value) || !is_finite(value)) return false;
  state.critic = critic_gradient(value, state.in, options_, state.cells,
                                 static_cast<float>(state.weight * options_.value_coef), d_value);
  return true;
}

MicroResult PpoGradient::result() const {
  const State& state = *state_;
  const ActorSums& actor = state.actor;
  double loss = state.policy_weight * (actor.loss - options_.entropy_bonus * state.entropy);
  MicroResult result;
  auto& m = result.metrics;
  m["actor/approx_kl"] = -actor.log_ratio;
  m["actor/clip_fraction"] = actor.clip_fraction;
  m["actor/clipped_ratio"] = actor.clipped;
  m["actor/dual_cliped_ratio"] = actor.dual;
  m["actor/entropy_loss"] = state.entropy;
  m["actor/kl_k3"] = actor.k3;
  m["actor/policy_loss"] = state.policy_weight * actor.loss;
  m["actor/policy_loss_abs"] = actor.loss_abs;
  m["actor/ratio"] = actor.ratio;
  m["actor/ratio_abs"] = actor.ratio_abs;
  if (const auto& critic = state.critic) {
    loss += options_.value_coef * critic->loss;
    m["critic/error_mean"] = critic->error;
    m["critic/error_sq_mean"] = critic->error_sq;
    m["critic/return_mean"] = critic->returns;
    m["critic/return_sq_mean"] = critic->returns_sq;
    if (options_.value.clip > 0) m["critic/value_clip_ratio"] = critic->clip_fraction;
    m["critic/value_loss"] = critic->loss;
  }
  m["actor/total_loss"] = loss;
  m["nonfinite_samples"] = 0.0;
  result.loss = loss;
  return result;
}

}  // namespace troupe::model
