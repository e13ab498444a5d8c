add_library(kith_node_identity STATIC data_dir.cc identity.cc)
add_library(kith::node_identity ALIAS kith_node_identity)
target_link_libraries(kith_node_identity PUBLIC kith::base kith::messages PRIVATE kith::node_text PkgConfig::SODIUM)
