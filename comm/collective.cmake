# comm_collective: rank-order sums and the thread backend, without ATen. comm_gloo: the same interface over c10d's Gloo.
troupe_library(comm_collective
  SOURCES rank_sum.cpp thread_group.cpp thread_collective.cpp
  DEPENDS troupe::base Threads::Threads)
# The sums are the inner loops of every reduction; -O1 does not vectorise.
set_source_files_properties(rank_sum.cpp PROPERTIES COMPILE_OPTIONS -O3)

troupe_library(comm_gloo
  SOURCES gloo_collective.cpp
  DEPENDS troupe::comm_collective
  PRIVATE Torch::gloo
  ATEN)
