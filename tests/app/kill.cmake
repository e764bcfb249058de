# Processes that are killed, stopped and refused: the whole program under `kill`. Each test runs real jobs in processes of their own.
troupe_test(app/kill_rl_test
  DEPENDS troupe::base troupe::comm_control troupe::test_program troupe::workers_toy nlohmann_json::nlohmann_json
  LABELS integration fault TIMEOUT 400)
add_dependencies(app_kill_rl_test troupe)
foreach(test actor controller encoder node scripted)
  troupe_test(app/kill_${test}_test DEPENDS troupe::base troupe::comm_control LABELS integration fault TIMEOUT 400)
  add_dependencies(app_kill_${test}_test troupe)
endforeach()
