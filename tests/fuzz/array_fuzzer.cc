// IDX and npy files under libFuzzer: KITH_FUZZ_FORMAT is "idx" or "npy". What is read must be as
// long as its shape says, every sample readable; and the whole way of a training file must end in
// data or in kDataRefused.

#include <cmath>
#include <cstring>

#include "compute/array_file.h"
#include "compute/data.h"
#include "tests/fuzz/memory_file.h"

namespace kith::compute {
namespace {

constexpr std::size_t kSamplesRead = 8;
constexpr std::size_t kLabelsMax = 512;

Result<ArrayFile> read_array(const std::string& path) {
  return std::strcmp(KITH_FUZZ_FORMAT, "idx") == 0 ? read_idx(path) : read_npy(path);
}

void check_array(const ArrayFile& array) {
  std::size_t values = 1;
  for (const std::int64_t extent : array.shape) values *= static_cast<std::size_t>(extent);
  KITH_CHECK(array.bytes.size() == values * byte_width(array.type),
             "an array has the bytes that its shape needs");
  if (values == 0) return;  // no samples, though each may claim any size
  std::vector<float> sample(array.sample_values());
  for (std::size_t i = 0; i < std::min(array.count(), kSamplesRead); ++i)
    array.read_sample(i, sample);
  if (is_integer(array.type)) (void)array.integer(values - 1);
}

// Labels 0, 1, 0, 1, ... in the same format, for an input of `count` samples.
std::vector<std::uint8_t> labels_file(std::size_t count) {
  std::string header;
  if (std::strcmp(KITH_FUZZ_FORMAT, "idx") == 0) {
    header = std::string("\0\0\x08\x01\0\0", 6) + static_cast<char>(count >> 8) +
             static_cast<char>(count & 0xFF);
  } else {
    std::string text =
        "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
    text.resize(117, ' ');
    header = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text + "\n";
  }
  std::vector<std::uint8_t> file(header.begin(), header.end());
  for (std::size_t i = 0; i < count; ++i) file.push_back(i % 2);
  return file;
}

void check_loaded(const std::string& inputs, const std::string& labels) {
  DataSpec spec;
  spec.format = KITH_FUZZ_FORMAT;
  spec.train = {inputs, labels};
  spec.shard = "1/2";
  const auto data = load_data(spec);
  if (!data) {
    KITH_CHECK(data.error().code == ErrorCode::kDataRefused,
               "bad data is refused: " + data.error().message);
    return;
  }
  KITH_CHECK(data->train.inputs.size() == data->train.count * data->train.sample_values(),
             "inputs fit their shape");
  KITH_CHECK(data->train.labels.size() == data->train.count, "one label a sample");
  KITH_CHECK(std::isfinite(data->mean) && std::isfinite(data->std),
             "mean and deviation are finite");
}

}  // namespace
}  // namespace kith::compute

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kith::compute;
  static kith::MemoryFile inputs, labels;
  inputs.replace({data, size});
  const auto array = read_array(inputs.path());
  if (!array) {
    KITH_CHECK(array.error().code == kith::ErrorCode::kDataRefused, "a bad file is refused");
    return 0;
  }
  if (array->shape.empty()) return 0;
  check_array(*array);
  if (array->count() > kLabelsMax) return 0;
  labels.replace(labels_file(array->count()));
  check_loaded(inputs.path(), labels.path());
  return 0;
}
