# kith::node_cli: the commands; kith: the program.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
add_library(kith_node_cli STATIC
  cli.cc cli_daemon.cc cli_doctor.cc cli_files.cc cli_lists.cc cli_simulate.cc cli_table.cc cli_top.cc control_client.cc
  doctor.cc doctor_net.cc doctor_probe.cc doctor_run.cc http_exchange.cc socket_wait.cc
  terminal.cc top_model.cc top_poller.cc top_sort.cc top_view.cc)
add_library(kith::node_cli ALIAS kith_node_cli)
target_link_libraries(kith_node_cli
  PUBLIC kith::base
  PRIVATE kith::compute kith::gossip kith::sim kith::node_config kith::node_identity kith::node_mesh kith::node_setup kith::node_store CLI11::CLI11
    nlohmann_json::nlohmann_json)

add_executable(kith kith_main.cc)
target_link_libraries(kith PRIVATE kith::node_cli kith::node_config)
