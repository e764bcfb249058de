// The command line: parses and hands over.
#include "app/command_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "actors/signals.h"
#include "app/bundled_fonts.h"
#include "app/command_options.h"
#include "app/commands.h"
#include "app/completion.h"
#include "app/exit_code.h"
#include "app/man_pages.h"
#include "app/read_command_tree.h"
#include "app/wrong_words.h"
#include "base/durable_file.h"
#include "base/log.h"
#include "base/version.h"
#include "configs/embedded.h"
#include "configs/loader.h"
#include "configs/overrides.h"
#include "workers/bridge/bridge_factory.h"
#include "workers/node/parent_death.h"

namespace troupe::app {

namespace {

const std::vector<std::string> kVerbs = {"run",    "plan",   "sweep",   "init",   "node",       "scale",
                                         "status", "keygen", "runs",    "verify", "compare",    "doctor",
                                         "config", "export", "convert", "env",    "record",     "stats",
                                         "encode", "bench",  "eval",    "serve",  "completion", "man"};

/// Behind these go keys of the job (a.b=c).
const std::vector<std::string> kOverrideVerbs = {"run", "plan", "sweep", "config", "encode", "bench"};

/// How an override is called in manual pages and completions.
constexpr const char* kOverrideWord = "key=value ...";

/// "[RUN] pool=N ..." as `troupe scale` takes it: one request a pool. Empty: it is not that.
std::vector<ScaleOptions> parse_scale(const std::vector<std::string>& words, ScaleOptions common) {
  std::vector<ScaleOptions> requests;
  for (const std::string& word : words) {
    if (word.find('=') == std::string::npos) common.run = word;
  }
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    ScaleOptions request = common;
    request.pool = word.substr(0, equals);
    char* end = nullptr;
    request.target = std::strtoll(word.c_str() + equals + 1, &end, 10);
    if (*end != 0 || end == word.c_str() + equals + 1) return {};
    requests.push_back(std::move(request));
  }
  return requests;
}

/// Where standard input, output or error is closed the next file that is opened would take its number, and get what is
/// said.
void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", O_RDWR);  // takes the lowest free number: this one
  }
}

/// Verbs that end in order on a signal. The others die of it at once: what they write appears only when it is whole.
bool handles_signals(const std::string& verb) {
  return verb == "run" || verb == "node" || verb == "host" || verb == "serve";
}

/// The parsed command line, and what becomes of it.
struct CommandLine : CommandOptions {
  /// With the overrides, which are no options of CLI11.
  CommandTree tree() const {
    CommandTree program = read_command_tree(app, "troupe");
    for (CommandTree& verb : program.verbs) {
      if (std::find(kOverrideVerbs.begin(), kOverrideVerbs.end(), verb.name) == kOverrideVerbs.end()) continue;
      verb.words.push_back({.names = {kOverrideWord},
                            .description = "a key of the job and its value, such as training.steps=100; any number of "
                                           "them"});
    }
    return program;
  }

  int print_completion() const {
    std::vector<std::string> keys, recipes;
    const LoadOutcome defaults = load_job("presets/dreamzero_tiny.yaml", {});  // a job has every key
    for (const auto& [key, origin] : defaults.config->provenance) keys.push_back(key);
    for (const EmbeddedFile& file : embedded_files()) {
      if (file.name.starts_with("embodiments/")) continue;  // part of a job, never one
      recipes.emplace_back(file.name);
      if (auto name = short_name(file)) recipes.push_back(std::move(*name));
    }
    const auto script = completion_script(completion_shell, tree(), {.keys = keys, .recipes = recipes});
    if (!script) return complain(script.error());
    fmt::print("{}", *script);
    return kOk;
  }

  int write_man_pages() const {
    std::error_code code;
    std::filesystem::create_directories(man_folder, code);  // a failure is told by the first page
    for (const auto& [name, text] : man_pages(tree(), kTroupeVersion)) {
      if (auto written = write_file_durably(man_folder + "/" + name, text); !written) return complain(written.error());
    }
    return kOk;
  }

  /// unknown_flags_text() of the command that the words name.
  std::string unknown_flags(const std::vector<std::string>& words, bool takes_keys) const {
    const CLI::App* command = &app;
    std::string name;
    std::size_t behind = 0;
    while (behind < words.size()) {
      const auto below = command->get_subcommands([&](const CLI::App* c) { return c->get_name() == words[behind]; });
      if (below.empty()) break;
      command = below.front();
      name += (name.empty() ? "" : " ") + words[behind++];
    }
    std::vector<CommandFlags> others;
    for (const CLI::App* other : app.get_subcommands(nullptr)) {
      if (other != command && !other->get_group().empty()) others.push_back(flags_of(*other, other->get_name()));
    }
    return unknown_flags_text({words.begin() + static_cast<std::ptrdiff_t>(behind), words.end()},
                              flags_of(*command, name), others, takes_keys);
  }

  static CommandFlags flags_of(const CLI::App& command, const std::string& name) {
    CommandFlags flags{.command = name, .flags = {}};
    for (const CLI::Option* option : command.get_options()) {
      const auto& names = option->get_lnames();
      flags.flags.insert(flags.flags.end(), names.begin(), names.end());
    }
    return flags;
  }

  int dispatch() {
    if (app.got_subcommand("init")) return init_command(init);
    if (app.got_subcommand("run")) return run_command(run);
    if (app.got_subcommand("plan")) return plan_command(plan);
    if (app.got_subcommand("keygen")) return keygen_command(keygen);
    if (app.got_subcommand("node")) return node_command(node);
    if (app.got_subcommand("host")) return host_command(host);
    if (app.got_subcommand("status")) return status_command(status);
    if (app.got_subcommand("runs")) return runs_command(runs);
    if (app.got_subcommand("verify")) return verify_command(verify);
    if (app.got_subcommand("compare")) return compare_command(compare);
    if (app.got_subcommand("sweep")) return sweep_command(sweep);
    if (app.got_subcommand("export")) return export_command(exported);
    if (app.got_subcommand("config")) return config_command(config);
    if (app.got_subcommand("doctor")) return doctor_command(doctor);
    if (app.got_subcommand("convert")) {
      return convert_verb->got_subcommand("dataset") ? convert_dataset_command(convert_dataset)
                                                     : convert_command(convert);
    }
    if (app.got_subcommand("env")) {
      return env_verb->got_subcommand("list") ? env_list_command(env_list) : env_describe_command(env_describe);
    }
    if (app.got_subcommand("record")) return record_command(record);
    if (app.got_subcommand("stats")) {
      if (stats_json->count() > 0 && stats.json.empty()) stats.json = "-";
      return stats_command(stats);
    }
    if (app.got_subcommand("encode")) return encode_command(encode);
    if (app.got_subcommand("bench")) return bench_command(bench);
    if (app.got_subcommand("eval")) return eval_command(eval);
    if (app.got_subcommand("serve")) return serve_command(serve);
    if (app.got_subcommand("completion")) return print_completion();
    if (app.got_subcommand("man")) return write_man_pages();
    const std::vector<ScaleOptions> requests = parse_scale(scale_words, scale);
    if (requests.empty()) {
      fmt::print(stderr, "troupe scale: expected pool=N, such as decoder=8, got '{}'\n", fmt::join(scale_words, " "));
      return kUsage;
    }
    // One after the other; what was changed before a refusal stays changed.
    for (const ScaleOptions& request : requests) {
      if (const int code = scale_command(request); code != kOk) return code;
    }
    return kOk;
  }
};

}  // namespace

int run_command_line(int argc, char** argv) {
  open_standard_streams();
  die_with_parent();
  use_bundled_fonts();
  register_bridge_envs();
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && handles_signals(words[0])) block_signals();
  if (!words.empty() && !words[0].starts_with("-") && words[0] != "host" &&
      std::find(kVerbs.begin(), kVerbs.end(), words[0]) == kVerbs.end()) {
    fmt::print(stderr, "{}", unknown_verb_text(words[0], kVerbs));
    return kUsage;
  }
  if (!words.empty()) log::configure(words[0], "");  // stderr: stdout is for results
  CommandLine line;
  // Overrides (a.b=c, --a.b=c, ~a.b) belong to the job, not to the command line.
  const bool takes_overrides =
      !words.empty() && std::find(kOverrideVerbs.begin(), kOverrideVerbs.end(), words[0]) != kOverrideVerbs.end();
  if (takes_overrides) {
    line.run.overrides = split_overrides(words);
    line.plan.overrides = line.config.overrides = line.encode.overrides = line.bench.overrides = line.sweep.overrides =
        line.run.overrides;
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes them last first
  try {
    line.app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    // a flag that does not exist leaves its value where another word belongs: say that first
    const std::string flags = e.get_exit_code() == 0 ? "" : line.unknown_flags(words, takes_overrides);
    fmt::print(stderr, "{}", flags);
    if (!flags.empty()) return kUsage;
    const int code = line.app.exit(e);
    return code == 0 ? kOk : kUsage;
  }
  return line.dispatch();
}

}  // namespace troupe::app
