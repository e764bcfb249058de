#include "workers/learner/initial_state.h"

#include <fmt/format.h>

#include <set>

#include "model/shard/named_state.h"
#include "model/wan/lora.h"
#include "model/wan/weights/weights_state.h"
#include "workers/checkpoint/tensors.h"

namespace troupe::workers {

namespace {

bool is_adapter(const std::string& name) { return name.ends_with(kLoraA) || name.ends_with(kLoraB); }

/// A Troupe checkpoint's weights by name.
class NamedCheckpoint final : public NamedState {
 public:
  NamedCheckpoint(std::unique_ptr<CheckpointTensors> source, std::vector<UnitSpec> units, std::uint64_t seed)
      : NamedState(std::move(units), seed), source_(std::move(source)) {}

  /// Every tensor of the model is stored in its shape, but for adapters and target networks, and every stored one is
  /// the model's.
  Result<void> check() const {
    std::set<std::string> known;
    for (const UnitSpec& unit : units()) {
      for (const ParamSpec& param : unit.params) {
        known.insert(param.name);
        const bool may_lack = is_adapter(param.name) || !unit.average_of.empty();
        if (!may_lack || contains(param.name)) TROUPE_TRY(source_->find(param.name, param.shape));
      }
    }
    for (const CheckpointTensor& stored : source_->tensors()) {
      if (!known.contains(stored.name))
        return source_->misfit(fmt::format("tensor '{}' that the model does not have", stored.name));
    }
    return {};
  }

 protected:
  bool contains(const std::string& name) const override { return source_->index_of(name).has_value(); }
  Result<void> read_tensor(const std::string& name, std::int64_t begin, std::int64_t count, float* out) const override {
    return source_->read(source_->index_of(name).value(), begin, count, out);
  }

 private:
  const std::unique_ptr<CheckpointTensors> source_;
};

Result<std::unique_ptr<StateSource>> open_checkpoint(const JobConfig& job, const std::vector<UnitSpec>& units) {
  const std::string& path = job.model.init.path;
  const bool keeps_adapters = job.model.train_architecture == "lora";
  TROUPE_ASSIGN(auto source,
                CheckpointTensors::open(path, keeps_adapters ? AdapterForm::separate : AdapterForm::merged));
  auto state = std::make_unique<NamedCheckpoint>(std::move(source), units, static_cast<std::uint64_t>(job.job.seed));
  TROUPE_TRY(state->check());
  return std::unique_ptr<StateSource>(std::move(state));
}

Result<std::unique_ptr<StateSource>> open_state(const JobConfig& job, const std::vector<UnitSpec>& units) {
  const ModelInitConfig& init = job.model.init;
  if (init.mode == "checkpoint") return open_checkpoint(job, units);
  TROUPE_ASSIGN(auto source, WeightSource::open(init.path));
  TROUPE_ASSIGN(auto state,
                WeightsState::open(std::move(source), job.model, units, static_cast<std::uint64_t>(job.job.seed)));
  return std::unique_ptr<StateSource>(std::move(state));
}

}  // namespace

Result<std::unique_ptr<StateSource>> open_initial_state(const JobConfig& job, const std::vector<UnitSpec>& units) {
  const ModelInitConfig& init = job.model.init;
  if (init.mode == "random") return std::unique_ptr<StateSource>();
  if (init.mode == "checkpoint") {
    TROUPE_ASSIGN(const auto reader, CheckpointReader::open(init.path));
    TROUPE_TRY(reader->verify_unlisted());
  }
  return open_state(job, units);
}

Result<void> check_initial_state(const JobConfig& job, const std::vector<UnitSpec>& units) {
  if (job.model.init.mode == "random") return {};
  TROUPE_TRY(open_state(job, units));
  return {};
}

}  // namespace troupe::workers
