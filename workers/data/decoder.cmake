troupe_library(workers_decoder
  SOURCES decoder_role.cpp
  DEPENDS troupe::base troupe::comm_channel)
