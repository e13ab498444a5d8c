kith_add_test(daemon_parts_test SOURCES claims_test.cc join_test.cc data_share_test.cc handshake_test.cc state_assembly_test.cc memory_test.cc peer_links_test.cc LIBS kith::node_daemon LABELS unit)
