#pragma once

#include "app/command_line.h"
#include "app/job_setup.h"
#include "base/random.h"
#include "base/result.h"
#include "comm/collective/collective.h"
#include "configs/loader.h"
#include "data/mixture.h"
#include "data/sample/open_mixture.h"
#include "data/sample/sample_builder.h"
#include "data/sample/tokenize.h"
#include "env/env.h"
#include "env/env_factory.h"
#include "env/episode_seed.h"
#include "env/registry/registry.h"
#include "model/shard/engine.h"
#include "workers/learner/sft_task.h"
#include "workers/stream/feed.h"

/// Troupe as a library: the names that programs outside this repository may rely on (docs/embed.md). Such a program
/// includes this header and uses what is named in `troupe` itself; examples/embed/embed.cpp and examples/custom_env.cpp
/// use nothing else.
///
/// Stable are these names, their public members, and what the comments in their headers say of them. A change of those
/// stands in CHANGELOG.md and raises the version's second number, and find_package(Troupe 0.1) takes no other.
/// Everything else in the installed headers, the namespaces of the folders (troupe::model and the like) among it, may
/// change with any commit.
namespace troupe {

/// Errors. Functions return Result<T> and do not throw, but for tensor functions, which throw c10::Error on shapes that
/// do not fit. TROUPE_TRY and TROUPE_ASSIGN pass an Error on to the caller.
using base::Errc;
using base::Error;
using base::Result;

/// Jobs: the configuration that one YAML file or recipe describes (docs/config.md has every key), and the dataset of
/// the quickstart.
using app::ensure_quickstart_data;
using app::load_or_explain;
using configs::JobConfig;
using configs::LoadedConfig;

/// Samples of a job's datasets: the sample at a position of the endless order, as bytes of a SampleLayout.
using data::make_tokenize;
using data::Mixture;
using data::open_mixture;
using data::SampleBuilder;
using data::SampleLayout;
using data::Split;
using data::Tokenize;

/// Training: what turns samples into batches and has the network (SftTask), the engine that holds parameters and
/// optimizer in shards over the ranks, and the ranks' collective. One thread a rank; the Engine is used by that thread.
using comm::Collective;
using comm::join_thread_group;
using comm::make_thread_group;
using model::Batch;
using model::Engine;
using model::EngineOptions;
using model::MicroResult;
using model::StepVote;
using workers::Feed;
using workers::SftTask;

/// Environments of your own (docs/env.md#add-an-environment): the interface, its row in the table, and the episode's
/// random numbers.
using base::CounterRng;
using env::BatchEnv;
using env::check_actions;
using env::Env;
using env::EnvRow;
using env::EnvSpec;
using env::make_simple_env_factory;
using env::register_env;
using env::StepSlot;
namespace env_stream = env::env_stream;

/// The command line of `troupe`, for a main that has registered what it adds.
using app::run_command_line;

}  // namespace troupe
