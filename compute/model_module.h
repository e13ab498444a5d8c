// The border to the module with the LibTorch models (libkith_torch.so), which is loaded at run time
// only when such a model is asked for: a daemon without one maps no LibTorch.
//
// The module exports two C functions. kith_model_abi() returns kModelAbi as the module was
// compiled; a different number means another build, and it is refused. kith_make_torch_model()
// makes a model, or returns null and fills in the error; it lets no exception out. Both sides must
// come from the same compiler and tree: C++ types cross the border.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "compute/model.h"

namespace kith::compute {

// Raise kModelAbiVersion whenever Model's virtual functions or the meaning of a spec change.
inline constexpr std::uint64_t kModelAbiVersion = 1;
inline constexpr std::uint64_t kModelAbi =
    kModelAbiVersion << 48 | std::uint64_t{sizeof(ModelSpec)} << 32 |
    std::uint64_t{sizeof(OptimizerSpec)} << 16 | sizeof(ModelSchema);

inline constexpr const char* kModelAbiSymbol = "kith_model_abi";
inline constexpr const char* kMakeTorchModelSymbol = "kith_make_torch_model";
using ModelAbiFunction = std::uint64_t (*)();
using MakeTorchModelFunction = Model* (*)(const ModelSpec*, const OptimizerSpec*, Error*);

// Loads the module (once per path; it is never unloaded) and makes a model. `path` empty:
// ../lib/libkith_torch.so relative to the running binary. Any thread, not concurrently.
Result<std::unique_ptr<Model>> make_model_from_module(const std::string& path,
                                                      const ModelSpec& spec,
                                                      const OptimizerSpec& optimizer);
std::string default_module_path();

}  // namespace kith::compute

// Implemented by the module.
extern "C" {
std::uint64_t kith_model_abi();
kith::compute::Model* kith_make_torch_model(const kith::compute::ModelSpec* spec,
                                            const kith::compute::OptimizerSpec* optimizer,
                                            kith::Error* error);
}
