find_package(nlohmann_json REQUIRED)
kith_add_test(node_store_test
  SOURCES checkpoint_test.cc safetensors_test.cc
  LIBS kith::node_store nlohmann_json::nlohmann_json LABELS unit)

# A Python with its own safetensors, for the test that reads our files there. Built on request only; without it the
# test says that it was skipped.
find_program(KITH_PYTHON3 python3)
if(KITH_PYTHON3)
  add_custom_target(python_safetensors
    COMMAND ${KITH_PYTHON3} -m venv ${CMAKE_BINARY_DIR}/venv
    COMMAND ${CMAKE_BINARY_DIR}/venv/bin/pip install --quiet --disable-pip-version-check numpy safetensors
    VERBATIM)
endif()
