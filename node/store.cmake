# kith::node_store: safetensors files, checkpoints, the final model.
find_package(nlohmann_json REQUIRED)
add_library(kith_node_store STATIC
  checkpoint_export.cc checkpoint_metadata.cc checkpoint_store.cc final_model.cc safetensors_file.cc
  safetensors_header.cc safetensors_writer.cc)
add_library(kith::node_store ALIAS kith_node_store)
target_compile_definitions(kith_node_store PRIVATE KITH_VERSION="${PROJECT_VERSION}")
target_link_libraries(kith_node_store PUBLIC kith::base kith::compute kith::gossip PRIVATE nlohmann_json::nlohmann_json)
