// CSV files under libFuzzer: a table has full rows of finite numbers, or is refused.

#include <cmath>

#include "compute/csv.h"
#include "compute/data.h"
#include "tests/fuzz/memory_file.h"

namespace kith::compute {
namespace {

void check_table(const CsvTable& table) {
  const std::size_t rows = table.labels.size();
  KITH_CHECK(table.values.size() == rows * table.columns, "every row is complete");
  KITH_CHECK(table.lines.size() == rows, "every row knows its line");
}

void check_loaded(const std::string& path) {
  DataSpec spec;
  spec.format = "csv";
  spec.train = {path};
  const auto data = load_data(spec);
  if (!data) {
    KITH_CHECK(data.error().code == ErrorCode::kDataRefused,
               "bad data is refused: " + data.error().message);
    return;
  }
  for (const float value : data->train.inputs)
    KITH_CHECK(std::isfinite(value), "inputs are finite");
}

}  // namespace
}  // namespace kith::compute

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kith::compute;
  static kith::MemoryFile file;
  file.replace({data, size});
  const auto table = read_csv(file.path());
  if (!table) {
    KITH_CHECK(table.error().code == kith::ErrorCode::kDataRefused, "a bad file is refused");
    return 0;
  }
  check_table(*table);
  check_loaded(file.path());
  return 0;
}
