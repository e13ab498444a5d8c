kith_add_test(node_identity_test
  SOURCES identity_test.cc
  LIBS kith::node_identity kith_message_samples
  LABELS quick)
kith_add_test(node_data_dir_test SOURCES data_dir_test.cc LIBS kith::node_identity LABELS quick)
