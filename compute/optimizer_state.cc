#include "compute/optimizer_state.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "compute/kernels.h"

namespace kith::compute {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little endian, and so is this code");
constexpr std::uint8_t kVersion = 1;

template <typename T>
void put(StateBytes& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void put_bytes(StateBytes& out, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool take(void* to, std::size_t size) {
    if (size > rest_.size()) return false;
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_ = rest_.subspan(size);
    return true;
  }
  template <typename T>
  bool take(T& value) {
    return take(&value, sizeof value);
  }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

tl::unexpected<Error> corrupt(const std::string& what) {
  return fail(ErrorCode::kCorrupt, "optimiser state: " + what);
}

bool take_tensor(Reader& reader, std::vector<float>& tensor) {
  std::uint64_t count = 0;
  if (!reader.take(count) || count > reader.left() / sizeof(float)) return false;
  tensor.resize(count);
  return reader.take(tensor.data(), count * sizeof(float));
}

}  // namespace

StateBytes encode_optimizer_state(const OptimizerState& state) {
  KITH_CHECK(state.name.size() < 256, "optimiser name of at most 255 bytes");
  std::size_t total = 32 + state.name.size();
  for (const auto& tensor : state.tensors) total += 8 + tensor.size() * sizeof(float);
  StateBytes out;
  out.reserve(total);
  put(out, kVersion);
  put(out, static_cast<std::uint8_t>(state.name.size()));
  put_bytes(out, state.name.data(), state.name.size());
  put(out, state.step);
  put(out, static_cast<std::uint32_t>(state.tensors.size()));
  for (const auto& tensor : state.tensors) {
    put(out, static_cast<std::uint64_t>(tensor.size()));
    put_bytes(out, tensor.data(), tensor.size() * sizeof(float));
  }
  return out;
}

Result<OptimizerState> decode_optimizer_state(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  std::uint8_t version = 0, length = 0;
  if (!reader.take(version)) return corrupt("empty");
  if (version != kVersion)
    return corrupt("version " + std::to_string(version) + ", this program reads 1");
  OptimizerState state;
  if (!reader.take(length)) return corrupt("truncated in its head");
  state.name.resize(length);
  std::uint32_t tensors = 0;
  if (!reader.take(state.name.data(), length) || !reader.take(state.step) ||
      !reader.take(tensors)) {
    return corrupt("truncated in its head");
  }
  for (std::uint32_t i = 0; i < tensors; ++i) {
    std::vector<float> tensor;
    if (!take_tensor(reader, tensor)) return corrupt("truncated in tensor " + std::to_string(i));
    if (!all_finite(tensor.data(), tensor.size()))
      return corrupt("tensor " + std::to_string(i) + " is not finite");
    state.tensors.push_back(std::move(tensor));
  }
  if (reader.left() != 0) return corrupt(std::to_string(reader.left()) + " bytes too many");
  return state;
}

}  // namespace kith::compute
