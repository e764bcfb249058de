# Envelopes, messages and the loop that owns ZeroMQ sockets. ZeroMQ and MessagePack stay out of the public headers.
troupe_library(comm_control
  SOURCES utf8.cpp crc32c.cpp msgpack_read.cpp msgpack_write.cpp envelope.cpp message_codec.cpp curve_keys.cpp endpoint.cpp
          zap.cpp curve_self_test.cpp handshake_monitor.cpp callback_guard.cpp socket_open.cpp socket_table.cpp io_loop.cpp
  DEPENDS troupe::base Threads::Threads PRIVATE msgpackc-cxx PkgConfig::ZMQ)
