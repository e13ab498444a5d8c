// The one symbol that libkith_torch.so exports.
#include <utility>

#include "compute/model.h"
#include "compute/torch/torch_model.h"

namespace {
constexpr unsigned kAbi = 1;
}

extern "C" __attribute__((visibility("default"))) kith::compute::Model* kith_make_torch_model(
    unsigned abi, const kith::compute::ModelSpec* spec,
    const kith::compute::OptimizerSpec* optimizer, kith::Error* error) {
  if (abi != kAbi) {
    *error = {kith::ErrorCode::kFailed,
              "libkith_torch.so is of another build: build and install both together"};
    return nullptr;
  }
  auto model = kith::compute::torch::make_torch_model(*spec, *optimizer);
  if (model) return model->release();
  *error = std::move(model.error());
  return nullptr;
}
