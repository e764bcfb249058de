# Whole jobs through the program: what it trains, refuses, survives and answers.
troupe_library(test_program SOURCES ${CMAKE_SOURCE_DIR}/tests/support/program.cpp)
foreach(test equal_training resume lora usage bad_data full_disk live recordings)
  troupe_test(app/${test}_test
    DEPENDS troupe::base troupe::test_program troupe::workers_video nlohmann_json::nlohmann_json
    LABELS integration)
  add_dependencies(app_${test}_test troupe)
endforeach()
# Commands that a test calls itself, on what a run through the program left.
troupe_test(app/eval_export_test
  DEPENDS troupe::app troupe::test_program troupe::workers_video nlohmann_json::nlohmann_json
  LABELS integration)
add_dependencies(app_eval_export_test troupe)
