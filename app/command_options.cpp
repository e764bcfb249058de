#include "app/command_options.h"

#include <map>
#include <string>

#include "app/program_version.h"

namespace troupe::app {

namespace {

void add_weight_set(CLI::App* c, WeightSet& weights) {
  c->add_option("--weights", weights, "model: the trained weights; ema: their moving average (ema.decay)")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, WeightSet>{{"model", WeightSet::model}, {"ema", WeightSet::ema}}));
}

void add_policy_options(CLI::App* c, PolicyOptions& policy) {
  add_weight_set(c, policy.weights);
  c->add_option("--sampler", policy.sampler, "how a call denoises: unipc, or euler")
      ->check(CLI::IsMember({"unipc", "euler"}));
  c->add_option("--steps", policy.steps, "denoising steps")->check(CLI::Range(1, 1000));
  c->add_option("--cfg-scale", policy.cfg_scale, "guidance; 1 switches it off")->check(CLI::Range(1.0, 100.0));
  c->add_option("--noise-seed", policy.noise_seed, "seed of every call's noise");
  c->add_option("--skip", policy.skip, "steps evaluated of 16: none (all), 5, 6, 7, 8 or dynamic")
      ->check(CLI::IsMember({"none", "5", "6", "7", "8", "dynamic"}));
  c->add_option("--dtype", policy.dtype, "fp32 or bf16")->check(CLI::IsMember({"fp32", "bf16"}));
  policy.device = "auto";
  c->add_option("--device", policy.device,
                "where DreamZero's transformer computes: auto (the first GPU, else cores), cores, or a GPU's number");
  c->add_flag("!--no-cuda-graphs", policy.cuda_graphs, "on a GPU, launch kernel by kernel; the bits are the same");
  c->add_option("--threads", policy.threads, "cores to compute on (default: all)")->check(CLI::Range(1, 1024));
  c->add_option("--tokenizer", policy.tokenizer, "SentencePiece model or its folder (default: the checkpoint's)");
  c->add_option("--embodiment", policy.embodiment, "tag in metadata.json (default: the only one)");
  c->add_flag("--state-self-only", policy.state_self_only,
              "state tokens see only themselves, as in training (default: everything, as the released policies)");
  c->add_flag("--sign-gripper", policy.sign_gripper,
              "round the gripper to open or closed, as RLinf does for its embodiments");
}

}  // namespace

CommandOptions::CommandOptions() {
  app.set_version_flag("--version", program_version);
  app.require_subcommand(1);
  add_init();
  add_jobs();
  add_live();
  add_files();
  add_weights();
  add_datasets();
  add_environments();
  add_recording();
  add_policies();
  add_shell();
  add_host();
}

void CommandOptions::add_init() {
  auto* c = app.add_subcommand("init", "a first job for your own dataset or an environment, every guess explained");
  c->add_option("data", init.data, "dataset folder or owner/name");
  c->add_option("--env", init.env, "environment to learn in, such as CartPole-v1, in place of a dataset");
  c->add_option("--out", init.out, "folder of job.yaml and robot.yaml")->required();
}

void CommandOptions::add_shell() {
  auto* c = app.add_subcommand("completion", "print a script that completes commands in a shell");
  c->add_option("shell", completion_shell, "bash, zsh or fish")->required()->type_name("bash|zsh|fish");
  auto* m = app.add_subcommand("man", "write the manual pages");
  m->add_option("--out", man_folder, "folder to write, such as share/man/man1")->required();
}

void CommandOptions::add_jobs() {
  auto* c = app.add_subcommand("run", "plan a job, start it and see it through");
  c->add_option("job", run.job, "job file, or an embedded recipe such as quickstart:sft")->required();
  c->add_option("--resume", run.resume,
                "auto: go on with the newest run of this name; never: start anew; RUN: go on with this one")
      ->type_name("auto|never|RUN");
  c->add_option("--listen", run.listen, "host:port on which further nodes may join");
  c->add_option("--token-file", run.token_file,
                "where --listen writes the file that a joining node needs (default: RUN/token)");
  c->add_flag("--dry-run", run.dry_run, "check and plan only");
  c->add_option("--profile", run.profile,
                "FIRST:LAST: trace these steps in every process of this machine, to RUN/profile/trace.json");
  auto* p = app.add_subcommand("plan", "show who would run where and what it would take");
  p->add_option("job", plan.job, "job file or embedded recipe")->required();
  p->add_option("--pretend", plan.pretend, "plan for this cluster instead of this machine, such as 8xH200");
  p->add_flag("--json", plan.json, "canonical JSON instead of a table");
  p->add_flag("--show-config", plan.show_config, "print the resolved configuration too");
  p->add_option("--timeline", plan.timeline, "write the predicted step of a device's rank as a Chrome trace");
  p->add_flag("--schedule", plan.schedule, "print a learner rank's step, operation by operation, instead");
  auto* w = app.add_subcommand("sweep", "a job with several seeds, and values of keys (a.b=c,d), and a table of them");
  w->add_option("job", sweep.job, "job file or embedded recipe")->required();
  w->add_option("--seeds", sweep.seeds, "seeds: 0..4, or 1,4,7")->required();
  w->add_option("--jobs", sweep.at_once, "runs at a time (default: 1)")->check(CLI::Range(1, 1024));
  w->add_option("--episodes", sweep.episodes, "episodes that the policy of every run plays in the end")
      ->check(CLI::Range(1, 1 << 24));
  w->add_option("--out", sweep.out, "folder of the table, picture and page (default: NAME-sweep beside the runs)");
  auto* f = app.add_subcommand("config", "show a job's resolved configuration, the schema, or the manual of keys");
  f->add_option("job", config.job, "job file or embedded recipe");
  f->add_flag("--schema", config.schema, "JSON Schema for editors");
  f->add_flag("--markdown", config.markdown, "docs/config.md");
}

void CommandOptions::add_live() {
  auto* k = app.add_subcommand("keygen", "make the key of a node, an operator or a viewer");
  k->add_option("name", keygen.name, "name that the key belongs to")->required();
  k->add_option("--role", keygen.role, "node, operator or viewer")
      ->required()
      ->check(CLI::IsMember({"node", "operator", "viewer"}));
  k->add_option("--out", keygen.out, "folder of NAME.key and NAME.pub (default: the working directory)");
  auto* n = app.add_subcommand("node", "join a running job as a further node");
  n->add_option("--controller", node.controller, "address that `troupe run --listen` printed (default: the token's)");
  auto* token = n->add_option("--token-file", node.token_file, "file that `troupe run --listen` wrote");
  n->add_option("--key", node.key, "file of `troupe keygen --role node`, in place of a token; controller.pub beside it")
      ->excludes(token);
  n->add_option("--name", node.name, "name of this node (default: host name)");
  n->add_option("--join-timeout", node.join_timeout_s,
                "seconds until a controller that does not let this node in is given up (default: 60)")
      ->check(CLI::Range(0.5, 86400.0));
  auto* s = app.add_subcommand("status", "what runs where, and how fast");
  s->add_option("run", status.run, "run directory or job name (default: the latest)");
  s->add_option("--run-root", status.run_root, "folder of run directories");
  auto* far = s->add_option("--controller", status.controller, "address of a run elsewhere, in place of RUN");
  s->add_option("--key", status.key, "with --controller: file of `troupe keygen`; controller.pub beside it")
      ->needs(far);
  s->add_flag("--json", status.json, "as JSON");
  s->add_flag("--watch", status.watch, "again every second until the job ends");
  s->add_flag("--stop", status.stop, "stop the job after a checkpoint");
  s->add_flag("--now", status.now, "with --stop: without waiting");
  auto* r = app.add_subcommand("runs", "runs with their state, step, newest value, age and size");
  r->add_option("name", runs.name, "a job's name (default: every job)");
  r->add_option("--run-root", runs.run_root, "folder of run directories");
  auto* prune =
      r->add_flag("--prune", runs.prune, "list what may go: neither live, nor latest, nor the newest of its name");
  r->add_option("--keep", runs.keep, "with --prune: newest runs of each name that stay")
      ->check(CLI::Range(0, 1'000'000));
  r->add_flag("--yes", runs.yes, "with --prune: remove what it lists")->needs(prune);
  auto* e = app.add_subcommand("scale", "change the size of a pool while the job runs: decoder=8, env=8, rollout=2");
  e->add_option("words", scale_words, "[RUN] pool=N [pool=N ...]")->required();
  e->add_option("--run-root", scale.run_root, "folder of run directories");
  auto* there = e->add_option("--controller", scale.controller, "address of a run elsewhere, in place of RUN");
  e->add_option("--key", scale.key, "with --controller: file of `troupe keygen`; controller.pub beside it")
      ->needs(there);
  e->add_flag("--dry-run", scale.dry_run, "show the change only");
}

void CommandOptions::add_files() {
  auto* v = app.add_subcommand("verify", "check a run's checkpoints, and that every sample was trained exactly once");
  v->add_option("run", verify.run, "run directory or job name (default: the latest)");
  v->add_option("--run-root", verify.run_root, "folder of run directories");
  auto* c = app.add_subcommand("compare", "runs on one page: curves, intervals, paired tests, settings that differ");
  c->add_option("runs", compare.runs, "run directories or job names; those that differ by their seed are one group")
      ->required();
  c->add_option("--out", compare.out, "page to write (default: compare.html beside the runs)");
  c->add_option("--run-root", compare.run_root, "folder of run directories");
  auto* d = app.add_subcommand("doctor", "check this machine: cores, memory, libraries, codecs, loopback");
  d->add_flag("--markdown", doctor.markdown, "as a table to paste");
  d->add_option("--model", doctor.model,
                "5b, 14b, a job file or a checkpoint folder: parameter counts and keys, without allocating weights");
}

void CommandOptions::add_weights() {
  auto* x = app.add_subcommand("export", "write a checkpoint's weights for others");
  x->add_option("source", exported.source, "run directory, job name, or a checkpoint's folder")->required();
  x->add_option(
       "--format", exported.format,
       "safetensors: the trained weights; gear: a full DreamZero folder; lora: adapters and what trains beside them")
      ->check(CLI::IsMember({"safetensors", "gear", "lora"}));
  x->add_option("--dtype", exported.dtype, "fp32 or bf16")->check(CLI::IsMember({"fp32", "bf16"}));
  add_weight_set(x, exported.weights);
  x->add_flag("--merge-lora", exported.merge_lora, "fold adapters into the weights they adapt");
  x->add_option("--out", exported.out, "folder to write")->required();
  x->add_option("--shard-size", exported.shard_bytes, "largest file in bytes")->check(CLI::PositiveNumber);
  x->add_option("--run-root", exported.run_root, "folder of run directories");
  convert_verb = app.add_subcommand("convert", "weights or datasets from one form to another")->require_subcommand(1);
  auto* c = convert_verb->add_subcommand("weights",
                                         "weights of Wan and DreamZero between layouts, .pth files to safetensors");
  c->add_option("source", convert.source, ".pth, .pt or .safetensors file, index, or folder")->required();
  c->add_option("--out", convert.out, "folder to write (not with --check)");
  c->add_option("--to", convert.to,
                "troupe: one file of plain names; wan: as Wan's folders; dreamzero: full names in shards")
      ->check(CLI::IsMember({"troupe", "wan", "dreamzero"}));
  c->add_option("--component", convert.component, "what a file without prefixes holds")
      ->check(CLI::IsMember({"auto", "dit", "text_encoder", "image_encoder", "vae"}));
  c->add_option("--model", convert.model, "5b, 14b or a job file: whose keys are expected");
  c->add_option("--dtype", convert.dtype, "keep, fp32 or bf16")->check(CLI::IsMember({"keep", "fp32", "bf16"}));
  c->add_flag("--merge-lora", convert.merge_lora, "fold adapters into the weights they adapt");
  c->add_option("--lora-scale", convert.lora_scale, "alpha / rank for --merge-lora");
  c->add_flag("--check", convert.check, "list missing and unexpected keys, write nothing");
  c->add_option("--shard-size", convert.shard_bytes, "largest file in bytes")->check(CLI::PositiveNumber);
}

void CommandOptions::add_datasets() {
  auto* c = convert_verb->add_subcommand(
      "dataset", "LeRobot datasets between v2.x and v3.0, without loss, or re-encoded for training");
  c->add_option("source,--input_dir", convert_dataset.sources, "dataset folders or owner/name; several are merged")
      ->required();
  c->add_option("--out,--output_dir", convert_dataset.out, "folder to write; must not exist unless --resume")
      ->required();
  c->add_option("--to", convert_dataset.to, "v3.0 or v2.1")->check(CLI::IsMember({"v3.0", "v2.1"}));
  c->add_option("--episodes", convert_dataset.episodes, "those to take, such as 3,8..11 (default: all)");
  c->add_option("--drop-camera", convert_dataset.drop_cameras, "a camera to leave out; may be repeated")
      ->allow_extra_args(false);
  c->add_option("--episode_size", convert_dataset.episode_size, "episodes per data file and per video file")
      ->check(CLI::PositiveNumber);
  c->add_option("--shard_size", convert_dataset.shard_size, "bytes per data or video file, such as 1GB or 512MiB");
  c->add_option("--data_file_size_in_mb", convert_dataset.data_file_mb, "MiB per data file, as LeRobot counts them")
      ->check(CLI::PositiveNumber);
  c->add_option("--video_file_size_in_mb", convert_dataset.video_file_mb, "MiB per video file")
      ->check(CLI::PositiveNumber);
  c->add_option("--video_mode", convert_dataset.video_mode,
                "copy packets, reencode, or auto: copy unless --gop is given or streams differ")
      ->check(CLI::IsMember({"copy", "reencode", "auto"}));
  c->add_option("--gop", convert_dataset.gop, "re-encode with a key frame every so many frames")
      ->check(CLI::Range(1, 100000));
  c->add_option("--codec", convert_dataset.codec, "h264 or av1, of a re-encode");
  c->add_option("--crf", convert_dataset.crf, "quality of a re-encode")->check(CLI::Range(0, 63));
  c->add_option("--preset", convert_dataset.preset, "the encoder's preset");
  c->add_option("--scale", convert_dataset.scale, "WxH of re-encoded frames");
  c->add_option("--pix_fmt", convert_dataset.pix_fmt, "of re-encoded frames");
  c->add_option("--compression", convert_dataset.compression, "of Parquet files")
      ->check(CLI::IsMember({"zstd", "snappy", "none"}));
  c->add_option("--row_group", convert_dataset.row_group, "episode, or a number of rows");
  c->add_option("--jobs", convert_dataset.jobs, "threads (default: one a core)")->check(CLI::Range(1, 1024));
  c->add_flag("--resume", convert_dataset.resume, "go on with what an interrupted conversion left in --out");
  c->add_flag("--strict", convert_dataset.strict, "fail on an episode that cannot be read instead of leaving it out");
  c->add_flag("--repair", convert_dataset.repair, "believe tables and videos where the metadata are damaged");
  c->add_flag("--skip-bad", convert_dataset.skip_bad, "with --repair: leave out episodes that cannot be repaired");
  c->add_flag("--index,!--no-index", convert_dataset.index,
              "make Troupe's index of the result, in the cache (default)");
  c->add_flag("--gear", convert_dataset.gear, "add the metadata files of GEAR");
  c->add_option("--embodiment-tag", convert_dataset.embodiment_tag, "tag that --gear writes");
  c->add_option("--verify", convert_dataset.verify,
                "none; counts: rows and packets; full: every value, packet and frame")
      ->check(CLI::IsMember({"none", "counts", "full"}));
  auto* t = app.add_subcommand("stats", "statistics, relative-action statistics and health of a dataset");
  t->add_option("data", stats.data, "dataset folder or owner/name")->required();
  t->add_option("--embodiment", stats.embodiment, "robot's name or YAML file (default: every column and camera)");
  t->add_option("--html", stats.html, "report to write");
  stats_json = t->add_option("--json", stats.json, "report to write; - or nothing prints it")->expected(0, 1);
  t->add_flag("--write-metadata", stats.write_metadata,
              "write stats.json, relative statistics and GEAR's metadata.json");
  t->add_option("--out", stats.out, "folder for --write-metadata (default: the dataset's meta)");
  t->add_option("--verify", stats.verify, "index: files and tables; full: decode every frame too")
      ->check(CLI::IsMember({"index", "full"}));
  t->add_option("--workers", stats.workers, "threads (default: one a core)")->check(CLI::Range(1, 1024));
  t->add_option("--horizon", stats.horizon, "steps of relative actions")->check(CLI::Range(1, 4096));
  t->add_option("--relative-keys", stats.relative_keys,
                "action keys made relative (default: the robot's, else all but grippers)")
      ->delimiter(',');
  auto* e = app.add_subcommand("encode", "fill data.features.cache with latents and text features");
  e->add_option("job", encode.job, "job file or embedded recipe")->required();
  e->add_option("--max-samples", encode.max_samples, "windows encoded at most")->check(CLI::PositiveNumber);
  e->add_flag("--check", encode.check, "say what is there and what is missing");
  auto* b = app.add_subcommand("bench", "measure a part of Troupe on this machine");
  b->add_option("what", bench.what, "loader: from files to batches, without a learner")
      ->required()
      ->check(CLI::IsMember({"loader"}));
  b->add_option("job", bench.job, "job file, embedded recipe, or a dataset's folder")->required();
  b->add_option("--samples", bench.samples, "samples measured")->check(CLI::PositiveNumber);
  b->add_option("--decoders", bench.decoders, "decoder threads (default: one a core)")->check(CLI::Range(1, 1024));
  b->add_option("--consume-rate", bench.consume_rate, "samples/s taken (default: as fast as they come)")
      ->check(CLI::PositiveNumber);
  b->add_flag("--json", bench.json, "the result as JSON");
}

void CommandOptions::add_environments() {
  env_verb = app.add_subcommand("env", "the environments there are, and what one observes and takes");
  env_verb->require_subcommand(1);
  auto* l = env_verb->add_subcommand("list", "every environment's id, and what it is");
  l->add_flag("--json", env_list.json, "the list as JSON");
  auto* d = env_verb->add_subcommand("describe", "observations, action, limits and cameras of an environment");
  d->add_option("id", env_describe.id, "environment, such as arm7/lift-v1")->required();
  d->add_option("options", env_describe.words, "the environment's options as name=value: profile=pixel");
  d->add_option("--out", env_describe.out, "file to write for env.spec, as JSON");
  d->add_flag("--json", env_describe.json, "the description as JSON");
}

void CommandOptions::add_recording() {
  auto* c = app.add_subcommand("record", "demonstrations of a scripted controller as a LeRobot dataset");
  c->add_option("env", record.env, "environment with a controller, such as arm7/reach-v1")->required();
  c->add_option("options", record.words, "the environment's options as name=value: max_episode_steps=50");
  c->add_option("--out", record.out, "folder to write; must not exist")->required();
  c->add_option("--episodes", record.episodes, "episodes to keep")->check(CLI::Range(1, 100'000));
  c->add_option("--seed", record.seed, "another seed gives other episodes")->check(CLI::NonNegativeNumber);
  c->add_option("--version", record.version, "v3.0 or v2.1 of the format")->check(CLI::IsMember({"v3.0", "v2.1"}));
  c->add_option("--keep", record.keep, "successes: drop what was not solved; all")
      ->check(CLI::IsMember({"successes", "all"}));
  c->add_option("--cameras", record.cameras,
                "cameras to draw, such as front,wrist; each becomes a video of square frames")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--image-size", record.image_size, "side of a camera's square frame in pixels, even")
      ->check(CLI::Range(16, 1024));
}

void CommandOptions::add_policies() {
  auto* e = app.add_subcommand("eval", "compare a policy with recordings, or let it play episodes in its environment");
  e->add_option("checkpoint", eval.checkpoint, "run, checkpoint folder, or DreamZero folder")->required();
  e->add_flag("--open-loop", eval.open_loop, "predicted against recorded actions, per dimension, with a plot");
  e->add_option("--data", eval.data, "dataset folder (default: the job's)");
  e->add_option("--episodes", eval.episodes,
                "recorded episodes to compare with (default: the job's data.eval_episodes), or how many to play")
      ->delimiter(',');
  e->add_option("--env", eval.env, "environment to play (default: the job's, of a policy trained in one)");
  e->add_option("--compare", eval.compare, "another checkpoint that plays the same seeds: a paired test")
      ->type_name("RUN");
  e->add_option("--seed", eval.seed, "seed of the first episode played; the others count up")
      ->check(CLI::NonNegativeNumber);
  e->add_option("--instruction", eval.instruction,
                "what a fine-tuned DreamZero is told in every episode (default: what the environment says)");
  e->add_option("--videos", eval.videos, "videos of failed episodes, where the environment can be drawn")
      ->check(CLI::Range(0, 10'000));
  e->add_option("--windows", eval.windows, "windows evaluated at most, spread evenly")->check(CLI::Range(1, 1'000'000));
  e->add_option("--out", eval.out, "folder of eval.json and open_loop.png");
  e->add_flag("--json", eval.json, "the result as JSON");
  e->add_option("--run-root", eval.run_root, "folder of run directories");
  add_policy_options(e, eval.policy);
  auto* s = app.add_subcommand("serve", "answer robots over their own protocols");
  s->add_option("checkpoint", serve.checkpoint, "run, checkpoint folder, or DreamZero folder")->required();
  s->add_option("--protocol", serve.protocol, "dreamzero, openpi or groot")
      ->check(CLI::IsMember({"dreamzero", "openpi", "groot"}));
  s->add_option("--bind", serve.bind, "host:port (default: 127.0.0.1:8000, groot 127.0.0.1:5555)");
  s->add_option("--token-file", serve.token_file,
                "file with the bearer token that clients must send; required off loopback");
  s->add_option("--action-key", serve.action_key, "form of the reply: array, actions, or keys (action.*)")
      ->check(CLI::IsMember({"array", "actions", "keys"}));
  s->add_option("--max-sessions", serve.max_sessions, "episodes kept at once")->check(CLI::Range(1, 1'000'000));
  s->add_option("--queue", serve.queue, "requests that may wait")->check(CLI::Range(1, 1'000'000));
  s->add_option("--max-request-bytes", serve.max_request_bytes, "largest request")->check(CLI::PositiveNumber);
  s->add_option("--request-timeout", serve.request_timeout_s, "seconds a request may take")
      ->check(CLI::Range(0.1, 86400.0));
  s->add_option("--idle-timeout", serve.idle_timeout_s, "seconds of silence after which a connection is closed")
      ->check(CLI::Range(1.0, 86400.0));
  s->add_flag("--allow-kill", serve.allow_kill, "groot: let clients end the server");
  s->add_flag("--once-selftest", serve.once_selftest, "answer one request of our own and end");
  s->add_option("--run-root", serve.run_root, "folder of run directories");
  add_policy_options(s, serve.policy);
}

void CommandOptions::add_host() {
  auto* h = app.add_subcommand("host", "")->group("");
  h->add_option("--actor", host.actor)->required();
  h->add_option("--role", host.role)->required();
  h->add_option("--incarnation", host.incarnation)->required();
  h->add_option("--node", host.node_endpoint)->required();
  h->add_option("--config", host.config)->required();
  h->add_option("--plan", host.plan)->required();
  h->add_option("--run-dir", host.run_dir)->required();
  h->add_option("--runtime-dir", host.runtime_dir)->required();
  h->add_option("--data-host", host.data_host);
}

}  // namespace troupe::app
