# kith::node_setup: from a configuration to the other rooms' settings.
find_package(nlohmann_json REQUIRED)
add_library(kith_node_setup STATIC dry_run.cc run_setup.cc)
add_library(kith::node_setup ALIAS kith_node_setup)
target_link_libraries(kith_node_setup
  PUBLIC kith::compute kith::gossip kith::messages kith::node_config PRIVATE kith::node_text nlohmann_json::nlohmann_json)
