// safetensors files under libFuzzer: every tensor of a file that opens lies within it and has the
// bytes that its shape needs, and the header can be written again and says the same.

#include "node/store/safetensors.h"
#include "node/store/safetensors_header.h"
#include "tests/fuzz/memory_file.h"

namespace kith::node {
namespace {

void check_tensors(const SafetensorsFile& file) {
  unsigned sum = 0;
  for (const TensorEntry& tensor : file.tensors()) {
    const auto bytes = file.bytes(tensor.name);
    KITH_CHECK(bytes, "a listed tensor has bytes: " + bytes.error().message);
    KITH_CHECK(bytes->size() == tensor.byte_count(), "as many as its shape needs");
    for (const std::byte byte : *bytes) sum += static_cast<unsigned>(byte);  // reads all of them
  }
  volatile unsigned sink = sum;
  (void)sink;
}

void check_header(const SafetensorsFile& file) {
  std::uint64_t data_bytes = 0;
  for (const TensorEntry& tensor : file.tensors()) data_bytes += tensor.byte_count();
  const auto text = format_header(file.tensors(), file.metadata());
  if (!text) return;  // names and types that we read but do not write
  const auto again = parse_header(*text, data_bytes);
  KITH_CHECK(again, "what we write, we read: " + again.error().message);
  KITH_CHECK(again->metadata == file.metadata() && again->tensors.size() == file.tensors().size(),
             "and the same");
}

}  // namespace
}  // namespace kith::node

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kith::node;
  static kith::MemoryFile memory;
  memory.replace({data, size});
  const auto file = SafetensorsFile::open(memory.path());
  if (!file) {
    KITH_CHECK(file.error().code == kith::ErrorCode::kCorrupt,
               "a bad file is corrupt: " + file.error().message);
    return 0;
  }
  check_tensors(*file);
  check_header(*file);
  return 0;
}
