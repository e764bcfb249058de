#include "workers/learner/sft_task.h"

#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>

#include "base/file_io.h"
#include "base/random.h"
#include "base/trace.h"
#include "model/io/safetensors.h"
#include "model/loss/flow_matching.h"
#include "model/shard/precision.h"
#include "model/wan/batch_keys.h"
#include "model/wan/unit_video.h"
#include "model/wan/weights/load_features.h"
#include "workers/encoder/encoded_sample.h"

namespace troupe::workers {

namespace {

constexpr std::int64_t kEulerSteps = 10;

at::ScalarType dtype_of(FieldType type) {
  return type == FieldType::u8 ? at::kByte : type == FieldType::i64 ? at::kLong : at::kFloat;
}

/// "fp32" or "bf16".

std::vector<std::uint64_t> positions_of(const std::vector<Feed::Sample>& samples) {
  std::vector<std::uint64_t> positions;
  for (const Feed::Sample& sample : samples) positions.push_back(static_cast<std::uint64_t>(sample.position));
  return positions;
}

/// [C,T,H,W] in [-1,1] as u8 [T,H,W,C], the way the reference writes frames: scaled, clipped, truncated.
at::Tensor to_frames(const at::Tensor& video) {
  return ((video.clamp(-1, 1) + 1) * 127.5).to(at::kByte).permute({1, 2, 3, 0}).contiguous();
}

TensorDeclaration declare(const std::string& name, const at::Tensor& tensor) {
  return {.name = name, .dtype = tensor.scalar_type() == at::kByte ? "U8" : "F32", .shape = tensor.sizes().vec()};
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

}  // namespace

Result<std::unique_ptr<SftTask>> SftTask::make(const JobConfig& job) {
  TROUPE_ASSIGN(auto layout, item_layout(job));
  std::unique_ptr<CachedEncoder> features;
  if (!sends_features(job)) {
    TROUPE_ASSIGN(features, CachedEncoder::make(job));
  }
  return std::unique_ptr<SftTask>(new SftTask(job, std::move(layout), std::move(features)));
}

Result<std::map<std::string, std::string>> SftTask::encoder_hashes(const JobConfig& job) {
  return frozen_content_hashes(job.model, dtype_of_precision(job.precision.encoders),
                               static_cast<std::uint64_t>(job.job.seed));
}

SftTask::SftTask(JobConfig job, SampleLayout layout, std::unique_ptr<CachedEncoder> features)
    : job_(std::move(job)),
      layout_(std::move(layout)),
      features_(std::move(features)),
      network_(
          std::make_shared<DitNetwork>(job_.model, job_.data.window.chunks,
                                       DitOptions{.collapse_text_pads = job_.model.text_pad_collapse,
                                                  .decoupled_action_timesteps = job_.model.noise.decouple_video_action,
                                                  .round_timesteps = job_.precision.round_timesteps})) {}

Batch SftTask::collate(const std::vector<Feed::Sample>& samples) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  Batch batch;
  for (const TensorField& field : layout_.fields) {
    std::vector<std::int64_t> shape = field.shape;
    shape.insert(shape.begin(), count);
    at::Tensor tensor = at::zeros(shape, dtype_of(field.type));
    for (std::size_t b = 0; b < samples.size(); ++b) {
      if (!samples[b].void_reason.empty()) continue;  // stays zero and has weight zero
      auto* out = static_cast<std::byte*>(tensor.mutable_data_ptr()) + b * static_cast<std::size_t>(field.bytes);
      std::memcpy(out, samples[b].bytes.data() + field.offset, static_cast<std::size_t>(field.bytes));
    }
    batch[field.name] = tensor;
  }
  namespace keys = batch_keys;
  batch[keys::kTextMask] = batch.extract("text_mask").mapped();
  batch[keys::kActionMask] = batch.at("action_mask").to(at::kBool);
  batch[keys::kHasRealAction] = batch.at("has_real_action").flatten().to(at::kBool);
  // A void sample has no text; one token keeps the encoder's shapes valid.
  batch.at(keys::kTextMask).select(1, 0).fill_(1);
  return batch;
}

Batch SftTask::condition(const Batch& collated) {
  const Span span("encode");
  return features_ ? features_->encode(collated) : encoded_batch(job_, collated);
}

Result<Batch> SftTask::make_batch(const std::vector<Feed::Sample>& samples, std::size_t real, NoiseMode mode) {
  Batch batch = condition(collate(samples));
  // before anything else, so that noise is mixed and targets are made in the precision of the parameters
  cast_inputs(batch, dtype_of_precision(job_.precision.param));
  const Batch inputs = make_training_inputs(batch.at(batch_keys::kCleanLatents), batch.at(batch_keys::kAction),
                                            positions_of(samples), static_cast<std::uint64_t>(job_.job.seed), mode,
                                            job_.model.latent_frames_per_block, job_.model.noise);
  for (const auto& [name, tensor] : inputs) batch[name] = tensor;
  at::Tensor weight = at::ones({static_cast<std::int64_t>(samples.size())});
  for (std::size_t b = 0; b < samples.size(); ++b) {
    if (b >= real || !samples[b].void_reason.empty()) weight[static_cast<std::int64_t>(b)] = 0.0;
  }
  batch[batch_keys::kSampleWeight] = weight;
  return batch;
}

Result<Batch> SftTask::train_batch(const std::vector<Feed::Sample>& samples) {
  const Span span("collate");
  return make_batch(samples, samples.size(), NoiseMode::train);
}

Result<void> SftTask::draw_labels(const std::vector<Feed::Sample>& samples, Batch& batch) const {
  const auto noise_like = [&](const char* target, std::uint64_t stream) {
    return keyed_noise(static_cast<std::uint64_t>(job_.job.seed), stream, positions_of(samples),
                       batch.at(target).sizes().slice(1).vec());
  };
  batch[batch_keys::kVideoLabelNoise] = noise_like(batch_keys::kVideoTarget, rng_stream::video_label);
  batch[batch_keys::kActionLabelNoise] = noise_like(batch_keys::kActionTarget, rng_stream::action_label);
  return {};
}

Result<Batch> SftTask::eval_batch(const std::vector<Feed::Sample>& samples, std::size_t real) {
  return make_batch(samples, real, NoiseMode::eval);
}

Result<void> SftTask::predict(const Feed::Sample& sample, const Forward& forward, const std::string& file, bool write) {
  const Batch collated = collate({sample});
  const Batch batch = condition(collated);
  const auto seed = static_cast<std::uint64_t>(job_.job.seed);
  const std::vector<std::uint64_t> positions{static_cast<std::uint64_t>(sample.position)};
  const at::Tensor& clean = batch.at(batch_keys::kCleanLatents);
  const at::Tensor& actions = batch.at(batch_keys::kAction);
  const auto noise_like = [&](const at::Tensor& like, std::uint64_t stream) {
    return keyed_noise(seed, stream, positions, like.sizes().slice(1).vec());
  };
  TROUPE_ASSIGN(const Prediction predicted,
                model::predict(batch, noise_like(clean, rng_stream::eval_video_noise),
                               noise_like(actions, rng_stream::eval_action_noise), kEulerSteps, forward));
  return write ? write_prediction(collated, batch, predicted, file) : Result<void>();
}

Result<void> SftTask::write_prediction(const Batch& collated, const Batch& batch, const Prediction& predicted,
                                       const std::string& file) const {
  std::unique_ptr<LatentCodec> own;
  if (!features_) {
    TROUPE_ASSIGN(own, load_codec(job_));
  }
  const LatentCodec& codec = features_ ? features_->encoder().codec() : *own;
  const at::Tensor truth =
      features_ ? to_unit_video(collated.at(batch_keys::kImages), job_.model.target_height, job_.model.target_width)
                : codec.decode(batch.at(batch_keys::kCleanLatents));
  const at::Tensor& actions = batch.at(batch_keys::kAction);
  const std::int64_t dims = batch.at(batch_keys::kActionMask)[0][0].sum().item<std::int64_t>();
  const auto used = [&](const at::Tensor& all) { return all[0].narrow(1, 0, dims).to(at::kFloat).contiguous(); };
  const std::vector<std::pair<std::string, at::Tensor>> tensors = {
      {"predicted_actions", used(predicted.actions)},
      {"predicted_frames", to_frames(codec.decode(predicted.video)[0])},
      {"true_actions", used(actions)},
      {"true_frames", to_frames(truth[0])}};
  TROUPE_TRY(make_folders(std::filesystem::path(file).parent_path().string()));
  std::vector<TensorDeclaration> declared;
  for (const auto& [name, tensor] : tensors) declared.push_back(declare(name, tensor));
  TROUPE_ASSIGN(auto writer, SafetensorsWriter::create(file, declared));
  for (const auto& [name, tensor] : tensors) TROUPE_TRY(writer.append(bytes_of(tensor)));
  return writer.finish();
}

}  // namespace troupe::workers
