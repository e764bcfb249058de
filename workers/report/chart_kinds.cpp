#include "workers/report/chart_kinds.h"

namespace troupe::workers {

const std::vector<ChartKind>& chart_kinds() {
  static const std::vector<ChartKind> kinds{
      {"Loss",
       false,
       {{"train/loss", "training"},
        {"train/dynamics_loss", "training, video"},
        {"train/action_loss", "training, actions"},
        {"eval/loss", "held out"}}},
      {"Return of an episode", true, {{"env/return", "training episodes"}, {"eval/return", "evaluation"}}},
      {"Episodes with success", true, {{"env/success_once", "training episodes"}, {"eval/success_once", "evaluation"}}},
      {"Length of an episode", true, {{"env/episode_len", "training episodes"}, {"eval/episode_len", "evaluation"}}},
      {"Gradient norm before clipping",
       false,
       {{"train/grad_norm", "all parameters"}, {"train/actor/grad_norm", "all parameters (actor)"}}},
      {"Learning rate", false, {{"train/lr", "rate"}, {"train/actor/lr", "actor"}, {"train/critic/lr", "critic"}}},
      {"Seconds of a step",
       false,
       {{"time/step", "whole step"},
        {"time/compute", "compute"},
        {"time/stall", "waiting for data"},
        {"time/vote", "vote"},
        {"time/checkpoint", "checkpoint"}}}};
  return kinds;
}

}  // namespace troupe::workers
