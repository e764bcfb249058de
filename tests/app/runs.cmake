# Whole jobs through the program: what it trains, refuses, survives and answers.
troupe_library(test_program SOURCES ${CMAKE_SOURCE_DIR}/tests/support/program.cpp)
foreach(test encode equal_training resume lora usage bad_data full_disk live recordings bench_loader mixture stats rl_run rl_replay rl_serve)
  troupe_test(app/${test}_test
    DEPENDS troupe::base troupe::test_program troupe::workers_toy nlohmann_json::nlohmann_json
    LABELS integration)
  add_dependencies(app_${test}_test troupe)
endforeach()
# Commands that a test calls itself, on what a run through the program left.
troupe_test(app/eval_export_test
  DEPENDS troupe::app troupe::test_program troupe::workers_toy nlohmann_json::nlohmann_json
  LABELS integration)
add_dependencies(app_eval_export_test troupe)
# `convert weights` and `doctor --model`.
troupe_test(app/weights_command_test
  DEPENDS troupe::model_weights troupe::test_program nlohmann_json::nlohmann_json
  LABELS integration ATEN)
add_dependencies(app_weights_command_test troupe)
troupe_test(app/plan_memory_test
  DEPENDS troupe::app troupe::placement troupe::model_shard troupe::comm_collective troupe::workers_checkpoint troupe::workers_learner
  LABELS unit ATEN)
# `convert dataset`.
troupe_test(app/convert_dataset_test
  DEPENDS troupe::base troupe::test_program troupe::workers_toy nlohmann_json::nlohmann_json
  LABELS integration)
add_dependencies(app_convert_dataset_test troupe)
# What the recipes of reinforcement learning reach.
troupe_test(app/rl_learning_test
  DEPENDS troupe::base troupe::test_program troupe::workers_toy nlohmann_json::nlohmann_json
  LABELS integration TIMEOUT 600)
add_dependencies(app_rl_learning_test troupe)
# The same where timing decides: three whole jobs, by label `slow`.
troupe_test(app/rl_free_running_test
  DEPENDS troupe::base troupe::test_program troupe::workers_toy nlohmann_json::nlohmann_json
  LABELS integration slow TIMEOUT 900)
add_dependencies(app_rl_free_running_test troupe)
# `record`.
troupe_test(app/record_test
  DEPENDS troupe::workers_lerobot troupe::test_program
  LABELS integration TIMEOUT 120)
add_dependencies(app_record_test troupe)
# Demonstrations, a policy cloned from them, and what reinforcement learning makes of it.
troupe_test(app/imitation_test
  DEPENDS troupe::base troupe::test_program troupe::workers_toy nlohmann_json::nlohmann_json
  LABELS integration TIMEOUT 180)
add_dependencies(app_imitation_test troupe)
# `eval` of a policy that plays.
troupe_test(app/eval_episodes_test
  DEPENDS troupe::base troupe::test_program troupe::workers_toy nlohmann_json::nlohmann_json
  LABELS integration TIMEOUT 120)
add_dependencies(app_eval_episodes_test troupe)
