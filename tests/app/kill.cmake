# Processes that are killed, stopped and refused: the whole program under `kill`. Each test runs real jobs in processes of their own.
foreach(test actor controller encoder node scripted)
  troupe_test(app/kill_${test}_test DEPENDS troupe::base troupe::comm_control LABELS integration fault TIMEOUT 400)
  add_dependencies(app_kill_${test}_test troupe)
endforeach()
