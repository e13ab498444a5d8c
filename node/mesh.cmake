# kith::node_mesh: authenticated message links over ZeroMQ.
add_library(kith_node_mesh STATIC address_resolver.cc cluster_key.cc zap_handler.cc mesh_socket.cc
            mesh_frames.cc mesh_guard.cc mesh_dial_back.cc mesh_handshake.cc mesh_links.cc mesh_memory.cc mesh_schedule.cc mesh_core.cc mesh_listener.cc mesh_dealer.cc
            mesh_dialler.cc mesh.cc)
add_library(kith::node_mesh ALIAS kith_node_mesh)
target_link_libraries(kith_node_mesh PUBLIC kith::schema kith::node_identity kith::node_text
                      PRIVATE PkgConfig::ZMQ PkgConfig::SODIUM)
