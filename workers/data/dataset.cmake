# What a sample is: windows, order, normalisation, text, tables. Arrow stays behind the headers.
troupe_library(workers_data
  SOURCES
    dataset.cpp
    dataset_statistics.cpp
    episode_check.cpp
    file_checks.cpp
    language.cpp
    lerobot_info.cpp
    lerobot_meta.cpp
    modality.cpp
    multi_anchor.cpp
    normalise.cpp
    parquet_table.cpp
    python_literal.cpp python_repr.cpp
    sample.cpp
    sample_builder.cpp
    sample_index.cpp
    state_action.cpp
    statistics.cpp
  DEPENDS troupe::base troupe::workers_video Threads::Threads
  PRIVATE troupe::model_text Arrow::parquet nlohmann_json::nlohmann_json fmt::fmt)
