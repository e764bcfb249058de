#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/commands.h"

namespace troupe::app {

/// Every verb with its flags, and where CLI11 puts what is typed. Beside this header only read_command_tree.h includes
/// CLI11.
struct CommandOptions {
  CLI::App app{"Troupe: trains robot policies, by fine-tuning and in simulators, on actors that survive"};
  RunOptions run;
  PlanOptions plan;
  KeygenOptions keygen;
  NodeOptions node;
  HostOptions host;
  StatusOptions status;
  ScaleOptions scale;
  RunsOptions runs;
  std::vector<std::string> scale_words;
  VerifyOptions verify;
  CompareOptions compare;
  SweepCommandOptions sweep;
  ExportOptions exported;
  ConfigOptions config;
  DoctorOptions doctor;
  ConvertOptions convert;
  ConvertDatasetOptions convert_dataset;
  CLI::App* convert_verb = nullptr;
  CLI::App* env_verb = nullptr;
  EnvListOptions env_list;
  EnvDescribeOptions env_describe;
  RecordOptions record;
  InitOptions init;
  StatsOptions stats;
  CLI::Option* stats_json = nullptr;
  EncodeOptions encode;
  BenchOptions bench;
  EvalOptions eval;
  ServeOptions serve;
  std::string completion_shell, man_folder;

  CommandOptions();
  /// CLI11 keeps addresses of the members.
  CommandOptions(const CommandOptions&) = delete;
  CommandOptions& operator=(const CommandOptions&) = delete;

 private:
  void add_init();
  void add_shell();
  void add_jobs();
  void add_live();
  void add_files();
  void add_weights();
  void add_datasets();
  void add_environments();
  void add_recording();
  void add_policies();
  void add_host();
};

}  // namespace troupe::app
