# kith::node_daemon: the loops and their wiring; kithd: the program.
add_library(kith_node_daemon STATIC
  checkpointer.cc claims.cc control_adopt.cc control_counts.cc control_figures.cc control_final.cc control_finish.cc control_loop.cc
  control_setup.cc control_state.cc counts.cc daemon.cc daemon_input.cc daemon_network.cc data_share.cc
  donor.cc event_kinds.cc exchange_loop.cc handshake.cc happenings.cc health_checks.cc join.cc node_snapshot.cc node_view.cc
  peer_links.cc replica_store.cc rest.cc roster.cc signal_watch.cc state_assembly.cc step_listener.cc
  step_log.cc tally.cc wake.cc write_retry.cc)
add_library(kith::node_daemon ALIAS kith_node_daemon)
target_compile_definitions(kith_node_daemon PRIVATE KITH_VERSION="${PROJECT_VERSION}")
target_link_libraries(kith_node_daemon
  PUBLIC kith::gossip kith::membership kith::compute kith::monitoring kith::node_mesh kith::node_identity
         kith::node_config kith::node_setup kith::node_store)

add_executable(kithd kithd_main.cc)
target_link_libraries(kithd PRIVATE kith::node_daemon kith::node_config)
if(KITH_TORCH AND TARGET kith_torch)
  add_dependencies(kithd kith_torch)  # loaded at run time, beside the binary
endif()
