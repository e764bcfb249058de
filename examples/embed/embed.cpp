// Troupe as a library: one learner rank on samples made in this process, without actors, sockets or checkpoints.
//   embed DATASET_FOLDER      generates a toy dataset there if it is empty, trains 12 steps, prints the losses
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "app/troupe.h"

using namespace troupe;

namespace {

Result<void> train(const std::string& dataset_folder) {
  // The configuration is that of the quickstart; everything the command line can say can be said here.
  const auto config = load_or_explain("quickstart:sft", {"data.sets[0].path=" + dataset_folder, "training.steps=12"});
  if (!config) return Error{Errc::invalid_argument, "the job was refused"};
  const JobConfig& job = config->job;
  TROUPE_TRY(ensure_quickstart_data(job));
  TROUPE_ASSIGN(const auto mixture, open_mixture(job));
  TROUPE_ASSIGN(const Tokenize tokenize, make_tokenize(job.model.text_encoder));
  TROUPE_ASSIGN(auto builder, SampleBuilder::make(mixture, job, tokenize));
  TROUPE_ASSIGN(const auto task, SftTask::make(job));

  // A group of one rank; with more ranks each thread would hold its own collective, engine and samples.
  at::set_num_threads(2);
  const auto group = make_thread_group(1, std::chrono::seconds(60));
  const auto collective = join_thread_group(group, 0);
  Engine engine(task->network(), {.clip_grad_norm = job.training.clip_grad_norm, .adamw = {}});
  engine.attach(*collective).value();
  engine.initialise(static_cast<std::uint64_t>(job.job.seed));

  const std::int64_t batch = job.training.micro_batch_size;
  const auto bytes = static_cast<std::size_t>(builder.layout().bytes);
  std::vector<std::byte> slots(bytes * static_cast<std::size_t>(batch));
  for (std::int64_t step = 0; step < job.training.steps; ++step) {
    std::vector<Feed::Sample> samples;
    for (std::int64_t i = 0; i < batch; ++i) {
      const std::span<std::byte> slot(slots.data() + bytes * static_cast<std::size_t>(i), bytes);
      TROUPE_TRY(builder.build(Split::train, step * batch + i, slot));
      samples.push_back({.position = step * batch + i, .bytes = slot, .xxh3 = 0, .void_reason = {}});
    }
    TROUPE_ASSIGN(const Batch inputs, task->train_batch(samples));
    TROUPE_TRY(engine.enqueue(inputs, 1.0, true));
    const auto loss = [](const std::vector<MicroResult>& results) {
      return model::StepNumbers{.sums = {results.front().loss}, .maxima = {}};
    };
    TROUPE_ASSIGN(const StepVote vote, engine.finish_step(1e-3, loss));
    fmt::print("step {:2}  loss {:.4f}  gradient norm {:.3f}\n", step + 1, vote.sums.front(), vote.grad_norm);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = train(argc > 1 ? argv[1] : "toy-data");
  if (!done) fmt::print(stderr, "{}\n", done.error().to_string());
  return done ? 0 : 1;
}
