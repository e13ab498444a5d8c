find_package(nlohmann_json REQUIRED)
kith_add_test(node_config_test
  SOURCES config_address_test.cc config_test.cc config_value_test.cc daemon_flags_test.cc log_format_test.cc
  LIBS kith::node_config nlohmann_json::nlohmann_json LABELS unit)
