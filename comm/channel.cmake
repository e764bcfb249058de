# Channels: arenas, slots, credits and their three transports.
troupe_library(comm_channel
  SOURCES arena.cpp slot_table.cpp credit_queue.cpp consumer_core.cpp channel_address.cpp channel_messages.cpp channel.cpp
          channel_inproc.cpp channel_listen.cpp channel_dial.cpp
  DEPENDS troupe::base troupe::comm_control)
