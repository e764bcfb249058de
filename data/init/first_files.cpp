#include "data/init/first_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/commented_yaml.h"
#include "configs/scalar.h"

namespace troupe::data {

namespace {

/// The reason of one value; empty where none was noted.
const std::string& reason(const std::map<std::string, std::string>& why, const std::string& name) {
  static const std::string none;
  const auto it = why.find(name);
  return it == why.end() ? none : it->second;
}

void guessed(CommentedYaml& out, const std::map<std::string, std::string>& why, const std::string& name,
             const std::string& line, int indent = 0) {
  if (!reason(why, name).empty()) out.note(reason(why, name), indent);
  out.line(line, indent);
}

std::string described(const HealthReport& report) {
  return fmt::format("{} (LeRobot {}, {} episodes, {} rows, {:g} rows/s)", report.root, report.version,
                     report.episodes.size(), report.table_rows, report.fps);
}

void put_slices(CommentedYaml& out, const RobotGuess& robot) {
  const EmbodimentConfig& e = robot.embodiment;
  if (e.slices.empty()) return;
  guessed(out, robot.why, "slices", "slices:");
  for (const char* section : {"state", "action"}) {
    for (const std::string& key : *section == 's' ? e.state_keys : e.action_keys) {
      const std::string path = fmt::format("{}.{}", section, key);
      const auto names = robot.joints.find(path);
      if (names != robot.joints.end()) out.note(fmt::format("{}", fmt::join(names->second, ", ")), 2);
      out.line(fmt::format("{}: {}", format_string(path), format_string(e.slices.at(path))), 2);
    }
  }
}

void put_machine(CommentedYaml& out, const JobGuess& job) {
  guessed(out, job.why, "cluster", "cluster:");
  const std::string ranks = job.ranks == 1 ? "0:0" : fmt::format("0:0-{}", job.ranks - 1);
  out.line("component_placement:", 2);
  // a node is one resource then, whatever GPUs it has
  const auto put = [&](const char* role, std::string_view placement) {
    out.line(fmt::format("{}: {{node_group: node, placement: \"{}\"}}", role, placement), 4);
  };
  put("learner", ranks);
  put("decoder", ranks);
  put("checkpointer", "0");
}

void put_model(CommentedYaml& out, const JobGuess& job) {
  out.line("model:");
  guessed(out, job.why, "canvas", fmt::format("target_height: {}", job.canvas_height), 2);
  out.line(fmt::format("target_width: {}", job.canvas_width), 2);
  guessed(out, job.why, "dims",
          fmt::format("dit: {{action_dim: {}, max_state_dim: {}}}", job.action_dim, job.max_state_dim), 2);
  guessed(out, job.why, "text", fmt::format("text_encoder: {{max_length: {}}}", job.text_tokens), 2);
}

void put_data(CommentedYaml& out, const JobGuess& job, const HealthReport& report, const std::string& robot_file) {
  out.line("data:");
  out.note("A list trains on several datasets at once: docs/data.md.", 2);
  out.line(fmt::format("sets: [{{path: {}}}]", format_string(report.root)), 2);
  out.note("Cameras, keys and the prompt are there.", 2);
  out.line(fmt::format("embodiment: {}", format_string(robot_file)), 2);
  guessed(out, job.why, "eval", fmt::format("eval_episodes: [{}]", fmt::join(job.eval_episodes, ", ")), 2);
  if (job.bad_episodes > 0) {
    out.note(fmt::format("{} of {} episodes have bad files and are left out; `troupe stats` says which and why. fail "
                         "stops the job instead.",
                         job.bad_episodes, report.episodes.size()),
             2);
    out.line("bad_sample: skip", 2);
  }
  const WindowConfig& w = job.window;
  guessed(out, job.why, "window",
          fmt::format("window: {{chunks: {}, macro_stride: {}, action_horizon: {}, video_offsets: [{}]}}", w.chunks,
                      w.macro_stride, w.action_horizon, fmt::join(w.video_offsets, ", ")),
          2);
  out.note("One view on the canvas, so that nothing is resized twice.", 2);
  out.line(fmt::format("image: {{height: {}, width: {}}}", job.view_height, job.view_width), 2);
}

void put_training(CommentedYaml& out, const JobGuess& job) {
  guessed(out, job.why, "steps",
          fmt::format("training: {{steps: {}, global_batch_size: {}, micro_batch_size: {}}}", job.steps,
                      job.global_batch, job.micro_batch));
  guessed(out, job.why, "lr", fmt::format("optimizer: {{lr: {}}}", format_number(job.lr)));
  out.note(
      "The rate rises over the first twentieth of the steps, then falls along a cosine. constant suits a job whose "
      "end is open.");
  out.line("lr_scheduler: {name: cosine, warmup_ratio: 0.05}");
  constexpr std::int64_t kCheckpoints = 5, kEvaluations = 10, kWindows = 16;
  out.note("A run that is cut off loses at most this many steps.");
  out.line(fmt::format("checkpoint: {{interval: {}, keep: 2}}", std::max<std::int64_t>(job.steps / kCheckpoints, 1)));
  if (job.eval_episodes.empty()) {
    out.note("Without held-out episodes there is nothing to evaluate on.");
    out.line("eval: {every: 0}");
  } else {
    out.note(
        fmt::format("Held-out loss on {} windows, at the same noise each time. More windows are steadier and take "
                    "longer.",
                    kWindows));
    out.line(fmt::format("eval: {{every: {}, max_samples: {}}}", std::max<std::int64_t>(job.steps / kEvaluations, 1),
                         kWindows));
  }
}

}  // namespace

std::string robot_yaml(const RobotGuess& robot, const HealthReport& report) {
  const EmbodimentConfig& e = robot.embodiment;
  CommentedYaml out;
  out.note("A robot, guessed by `troupe init` from " + described(report) + ".");
  out.note(
      "The comment before a value says why it was chosen and what else could stand there. All keys: docs/config.md, "
      "data.embodiment.");
  const auto put = [&](const char* name, const std::string& value) {
    guessed(out, robot.why, name, fmt::format("{}: {}", name, value));
  };
  put("tag", format_string(e.tag));
  put("id", fmt::format("{}", e.id));
  put("fps", format_number(e.fps));
  put("views", flow_list(e.views));
  out.note("Where each view is in the dataset: the feature of info.json.");
  out.line("cameras:");
  for (const std::string& view : e.views)
    out.line(fmt::format("{}: {}", format_string(view), format_string(e.cameras.at(view))), 2);
  put("layout", e.layout);
  put("state_keys", flow_list(e.state_keys));
  put("action_keys", flow_list(e.action_keys));
  put_slices(out, robot);
  put("relative_action_keys", flow_list(e.relative_action_keys));
  put("normalization", e.normalization);
  if (!e.language_key.empty()) put("language_key", format_string(e.language_key));
  put("prompt", e.prompt);
  return out.text();
}

std::string job_yaml(const JobGuess& job, const HealthReport& report, const std::string& robot_file) {
  CommentedYaml out;
  out.note("A first job, guessed by `troupe init` from " + described(report) + ".");
  out.note(
      "The comment before a value says why it was chosen and what else could stand there. All keys: "
      "docs/config.md.");
  if (!job.instructions.empty()) out.note("Instructions: " + fmt::format("{}", fmt::join(job.instructions, " | ")));
  out.line("version: 1");
  out.note(
      "A small model of DreamZero's shape, from random values: what a machine without a GPU learns with. With "
      "released weights and GPUs: recipes/dreamzero_5b_droid.yaml.");
  out.line(fmt::format("extends: {}", kFirstPreset));
  guessed(out, job.why, "name", fmt::format("job: {{name: {}, kind: sft, seed: 42}}", format_string(job.name)));
  put_machine(out, job);
  put_model(out, job);
  put_data(out, job, report, robot_file);
  put_training(out, job);
  out.note("Steps between two lines of progress where the output is no terminal.");
  out.line("metrics: {every: 20}");
  return out.text();
}

}  // namespace troupe::data
