# Policy clients of other people against a server process with a scripted policy.
troupe_binary(scripted_policy_server SOURCES ${CMAKE_SOURCE_DIR}/tests/support/scripted_policy_server.cpp
  DEPENDS troupe::workers_serve troupe::comm_serve)
troupe_test(app/serve_client_test DEPENDS troupe::test_program LABELS integration TIMEOUT 120)
target_compile_definitions(app_serve_client_test PRIVATE SCRIPTED_POLICY_SERVER="$<TARGET_FILE:scripted_policy_server>")
add_dependencies(app_serve_client_test scripted_policy_server)
troupe_test(app/serve_address_test SOURCES ${CMAKE_SOURCE_DIR}/app/serve_address.cpp
  DEPENDS troupe::comm_control troupe::comm_serve troupe::test_program LABELS unit)
