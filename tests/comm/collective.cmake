troupe_test(comm/rank_sum_test DEPENDS troupe::comm_collective LABELS unit sanitize)
troupe_test(comm/thread_collective_test SOURCES collective_conformance.cpp DEPENDS troupe::comm_collective LABELS unit sanitize tsan)
troupe_test(comm/gloo_collective_test SOURCES collective_conformance.cpp DEPENDS troupe::comm_gloo LABELS integration)
