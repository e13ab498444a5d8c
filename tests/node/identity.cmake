kith_add_test(node_identity_test
  SOURCES identity_test.cc
  LIBS kith::node_identity kith_message_samples
  LABELS quick)
