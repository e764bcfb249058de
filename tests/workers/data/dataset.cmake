# What a sample is: windows, order, normalisation, text, tables. Golden kinds are found by listing the golden folder.
troupe_test(workers/data/sampler_test DEPENDS troupe::workers_data LABELS unit)
troupe_test(workers/data/lerobot_info_test DEPENDS troupe::workers_data nlohmann_json::nlohmann_json LABELS unit)
troupe_test(workers/data/language_test DEPENDS troupe::workers_data troupe::model_text LABELS unit)
troupe_test(workers/data/parquet_table_test DEPENDS troupe::workers_data Arrow::parquet LABELS unit)
troupe_test(workers/data/dataset_test
  DEPENDS troupe::workers_data Arrow::parquet nlohmann_json::nlohmann_json LABELS unit)
troupe_test(workers/data/sample_builder_test DEPENDS troupe::workers_data Arrow::parquet LABELS unit)
troupe_test(workers/data/real_dataset_test DEPENDS troupe::workers_data nlohmann_json::nlohmann_json LABELS unit)
troupe_test(workers/data/golden_sampling_test DEPENDS troupe::workers_data nlohmann_json::nlohmann_json LABELS unit)
troupe_test(workers/data/golden_normalisation_test DEPENDS troupe::workers_data nlohmann_json::nlohmann_json LABELS unit)
troupe_test(workers/data/golden_language_test
  DEPENDS troupe::workers_data troupe::model_text nlohmann_json::nlohmann_json LABELS unit)
troupe_test(workers/data/golden_prompts_test
  DEPENDS troupe::workers_data troupe::model_text nlohmann_json::nlohmann_json LABELS unit)
troupe_test(workers/data/golden_tables_test DEPENDS troupe::workers_data nlohmann_json::nlohmann_json LABELS unit)
troupe_test(workers/data/golden_batch_test DEPENDS troupe::workers_data nlohmann_json::nlohmann_json LABELS unit)
