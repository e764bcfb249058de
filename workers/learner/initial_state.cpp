#include "workers/learner/initial_state.h"

#include <fmt/format.h>

#include <map>

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
      : NamedState(std::move(units), seed), source_(std::move(source)) {
    for (std::size_t i = 0; i < source_->tensors().size(); ++i) index_[source_->tensors()[i].name] = i;
  }

  /// Every tensor of the model is stored in its shape, but for adapters and target networks, and every stored one is
  /// the model's.
  Result<void> check(const std::string& directory) const {
    const auto differs = [&](const std::string& why) {
      return Error{Errc::failed_precondition, fmt::format("checkpoint {} does not fit this model: {}", directory, why)};
    };
    std::size_t used = 0;
    for (const UnitSpec& unit : units()) {
      for (const ParamSpec& param : unit.params) {
        const auto stored = index_.find(param.name);
        if (stored == index_.end()) {
          if (is_adapter(param.name) || !unit.average_of.empty()) continue;
          return differs(fmt::format("it lacks tensor '{}'", param.name));
        }
        const auto& shape = source_->tensors()[stored->second].shape;
        if (shape != param.shape) {
          return differs(fmt::format("tensor '{}' is [{}] where the model has [{}]", param.name, fmt::join(shape, ", "),
                                     fmt::join(param.shape, ", ")));
        }
        ++used;
      }
    }
    if (used == index_.size()) return {};
    std::map<std::string, std::size_t> rest = index_;
    for (const UnitSpec& unit : units()) {
      for (const ParamSpec& param : unit.params) rest.erase(param.name);
    }
    return differs(fmt::format("tensor '{}' that the model does not have", rest.begin()->first));
  }

 protected:
  bool contains(const std::string& name) const override { return index_.count(name) != 0; }
  Result<void> read_tensor(const std::string& name, std::int64_t begin, std::int64_t count, float* out) const override {
    return source_->read(index_.at(name), begin, count, out);
  }

 private:
  const std::unique_ptr<CheckpointTensors> source_;
  std::map<std::string, std::size_t> index_;
};

Result<std::unique_ptr<StateSource>> open_checkpoint(const JobConfig& job, const std::vector<UnitSpec>& units) {
  const std::string& path = job.model.init.path;
  const bool keeps_adapters = job.model.train_architecture == "lora";
  TROUPE_ASSIGN(auto source,
                CheckpointTensors::open(path, keeps_adapters ? AdapterForm::separate : AdapterForm::merged));
  auto state = std::make_unique<NamedCheckpoint>(std::move(source), units, static_cast<std::uint64_t>(job.job.seed));
  TROUPE_TRY(state->check(path));
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
