# Tests of comm_channel. The process test runs a second process of its own binary.
troupe_test(comm/arena_test DEPENDS troupe::comm_channel LABELS unit sanitize)
troupe_test(comm/slot_table_test DEPENDS troupe::comm_channel LABELS unit sanitize tsan)
troupe_test(comm/channel_messages_test DEPENDS troupe::comm_channel LABELS unit sanitize)
troupe_test(comm/channel_conformance_test DEPENDS troupe::comm_channel LABELS unit sanitize tsan)
troupe_test(comm/channel_share_test DEPENDS troupe::comm_channel LABELS unit sanitize)
troupe_test(comm/channel_curve_test DEPENDS troupe::comm_channel LABELS unit sanitize)
troupe_test(comm/channel_process_test DEPENDS troupe::comm_channel LABELS integration sanitize)
