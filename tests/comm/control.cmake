# Tests of the control half: pure codecs and keys, then loops that talk over ipc and loopback.
troupe_test(comm/envelope_test DEPENDS troupe::comm_control LABELS unit sanitize tsan)
troupe_test(comm/message_codec_test DEPENDS troupe::comm_control LABELS unit sanitize tsan)
troupe_test(comm/curve_keys_test DEPENDS troupe::comm_control LABELS unit sanitize)
troupe_test(comm/io_loop_test DEPENDS troupe::comm_control LABELS unit sanitize tsan)
troupe_test(comm/io_loop_network_test DEPENDS troupe::comm_control PkgConfig::ZMQ LABELS integration sanitize tsan)
troupe_test(comm/io_loop_curve_test DEPENDS troupe::comm_control PkgConfig::ZMQ LABELS integration sanitize tsan)
