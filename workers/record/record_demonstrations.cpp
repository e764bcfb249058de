#include "workers/record/record_demonstrations.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/durable_file.h"
#include "base/new_folder.h"
#include "data/convert/convert_dataset.h"
#include "data/lerobot/image_feature.h"
#include "data/lerobot/lerobot_writer.h"
#include "env/registry/registry.h"
#include "workers/record/demonstration.h"
#include "workers/record/recording_note.h"

namespace troupe::workers {

namespace {

using Json = nlohmann::ordered_json;

LerobotDescription description_of(const Demonstrator& demonstrator) {
  const EnvSpec& spec = demonstrator.spec();
  LerobotDescription d{
      .robot_type = demonstrator.robot(),
      .fps = spec.control_hz > 0 ? spec.control_hz : 30.0,
      .columns = {{.name = "observation.state",
                   .width = demonstrator.state_names().size(),
                   .names = demonstrator.state_names()},
                  {.name = "action", .width = demonstrator.action_names().size(), .names = demonstrator.action_names()},
                  {.name = "next.reward"},
                  {.name = "next.done", .type = LerobotColumn::Type::boolean},
                  {.name = "next.success", .type = LerobotColumn::Type::boolean},
                  {.name = "next.terminated", .type = LerobotColumn::Type::boolean}},
      .height = demonstrator.side(),
      .width = demonstrator.side()};
  for (const std::string& camera : demonstrator.cameras()) d.cameras.push_back(image_feature(camera));
  return d;
}

Result<void> append(LerobotWriter& writer, const Demonstration& demo, std::int64_t side) {
  const auto bytes = static_cast<std::size_t>(side * side * 3);
  return writer.append({.length = demo.length,
                        .task_index = writer.task_index(demo.instruction),
                        .columns = {demo.states, demo.actions, demo.rewards, demo.done, demo.success, demo.terminated},
                        .image = [&](std::size_t camera, std::int64_t row) -> Result<Rgb8View> {
                          return Rgb8View{.data = demo.images[camera].data() + static_cast<std::size_t>(row) * bytes,
                                          .height = side,
                                          .width = side,
                                          .stride = side * 3};
                        }});
}

Result<Demonstration> play(Demonstrator& demonstrator, const RecordingRequest& request, std::int64_t k) {
  const auto where = [&] { return fmt::format("{}, try {} of seed {}", request.env, k, request.seed); };
  try {
    auto demo = demonstrator.play(demonstration_seed(request.seed, k));
    if (!demo) return demo.error().with(where());
    return demo;
  } catch (const std::exception& e) {  // environments are other people's code
    return Error{Errc::internal, fmt::format("{}: {}", where(), e.what())};
  }
}

Error too_few(const RecordingRequest& request, const RecordingReport& report, std::int64_t max_steps) {
  return {Errc::failed_precondition,
          fmt::format("{}: {} of {} tries were solved within {} steps, {} episodes are wanted; give them more time "
                      "(max_episode_steps), ask for fewer "
                      "(--episodes), or keep what fails too (--keep all)",
                      request.env, report.solved, report.tried, max_steps, request.episodes)};
}

/// Plays until enough is kept. `tries` receives the number of each kept one.
Result<RecordingReport> play_all(Demonstrator& demonstrator, const RecordingRequest& request, LerobotWriter& writer,
                                 std::vector<std::int64_t>& tries) {
  RecordingReport report{.fps = demonstrator.spec().control_hz};
  while (report.episodes < request.episodes) {
    if (report.tried >= kTriesPerEpisode * request.episodes)
      return too_few(request, report, demonstrator.spec().max_steps);
    const std::int64_t k = report.tried++;
    TROUPE_ASSIGN(const Demonstration demo, play(demonstrator, request, k));
    report.solved += demo.is_solved() ? 1 : 0;
    if (!demo.is_solved() && !request.keeps_all) continue;
    TROUPE_TRY(append(writer, demo, demonstrator.side()));
    tries.push_back(k);
    ++report.episodes;
    if (request.progress) request.progress("episodes", report.episodes, request.episodes);
  }
  report.frames = writer.frames();
  report.tasks = static_cast<std::int64_t>(writer.tasks().size());
  return report;
}

/// kRecordingNote: how the dataset came about, which try each of its episodes was.
std::string provenance(const RecordingRequest& request, const EnvSpec& spec, const RecordingReport& report,
                       const std::vector<std::int64_t>& tries) {
  const Json json = {{"env", request.env},
                     {"options", Json(request.env_options.options)},
                     {kRecordedTimeLimit, spec.max_steps},
                     {"seed", request.seed},
                     {"keep", request.keeps_all ? "all" : "successes"},
                     {"hold_steps", kHoldSteps},
                     {"tried", report.tried},
                     {"solved", report.solved},
                     {"tries", tries}};
  return json.dump() + "\n";
}

/// The v2.1 dataset in `from` as v3.0 in `to`.
Result<void> write_v30(const std::string& from, const std::string& to, const ProgressOfParts& progress) {
  TROUPE_ASSIGN(const ConvertDatasetReport report,
                convert_dataset({.sources = {from}, .out = to, .to = DatasetVersion::v30, .progress = progress}));
  if (!report.verify_failures.empty())
    return Error{Errc::internal, fmt::format("{}: {}", to, report.verify_failures.front())};
  std::error_code failed;
  std::filesystem::remove_all(to + "/.troupe", failed);  // the plan: its source is gone in a moment
  return {};
}

Result<RecordingReport> write_dataset(const std::string& folder, const RecordingRequest& request,
                                      Demonstrator& demonstrator) {
  TROUPE_ASSIGN(LerobotWriter writer, LerobotWriter::begin(folder, description_of(demonstrator)));
  std::vector<std::int64_t> tries;
  TROUPE_ASSIGN(const RecordingReport report, play_all(demonstrator, request, writer, tries));
  TROUPE_TRY(writer.finish());
  TROUPE_TRY(write_file_synced(fmt::format("{}/{}", folder, kRecordingNote),
                               provenance(request, demonstrator.spec(), report, tries)));
  return report;
}

}  // namespace

Result<RecordingReport> record_demonstrations(const RecordingRequest& request) {
  if (request.out.empty() || request.episodes < 1) {
    return Error{Errc::invalid_argument, fmt::format("{} episodes into '{}'; wanted at least one, and a folder",
                                                     request.episodes, request.out)};
  }
  if (request.image_size < 16 || request.image_size > 1024 || request.image_size % 2 != 0) {
    return Error{Errc::invalid_argument, fmt::format("frames of {} x {} pixels cannot be recorded; wanted an even side "
                                                     "of 16 to 1024 (--image-size)",
                                                     request.image_size, request.image_size)};
  }
  TROUPE_ASSIGN(auto envs, make_env_factory(request.env, request.env_options));
  std::unique_ptr<Expert> expert;
  if (!envs->may_advise()) {
    TROUPE_ASSIGN(expert, make_expert(request.env));
  }
  TROUPE_ASSIGN(Demonstrator demonstrator,
                Demonstrator::make(std::move(envs), std::move(expert), request.cameras, request.image_size));
  TROUPE_ASSIGN(NewFolder folder, NewFolder::begin(request.out));
  if (!request.is_v30) {
    TROUPE_ASSIGN(const RecordingReport report, write_dataset(folder.path(), request, demonstrator));
    TROUPE_TRY(folder.publish());
    return report;
  }
  TROUPE_ASSIGN(const NewFolder source, NewFolder::begin(folder.path() + "-v2.1"));
  TROUPE_ASSIGN(const RecordingReport report, write_dataset(source.path(), request, demonstrator));
  TROUPE_TRY(write_v30(source.path(), folder.path(), request.progress));
  TROUPE_TRY(folder.publish());
  return report;
}

}  // namespace troupe::workers
