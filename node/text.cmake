# kith::node_text: texts and addresses as people write them; what config and mesh both read.
add_library(kith_node_text STATIC address.cc small_file.cc text.cc)
add_library(kith::node_text ALIAS kith_node_text)
target_link_libraries(kith_node_text PUBLIC kith::base)
