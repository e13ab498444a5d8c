// The two symbols that libkith_torch.so exports (compute/model_module.h).
#include <exception>
#include <utility>

#include "compute/model_module.h"
#include "compute/torch/torch_model.h"

extern "C" {

__attribute__((visibility("default"))) std::uint64_t kith_model_abi() {
  return kith::compute::kModelAbi;
}

__attribute__((visibility("default"))) kith::compute::Model* kith_make_torch_model(
    const kith::compute::ModelSpec* spec, const kith::compute::OptimizerSpec* optimizer,
    kith::Error* error) {
  try {
    auto model = kith::compute::torch::make_torch_model(*spec, *optimizer);
    if (model) return model->release();
    *error = std::move(model.error());
  } catch (const std::exception& thrown) {
    *error = {kith::ErrorCode::kFailed,
              std::string("cannot make model '") + spec->kind + "': " + thrown.what()};
  }
  return nullptr;
}

}  // extern "C"
