find_package(nlohmann_json REQUIRED)
kith_add_test(node_cli_test
  SOURCES cli_test.cc http_exchange_test.cc reload_test.cc top_test.cc
  LIBS kith::node_cli kith::node_setup kith::node_config kith::node_store kith::gossip nlohmann_json::nlohmann_json PkgConfig::HTTPLIB
  LABELS unit)
