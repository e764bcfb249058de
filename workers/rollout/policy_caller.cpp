#include "workers/rollout/policy_caller.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/random.h"
#include "model/loss/rl_keys.h"
#include "model/policy/flow_step.h"
#include "model/policy/image_dtype.h"

namespace troupe::workers {

namespace {

std::vector<std::int64_t> with_rows(std::int64_t rows, std::span<const std::int64_t> rest) {
  std::vector<std::int64_t> shape{rows};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

/// Rows [first, first + rows) of a result into a field at one call.
template <class T>
void store(const at::Tensor& result, at::ScalarType type, std::int64_t first, std::int64_t rows, std::span<T> to,
           const char* what) {
  if (to.empty()) return;
  TROUPE_CHECK(result.defined(), fmt::format("the policy answers with {}", what));
  const std::int64_t width = static_cast<std::int64_t>(to.size()) / rows;
  TROUPE_CHECK(result.numel() == width * result.size(0),
               fmt::format("the policy's {} has {} numbers for {} rows, wanted {} a row", what, result.numel(),
                           result.size(0), width));
  const at::Tensor plain = result.to(type).contiguous();
  std::memcpy(to.data(), static_cast<const T*>(plain.const_data_ptr()) + first * width, to.size_bytes());
}

template <class Work>
Result<void> guarded(const char* what, const Work& work) {
  try {
    const c10::NoGradGuard no_grad;
    work();
    return {};
  } catch (const std::exception& error) {
    return Error{Errc::internal, fmt::format("the policy's {} failed: {}", what, error.what())};
  }
}

}  // namespace

PolicyCaller::PolicyCaller(const JobConfig& job, const PolicyShape& shape, std::shared_ptr<const PolicyNet> net,
                           const TrajectoryLayout& layout)
    : net_(std::move(net)),
      layout_(layout),
      shape_(shape),
      rl_(rl_shape(job)),
      flow_(job.policy.flow),
      seed_(static_cast<std::uint64_t>(job.job.seed)),
      uniform_steps_(is_off_policy(job) ? job.algorithm.sac.learning_starts : 0) {
  for (const auto& image : shape_.images) image_keys_.push_back(rl_keys::kImagePrefix + image.name);
  for (std::size_t i = 0; i < layout_.texts.size(); ++i)
    text_keys_.push_back(rl_keys::kTextPrefix + shape_.texts[i].name);
  for (const auto& memory : net_->memory()) memory_keys_.push_back(rl_keys::kMemoryPrefix + memory.name);
}

std::uint64_t PolicyCaller::key(const Call& call, std::int64_t row) const {
  const auto env = static_cast<std::uint64_t>(call.block * layout_.rows + row);
  const auto step = static_cast<std::uint64_t>(call.round * rl_.calls + call.call);
  return mix64(mix64(env + 1) + 0x9E3779B97F4A7C15ULL * (step + 1));
}

bool PolicyCaller::is_uniform(const Call& call) const {
  const std::int64_t before =
      call.round * rl_.env_steps_per_round() + call.call * rl_.blocks * rl_.envs * rl_.exec_steps;
  return before < uniform_steps_;
}

Batch PolicyCaller::observation(std::span<const Call> calls) const {
  const std::int64_t n = layout_.rows;
  Batch batch;
  // Views of the items' memory; one block is the usual case and is not copied.
  const auto gather = [&](auto view_of, std::span<const std::int64_t> shape, at::ScalarType type) {
    std::vector<at::Tensor> parts;
    for (const Call& call : calls) {
      parts.push_back(at::from_blob(view_of(call).data(), with_rows(n, shape), at::TensorOptions().dtype(type)));
    }
    return parts.size() == 1 ? parts[0] : at::cat(parts);
  };
  if (layout_.state_dim > 0) {
    const std::int64_t shape[] = {layout_.state_dim};
    batch[rl_keys::kState] = gather([](const Call& call) { return call.item.state(call.call); }, shape, at::kFloat);
  }
  for (std::size_t i = 0; i < image_keys_.size(); ++i) {
    const auto& field = layout_.images[i];
    batch[image_keys_[i]] = gather([i](const Call& call) { return call.item.image(i, call.call); },
                                   std::span(field.shape).subspan(2), image_dtype(shape_.images[i]));
  }
  for (std::size_t i = 0; i < text_keys_.size(); ++i) {
    batch[text_keys_[i]] = gather([i](const Call& call) { return call.item.text(i, call.call); },
                                  std::span(layout_.texts[i].shape).subspan(2), at::kByte);
  }
  for (std::size_t i = 0; i < memory_keys_.size(); ++i) {
    const std::int64_t shape[] = {net_->memory()[i].width};
    batch[memory_keys_[i]] = gather(
        [i](const Call& call) -> auto& { return call.memory[i]; }, shape, at::kFloat);
  }
  return batch;
}

void PolicyCaller::act_uniformly(const Call& call) {
  const auto actions = call.item.action(call.call);
  const auto width = static_cast<std::size_t>(layout_.chunk * layout_.action_dim),
             A = static_cast<std::size_t>(layout_.action_dim);
  for (std::int64_t row = 0; row < layout_.rows; ++row) {
    CounterRng rng(seed_, rng_stream::uniform_action, key(call, row));
    float* const to = actions.data() + static_cast<std::size_t>(row) * width;
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t a = i % A;
      to[i] = shape_.choices > 0
                  ? static_cast<float>(rng.below(static_cast<std::uint32_t>(shape_.choices)))
                  : static_cast<float>(rng.uniform(double{shape_.action_low[a]}, double{shape_.action_high[a]}));
    }
  }
  const auto versions = call.item.version(call.call);
  std::fill(versions.begin(), versions.end(), -1);
}

Result<void> PolicyCaller::act(const PublishedWeights& weights, std::span<const Call> calls) {
  // Which phase a call is in depends on its round and step alone; a batch never mixes them for long.
  std::vector<Call> learned;
  for (const Call& call : calls) {
    if (is_uniform(call)) {
      act_uniformly(call);
    } else {
      learned.push_back(call);
    }
  }
  if (learned.empty()) return {};
  keys_.clear();
  for (const Call& call : learned) {
    for (std::int64_t row = 0; row < layout_.rows; ++row) keys_.push_back(key(call, row));
  }
  if (net_->acts_on_rows()) return guarded("act", [&] { act_on_rows(weights, learned); });
  return guarded("act", [&] {
    ActRequest request;
    request.observation = observation(learned);
    request.seed = seed_;
    request.keys = keys_;
    request.noise_level = flow_noise_level(flow_, weights.version);
    request.version = weights.which();
    const ActResult result = net_->act(weights.views, request);
    for (std::size_t i = 0; i < learned.size(); ++i) {
      const Call& call = learned[i];
      const std::int64_t n = layout_.rows, first = static_cast<std::int64_t>(i) * n;
      store(result.action, at::kFloat, first, n, call.item.action(call.call), "action");
      store(result.logp, at::kFloat, first, n, call.item.logp(call.call), "log-probability");
      store(result.value, at::kFloat, first, n, call.item.value(call.call), "value");
      for (std::size_t e = 0; e < layout_.extras.size(); ++e) {
        const RecordField& field = layout_.extras[e];
        const std::string& name = net_->extras()[e].name;
        const auto found = result.extra.find(name);
        TROUPE_CHECK(found != result.extra.end(), "the policy answers with its extras: " + name);
        if (field.type == RecordType::i64) {
          store(found->second, at::kLong, first, n, call.item.at<std::int64_t>(field, call.call), name.c_str());
        } else {
          store(found->second, at::kFloat, first, n, call.item.at<float>(field, call.call), name.c_str());
        }
      }
      for (std::size_t m = 0; m < memory_keys_.size(); ++m) {
        const std::string& name = net_->memory()[m].name;
        const auto found = result.memory.find(name);
        TROUPE_CHECK(found != result.memory.end(), "the policy answers with its memory: " + name);
        store(found->second, at::kFloat, first, n, std::span(call.memory[m]), name.c_str());
      }
      const auto versions = call.item.version(call.call);
      std::fill(versions.begin(), versions.end(), weights.version);
    }
  });
}

void PolicyCaller::act_on_rows(const PublishedWeights& weights, std::span<const Call> calls) const {
  const auto n = static_cast<std::size_t>(layout_.rows);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    net_->act_on_rows(weights.views, {.rows = layout_.rows,
                                      .state = call.item.state(call.call).data(),
                                      .state_dim = layout_.state_dim,
                                      .seed = seed_,
                                      .keys = std::span(keys_).subspan(i * n, n),
                                      .action = call.item.action(call.call).data(),
                                      .logp = call.item.logp(call.call).data(),
                                      .value = layout_.value_width > 0 ? call.item.value(call.call).data() : nullptr});
    const auto versions = call.item.version(call.call);
    std::fill(versions.begin(), versions.end(), weights.version);
  }
}

Result<void> PolicyCaller::value(const PublishedWeights& weights, const Call& call) {
  if (layout_.value_width == 0) return {};
  return guarded("value", [&] {
    if (net_->acts_on_rows()) {
      return net_->act_on_rows(weights.views, {.rows = layout_.rows,
                                               .state = call.item.state(call.call).data(),
                                               .state_dim = layout_.state_dim,
                                               .value = call.item.value(call.call).data()});
    }
    const at::Tensor value = net_->value(weights.views, observation(std::span(&call, 1)));
    store(value, at::kFloat, 0, layout_.rows, call.item.value(call.call), "value");
  });
}

Result<void> PolicyCaller::final_values(const PublishedWeights& weights, const Call& call, const FinalRows& finals) {
  if (layout_.value_width == 0 || finals.rows.empty()) return {};
  return guarded("value", [&] {
    const auto count = static_cast<std::int64_t>(finals.rows.size());
    const std::int64_t V = layout_.value_width;
    const auto put = [&](const float* values) {
      for (std::int64_t i = 0; i < count; ++i) {
        float* const to = call.item.final_value(call.call).data() + finals.rows[static_cast<std::size_t>(i)] * V;
        std::copy_n(values + i * V, V, to);
      }
    };
    if (net_->acts_on_rows()) {
      std::vector<float> values(static_cast<std::size_t>(count * V));
      net_->act_on_rows(
          weights.views,
          {.rows = count, .state = finals.state.data(), .state_dim = layout_.state_dim, .value = values.data()});
      return put(values.data());
    }
    Batch batch;
    if (layout_.state_dim > 0) {
      batch[rl_keys::kState] =
          at::from_blob(const_cast<float*>(finals.state.data()), {count, layout_.state_dim}, at::kFloat);
    }
    for (std::size_t i = 0; i < image_keys_.size(); ++i) {
      const auto shape = with_rows(count, std::span(layout_.images[i].shape).subspan(2));
      batch[image_keys_[i]] =
          at::from_blob(const_cast<std::uint8_t*>(finals.images[i].data()), shape, image_dtype(shape_.images[i]));
    }
    for (std::size_t i = 0; i < text_keys_.size(); ++i) {
      const auto shape = with_rows(layout_.rows, std::span(layout_.texts[i].shape).subspan(2));
      batch[text_keys_[i]] = at::from_blob(call.item.text(i, call.call).data(), shape, at::kByte)
                                 .index_select(0, at::tensor(finals.rows, at::kLong));
    }
    for (std::size_t i = 0; i < memory_keys_.size(); ++i) {
      const std::int64_t shape[] = {count, net_->memory()[i].width};
      batch[memory_keys_[i]] = at::from_blob(const_cast<float*>(finals.memory[i].data()), shape, at::kFloat);
    }
    const at::Tensor value = net_->value(weights.views, batch).to(at::kFloat).contiguous();
    TROUPE_CHECK(value.numel() == count * V, "the policy's value has V numbers a row");
    put(value.const_data_ptr<float>());
  });
}

}  // namespace troupe::workers
