#pragma once

#include <string>

#include "base/result.h"
#include "configs/diagnostics.h"
#include "configs/embodiment_config.h"
#include "configs/node.h"

namespace troupe::configs {

/// Puts embodiment files where a layer of a job names them:
///   data.embodiment: NAME            becomes the keys of that file, in place of what weaker layers said
///   data.embodiments.KEY: NAME       the same for one of several
///   data.sets[].embodiment: FILE     adds the file to data.embodiments under its stem, unless data.embodiments has
///   that name
/// NAME is one of configs/embodiments inside the binary, or a file beside the document that says it (on the command
/// line: beside the working directory). Such a file holds the keys of EmbodimentConfig.
void expand_embodiments(ConfigNode& layer, const std::string& document, bool embedded, Diagnostics& errors);

/// One embodiment by name or file, for commands that read a dataset without a job.
/// Errors: not_found, invalid_argument; the text has every mistake, one a line.
Result<EmbodimentConfig> load_embodiment(const std::string& name_or_file);

}  // namespace troupe::configs
