#include "workers/rollout/trajectory_layout.h"

#include "base/check.h"
#include "workers/rollout/policy_shape_of.h"

namespace troupe::workers {

static_assert(sizeof(TrajectoryHead) == 8 * sizeof(std::int64_t));

namespace {

/// Places one field after another, each at a multiple of 64 bytes.
class FieldPlacer {
 public:
  RecordField place(std::string name, RecordType type, std::vector<std::int64_t> shape) {
    RecordField field{
        .name = std::move(name), .type = type, .shape = std::move(shape), .offset = end_, .bytes = bytes_of(type)};
    for (const std::int64_t extent : field.shape) field.bytes *= extent;
    end_ += (field.bytes + 63) / 64 * 64;
    return field;
  }
  /// A field that this job does not have keeps its place in the order and no bytes.
  RecordField place_if(bool wanted, std::string name, RecordType type, std::vector<std::int64_t> shape) {
    if (wanted) return place(std::move(name), type, std::move(shape));
    return {.name = std::move(name), .type = type, .shape = {0}, .offset = end_, .bytes = 0};
  }
  std::int64_t end() const { return end_; }

 private:
  std::int64_t end_ = 0;
};

/// Whether the learner values observations at which episodes ended: replay's targets need them, and V-trace bootstraps
/// with the critic of today.
bool keeps_final_observations(const JobConfig& job) {
  if (is_off_policy(job)) return true;
  return job.algorithm.traits().advantages == AdvantageSource::trace && job.env.reset_mode == "auto" &&
         job.algorithm.policy_gradient.bootstrap != "never";
}

}  // namespace

TrajectoryLayout make_trajectory_layout(const JobConfig& job, const EnvSpec& spec, const PolicyNet& net) {
  const RlShape rl = rl_shape(job);
  const auto policy = policy_shape_of(spec, job.env, job.policy);
  TROUPE_CHECK(policy.has_value(), "the policy was made from this specification");
  TrajectoryLayout layout;
  layout.agents = spec.agents;
  const std::int64_t T = layout.calls = rl.calls, n = layout.rows = rl.envs * spec.agents, K = layout.chunk = rl.chunk;
  const std::int64_t D = layout.state_dim = policy->state_dim, A = layout.action_dim = policy->action_dim;
  const std::int64_t L = layout.logp_width = net.logp_width(), V = layout.value_width = net.value_width();
  const bool keeps_finals = layout.keeps_finals = keeps_final_observations(job);

  FieldPlacer fields;
  layout.head = fields.place("head", RecordType::i64, {8});
  layout.state = fields.place_if(D > 0, "state", RecordType::f32, {T + 1, n, D});
  const auto type_of = [](const PolicyShape::Image& image) {
    return image.is_depth ? RecordType::f32 : RecordType::u8;
  };
  for (const auto& image : policy->images) {
    layout.images.push_back(
        fields.place("image." + image.name, type_of(image), {T + 1, n, image.height, image.width, image.channels}));
  }
  for (const auto& text : policy->texts)
    layout.texts.push_back(fields.place("text." + text.name, RecordType::u8, {T + 1, n, text.bytes}));
  layout.action = fields.place("action", RecordType::f32, {T, n, K * A});
  layout.logp = fields.place_if(L > 0, "logp", RecordType::f32, {T, n, L});
  layout.value = fields.place_if(V > 0, "value", RecordType::f32, {T + 1, n, V});
  for (const ExtraField& extra : net.extras()) {
    std::vector<std::int64_t> shape{T, n};
    shape.insert(shape.end(), extra.shape.begin(), extra.shape.end());
    layout.extras.push_back(
        fields.place("extra." + extra.name, extra.is_integer ? RecordType::i64 : RecordType::f32, std::move(shape)));
  }
  for (const MemoryField& memory : net.memory())
    layout.policy_memory.push_back(fields.place("memory." + memory.name, RecordType::f32, {1, n, memory.width}));
  layout.version = fields.place("version", RecordType::i64, {T, n});
  layout.reward = fields.place("reward", RecordType::f32, {T, n, K});
  layout.terminated = fields.place("terminated", RecordType::u8, {T, n, K});
  layout.truncated = fields.place("truncated", RecordType::u8, {T, n, K});
  layout.valid = fields.place("valid", RecordType::u8, {T, n, K});
  layout.success = fields.place("success", RecordType::u8, {T, n, K});
  layout.executed = fields.place("executed", RecordType::i32, {T, n});
  layout.done = fields.place("done", RecordType::u8, {T, n});
  layout.lost = fields.place("lost", RecordType::u8, {T, n});
  layout.final_value = fields.place_if(V > 0, "final_value", RecordType::f32, {T, n, V});
  layout.final_state = fields.place_if(keeps_finals && D > 0, "final_state", RecordType::f32, {T, n, D});
  layout.ended = fields.place("ended", RecordType::u8, {T, n});
  layout.episode_return = fields.place("episode_return", RecordType::f64, {T, n});
  layout.episode_length = fields.place("episode_length", RecordType::i32, {T, n});
  layout.episode_success = fields.place("episode_success", RecordType::u8, {T, n});
  layout.observed = fields.place_if(job.rollout.normalize_obs && D > 0, "observed", RecordType::f64, {1 + 2 * D});
  layout.returned = fields.place_if(job.rollout.normalize_reward, "returned", RecordType::f64, {3});
  layout.fixed_bytes = fields.end();
  for (const auto& image : policy->images) {
    if (!keeps_finals) break;
    layout.final_images.push_back({.name = "final_image." + image.name,
                                   .type = type_of(image),
                                   .shape = {image.height, image.width, image.channels},
                                   .offset = layout.final_image_bytes,
                                   .bytes = image.bytes()});
    layout.final_image_bytes += image.bytes();
  }
  layout.bytes = layout.fixed_bytes + (T * n * layout.final_image_bytes + 63) / 64 * 64;
  return layout;
}

std::vector<const RecordField*> TrajectoryLayout::fields() const {
  std::vector<const RecordField*> all{&head, &state};
  for (const auto& field : images) all.push_back(&field);
  for (const auto& field : texts) all.push_back(&field);
  all.insert(all.end(), {&action, &logp, &value});
  for (const auto& field : extras) all.push_back(&field);
  for (const auto& field : policy_memory) all.push_back(&field);
  all.insert(all.end(), {&version, &reward, &terminated, &truncated, &valid, &success, &executed, &done, &lost,
                         &final_value, &final_state});
  all.insert(all.end(), {&ended, &episode_return, &episode_length, &episode_success, &observed, &returned});
  std::erase_if(all, [](const RecordField* field) { return !field->is_present(); });
  return all;
}

}  // namespace troupe::workers
