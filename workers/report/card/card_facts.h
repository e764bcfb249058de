#pragma once

#include <string>

#include "base/result.h"
#include "workers/checkpoint/weight_shards.h"
#include "workers/report/card/model_card.h"

namespace troupe::workers {

/// The card of a checkpoint that was exported into `folder`: its job, the datasets as they are on this machine (those
/// that are gone are named alone), the metrics and the newest evaluation of its run, and licences where a README.md
/// with front matter, or info.json, states them. `run`: the run directory, empty: none. `format`: safetensors, gear or
/// lora.
/// Errors: those of read_manifest, job_of and read_compared_run.
Result<ModelCard> card_of(const std::string& checkpoint, const std::string& run, const std::string& format,
                          const std::string& folder, const ExportSummary& exported);

/// `license`, `license_name` and `license_link` of the front matter of README.md, else "license" of meta/info.json, in
/// the folder of a file, in a folder, or in the snapshot of a Hugging Face cache that either belongs to; nothing where
/// neither states one.
std::optional<CardLicense> stated_license(const std::string& path);

}  // namespace troupe::workers
