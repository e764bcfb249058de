# Whole jobs through the program: what it trains, refuses, survives and answers.
troupe_library(test_program SOURCES ${CMAKE_SOURCE_DIR}/tests/support/program.cpp)
foreach(test equal_training resume usage bad_data full_disk live recordings)
  troupe_test(app/${test}_test
    DEPENDS troupe::base troupe::test_program troupe::workers_video nlohmann_json::nlohmann_json
    LABELS integration)
  add_dependencies(app_${test}_test troupe)
endforeach()
