#include <algorithm>

#include "configs/embedded.h"
#include "tests/configs/support.h"

namespace troupe::configs {
namespace {

using namespace testing;

TEST(ErrorMessagesTest, UnknownKeysShowTheLineACaretAndTheNearestName) {
  EXPECT_EQ(errors_of(load(kTiny + "training: {micro_batchsize: 32}\n")),
            "my.yaml:2:12: error: unknown key 'training.micro_batchsize'\n"
            "    2 | training: {micro_batchsize: 32}\n"
            "      |            ^~~~~~~~~~~~~~~ did you mean 'micro_batch_size'?\n");
}

TEST(ErrorMessagesTest, UnknownKeysThatLiveElsewhereShowTheirFullPath) {
  EXPECT_EQ(errors_of(load(kTiny + "training:\n  warmup_ratio: 0.1\n")),
            "my.yaml:3:3: error: unknown key 'training.warmup_ratio'\n"
            "    3 |   warmup_ratio: 0.1\n"
            "      |   ^~~~~~~~~~~~ did you mean 'lr_scheduler.warmup_ratio'?\n");
  EXPECT_EQ(errors_of(load(kTiny + "bananas: 1\n")),
            "my.yaml:2:1: error: unknown key 'bananas'\n"
            "    2 | bananas: 1\n"
            "      | ^~~~~~~\n");
}

TEST(ErrorMessagesTest, DuplicateKeysNameMapAndFirstPlace) {
  EXPECT_EQ(errors_of(load(kTiny + "optimizer:\n  lr: 1.0e-3\n  eps: 1.0e-8\n  lr: 2.0e-3\n")),
            "my.yaml:5:3: error: duplicate key 'lr' in map 'optimizer' (first at 3:3)\n"
            "    5 |   lr: 2.0e-3\n"
            "      |   ^~\n");
}

TEST(ErrorMessagesTest, PlacementsAreCheckedAtTheirPosition) {
  EXPECT_EQ(
      errors_of(load(kTiny + "cluster:\n  component_placement:\n    decoder: \"0-2:0-7\"\n")),
      "my.yaml:4:14: error: cluster.component_placement.decoder: segment '0-2:0-7' maps 8 processes to 3 resources; "
      "one count must divide the other\n"
      "    4 |     decoder: \"0-2:0-7\"\n"
      "      |              ^~~~~~~~~\n");
  const std::string in_map =
      errors_of(load(kTiny + "cluster: {component_placement: {decoder: {node_group: node, placement: 1-0}}}\n"));
  EXPECT_TRUE(contains(in_map, "my.yaml:2:72: error: cluster.component_placement.decoder: segment '1-0'"));
}

TEST(ErrorMessagesTest, OverridesAreNamedAsSuch) {
  EXPECT_EQ(errors_of(load(kTiny, {"data.sets[0].weight=heavy"})),
            "command line: error: data.sets[0].weight: expected number > 0, got 'heavy'\n");
  EXPECT_EQ(errors_of(load(kTiny, {"data.sets[0].weight=0"})),
            "command line: error: data.sets[0].weight: expected number > 0, got '0'\n");
  EXPECT_EQ(errors_of(load(kTiny, {"training.micro_batchsize=3"})),
            "command line: error: unknown key 'training.micro_batchsize'; did you mean 'micro_batch_size'?\n");
}

TEST(ErrorMessagesTest, LaterStagesCanPointAtAKey) {
  const auto outcome = load(kTiny + "training:\n  global_batch_size: 250\n");
  ASSERT_TRUE(outcome.config);
  EXPECT_EQ(
      outcome.config->error_at("training.global_batch_size", "training.global_batch_size 250 is not a multiple of 256",
                               "training.global_batch_size=256"),
      "my.yaml:3:22: error: training.global_batch_size 250 is not a multiple of 256\n"
      "    3 |   global_batch_size: 250\n"
      "      |                      ^~~\n"
      "      fix: training.global_batch_size=256");
  EXPECT_EQ(outcome.config->error_at("training.micro_batch_size", "too large"), "my.yaml: error: too large");
}

TEST(ErrorMessagesTest, TypesAreNamedWithRangeAndChoices) {
  const std::string errors = errors_of(load(kTiny + R"(training: {steps: 0, micro_batch_size: "4", clip_grad_norm: no}
model: {dit: {concat_first_frame_latent: yes}}
data: {bad_sample: skipp, eval_episodes: 3, sets: {path: x}}
optimizer: [1]
metrics: {sinks: [jsonl, wandb]}
)"));
  EXPECT_TRUE(
      contains(errors, "my.yaml:2:19: error: training.steps: expected integer in [1, 1099511627776], got '0'\n"));
  EXPECT_TRUE(contains(errors, "training.micro_batch_size: expected integer in [1, 1048576], got the string \"4\"\n"));
  EXPECT_TRUE(contains(errors, "^~~ quotes make it a string\n"));
  EXPECT_TRUE(contains(errors, "training.clip_grad_norm: expected number in [0, 1000000000000], got 'no'\n"));
  EXPECT_TRUE(contains(errors, "model.dit.concat_first_frame_latent: expected true or false, got 'yes'\n"));
  EXPECT_TRUE(contains(errors, "my.yaml:4:20: error: data.bad_sample: expected one of fail, skip, got 'skipp'\n"));
  EXPECT_TRUE(contains(errors, "^~~~~ did you mean 'skip'?\n"));
  EXPECT_TRUE(contains(errors, "data.eval_episodes: expected a list, each item integer, got '3'\n"));
  EXPECT_TRUE(contains(errors, "data.sets: expected a list of maps, got a map\n"));
  EXPECT_TRUE(contains(errors, "my.yaml:5:12: error: optimizer: expected a map of keys, got a list\n"));
  EXPECT_TRUE(contains(errors, "metrics.sinks[1]: expected one of jsonl, csv, tensorboard, got 'wandb'\n"));
}

TEST(ErrorMessagesTest, RenamedKeysNameTheNewKey) {
  const std::string errors = errors_of(
      load(kTiny + "actor:\n  micro_batch_size: 4\n  optim: {lr: 1.0e-3}\n  foo: 1\nrunner: {max_steps: 9}\n"));
  EXPECT_TRUE(
      contains(errors,
               "my.yaml:3:3: error: key 'actor.micro_batch_size' (RLinf) is called 'training.micro_batch_size'\n"
               "    3 |   micro_batch_size: 4\n"
               "      |   ^~~~~~~~~~~~~~~~ write 'training.micro_batch_size'\n"));
  EXPECT_TRUE(contains(errors, "key 'actor.optim.lr' (RLinf) is called 'optimizer.lr'"));
  EXPECT_TRUE(contains(errors, "my.yaml:5:3: error: unknown key 'actor.foo'"));
  EXPECT_TRUE(contains(errors, "key 'runner.max_steps' (RLinf) is called 'training.steps'"));
  EXPECT_EQ(errors_of(load(kTiny, {"data.train_data_paths=[a]"})),
            "command line: error: key 'data.train_data_paths' (RLinf) is called 'data.sets'; write 'data.sets'\n");
}

TEST(ErrorMessagesTest, AllErrorsComeAtOnceUpToTwenty) {
  const auto three = load(kTiny + "training: {steps: x}\njob: {nme: a}\n", {"optimizer.betas=[1]"});
  EXPECT_EQ(three.errors.size(), 3u);
  std::string many = kTiny;
  for (int i = 0; i < 25; ++i) many += "unknown_section_" + std::to_string(i) + ": 1\n";
  const auto outcome = load(many);
  EXPECT_EQ(outcome.errors.size(), 20u);
  EXPECT_TRUE(contains(outcome.errors.back(), "\nmy.yaml: 5 more errors are not shown"));
}

TEST(ErrorMessagesTest, AWrongValueIsReportedOnceNotAgainByRulesThatReadIt) {
  EXPECT_EQ(load(kTiny + "model: {codec: {stride_t: x}}\n").errors.size(), 1u);
  EXPECT_EQ(load(kTiny + "data: {embodiment: {layout: xyz}}\n").errors.size(), 1u);
}

TEST(ErrorMessagesTest, FilesThatCannotBeReadAreNamed) {
  const ScratchFolder dir;
  EXPECT_TRUE(contains(load_job("nowhere/job.yaml", {}).errors.at(0),
                       "nowhere/job.yaml: error: no such file, and no recipe of that name\n"));
  EXPECT_EQ(load_job(dir / "", {}).errors.at(0), dir / "" + ": error: is a directory; name the YAML file");
  const std::string binary = write(dir, "b.yaml", "a: \xFF\n");
  EXPECT_TRUE(contains(load_job(binary, {}).errors.at(0), binary + ":1:4: error: byte 0xFF is not UTF-8 text"));
  const std::string large = write(dir, "l.yaml", std::string((1 << 20) + 1, '#'));
  EXPECT_EQ(load_job(large, {}).errors.at(0),
            large + ": error: larger than 1048576 bytes, the limit for a configuration file");
  const std::string broken = write(dir, "x.yaml", "a: [\n");
  EXPECT_TRUE(contains(load_job(broken, {}).errors.at(0), "x.yaml:2:1: error: YAML syntax: "));
}

TEST(ErrorMessagesTest, WordsOfOtherTrainersNameTheKeyThatIsMeant) {
  EXPECT_EQ(errors_of(load(kTiny, {"lr=1e-3"})),
            "command line: error: unknown key 'lr'; did you mean 'optimizer.lr'?\n");
  EXPECT_EQ(errors_of(load(kTiny + "optimizer: {learning_rate: 1.0e-3}\n")),
            "my.yaml:2:13: error: unknown key 'optimizer.learning_rate'\n"
            "    2 | optimizer: {learning_rate: 1.0e-3}\n"
            "      |             ^~~~~~~~~~~~~ did you mean 'optimizer.lr'?\n");
  EXPECT_EQ(errors_of(load(kTiny, {"training.batch_size=32"})),
            "command line: error: unknown key 'training.batch_size'; did you mean 'training.global_batch_size'? it "
            "counts all ranks; one pass of a rank takes training.micro_batch_size\n");
  EXPECT_EQ(errors_of(load(kTiny, {"epochs=3"})),
            "command line: error: unknown key 'epochs'; did you mean 'training.steps'? it counts optimizer updates, "
            "not passes over the data\n");
  EXPECT_EQ(errors_of(load(kTiny, {"training.num_steps=3"})),
            "command line: error: unknown key 'training.num_steps'; did you mean 'training.steps'? the length of a "
            "rollout is rollout.steps\n");
}

TEST(ErrorMessagesTest, ATabThatIndentsIsNamedWithItsPlace) {
  EXPECT_EQ(errors_of(load(kTiny + "training:\n\tsteps: 5\n")),
            "my.yaml:3:1: error: YAML syntax: a tab cannot indent in YAML\n"
            "    3 | \tsteps: 5\n"
            "      | ^ write spaces\n"
            "      fix: two spaces for each tab, as `expand -t 2 FILE` writes them\n");
  EXPECT_TRUE(contains(errors_of(load(kTiny + "training:\n  steps: 5\n\tmicro_batch_size: 1\n")),
                       "my.yaml:4:1: error: YAML syntax: a tab cannot indent"));
  EXPECT_TRUE(contains(errors_of(load(kTiny + "data:\n  sets:\n  \t- path: a\n")), "my.yaml:4:3: error: "));
  EXPECT_TRUE(contains(errors_of(load(kTiny + "training: {steps: ]}\n")), "YAML syntax: "));
  job_of(load(kTiny + "training: {steps: 5,\n\tmicro_batch_size: 1}\n"));
}

TEST(ErrorMessagesTest, AReferenceInsideBracesAsksForQuotes) {
  EXPECT_EQ(errors_of(load(kTiny + "job: {name: a, kind: ${job.x}, seed: 1}\n")),
            "my.yaml:2:22: error: YAML syntax: a reference inside { } or [ ] needs quotes, since its braces would be "
            "YAML's\n"
            "    2 | job: {name: a, kind: ${job.x}, seed: 1}\n"
            "      |                      ^~~~~~~~ write \"${job.x}\"\n");
  EXPECT_TRUE(contains(errors_of(load(kTiny + "job: {name: pre-${job.kind}}\n")), "write \"pre-${job.kind}\""));
  EXPECT_TRUE(contains(errors_of(load(kTiny + "data: {eval_episodes: [${job.seed}]}\n")), "write \"${job.seed}\""));
  EXPECT_TRUE(contains(errors_of(load(kTiny, {"job={name: ${job.kind}}"})),
                       "command line: error: job: cannot read '{name: ${job.kind}}': a reference inside { } or [ ] "
                       "needs quotes, since its braces would be YAML's; write \"${job.kind}\""));
  job_of(load(kTiny + "job: {name: \"${job.kind}\"}\n"));
}

TEST(ErrorMessagesTest, AFileOfAnotherEncodingShowsTheByte) {
  EXPECT_EQ(errors_of(load(kTiny + "# gr\u00fcn\njob: {name: gr\xFCn}  # \xE9\n")),
            "my.yaml:3:15: error: byte 0xFC is not UTF-8 text\n"
            "    3 | job: {name: gr?n}  # ?\n"
            "      |               ^\n"
            "      fix: save the file as UTF-8, as `iconv -f latin1 -t utf-8 FILE` writes it\n");
}

TEST(ErrorMessagesTest, AnUnknownRecipeListsThoseThereAreNearestFirst) {
  const auto first_lines = [](const std::string& name) {
    const std::string text = load_job(name, {}).errors.at(0);
    return text.substr(0, text.find('\n', text.find("first:\n") + 7));
  };
  for (const auto& [name, nearest] : {std::pair{"quickstart:stf", "quickstart:sft"},
                                      {"quickstart", "quickstart:rl"},
                                      {"recipes/quickstart_stf.yaml", "quickstart:sft"},
                                      {"rl_cartpole", "recipes/rl_cartpole_ppo.yaml"},
                                      {"dreamzero_tyni", "presets/dreamzero_tiny.yaml"}}) {
    EXPECT_EQ(first_lines(name), std::string(name) +
                                     ": error: no such file, and no recipe of that name\n"
                                     "      inside the binary, nearest first:\n        " +
                                     nearest);
  }
  const std::string all = load_job("quickstart", {}).errors.at(0);
  const auto& files = embedded_files();
  const auto offered = std::count_if(files.begin(), files.end(), [](const EmbeddedFile& file) {
    return file.name.starts_with("recipes/") || file.name.starts_with("presets/");
  });
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1 + offered) << "one a line: " << all;
  EXPECT_TRUE(contains(all, "\n        quickstart:rl\n        quickstart:sft\n"));
}

TEST(ErrorMessagesTest, MissingKeysAreReportedAgainstTheFile) {
  const std::string errors = errors_of(load("job: {name: x}\n"));
  EXPECT_TRUE(contains(
      errors, "my.yaml: error: data.sets: names no dataset; wants at least one, such as data.sets=data/droid"));
}

TEST(ErrorMessagesTest, ATabBehindADashIsNamed) {
  EXPECT_TRUE(contains(errors_of(load(kTiny + "data:\n  sets:\n    -\tpath: a\n")), "a tab cannot indent in YAML"));
}

TEST(ErrorMessagesTest, AReferenceIsQuotedWithWhatStandsBehindIt) {
  for (const char* end : {"}", ", seed: 1}", " }"}) {
    EXPECT_TRUE(contains(errors_of(load(kTiny + "job: {run_root: ${env:HOME}/runs" + end + "\n")),
                         "write \"${env:HOME}/runs\""))
        << end;
  }
}

TEST(ErrorMessagesTest, ADottedKeyInAFileIsShownNested) {
  EXPECT_TRUE(contains(errors_of(load(kTiny + "model.dit.dim: 8\n")),
                       "in a file keys stand inside each other: model: {dit: {dim: ...}}"));
}

TEST(ErrorMessagesTest, TheEncodingOfAFileIsGuessed) {
  for (const auto& [text, encoding] : {std::pair{std::string("\xFF\xFEv\0", 4), "utf-16"},
                                       {std::string("v\0e\0", 4), "utf-16le"},
                                       {std::string("\0v\0e", 4), "utf-16be"},
                                       {std::string("\xFC"), "latin1"}}) {
    EXPECT_TRUE(contains(errors_of(load(text)), "`iconv -f " + std::string(encoding) + " -t utf-8 FILE`"));
  }
}

TEST(ErrorMessagesTest, AGpuIsAskedForByItsNumber) {
  for (const char* wanted : {"gpu", "cuda:0"}) {
    const std::string error = errors_of(load(kTiny, {"cluster.component_placement.learner=" + std::string(wanted)}));
    EXPECT_TRUE(contains(error, "resources are numbers, such as 0-7 for eight GPUs")) << error;
    EXPECT_TRUE(contains(error, "--pretend 8xH200")) << error;
  }
}

}  // namespace
}  // namespace troupe::configs
