find_package(nlohmann_json REQUIRED)
kith_add_test(node_store_test
  SOURCES checkpoint_test.cc safetensors_test.cc
  LIBS kith::node_store nlohmann_json::nlohmann_json LABELS unit)

# Python's own safetensors, for the test that reads our files there: fetched before the tests, once, if this machine has
# python3 with pip and a package index; without it that one test says that it was skipped.
find_program(KITH_PYTHON3 python3)
if(KITH_PYTHON3)
  set(folder ${CMAKE_BINARY_DIR}/python)
  set(ready "PYTHONPATH=${folder} ${KITH_PYTHON3} -c 'import safetensors.numpy' 2>/dev/null")
  set(fetch "${KITH_PYTHON3} -m pip install --quiet --disable-pip-version-check --retries 1 --target ${folder} numpy safetensors")
  add_test(NAME python_safetensors COMMAND sh -c "${ready} || ${fetch} || echo 'not available here: its test is skipped'")
  set_tests_properties(python_safetensors PROPERTIES LABELS unit TIMEOUT 180)
  set_tests_properties(node_store_test PROPERTIES DEPENDS python_safetensors)
endif()
