#include "compute/model_module.h"

#include <dlfcn.h>

#include <filesystem>

namespace kith::compute {
namespace {

constexpr const char* kAdvice = "; build with -DKITH_TORCH=ON or choose model kind 'linear'";

std::string loader_error() {
  const char* text = dlerror();
  return text ? text : "unknown error of the dynamic loader";
}

}  // namespace

std::string default_module_path() {
  std::error_code error;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "libkith_torch.so";
  return (binary.parent_path().parent_path() / "lib" / "libkith_torch.so").string();
}

Result<std::unique_ptr<Model>> make_model_from_module(const std::string& path,
                                                      const ModelSpec& spec,
                                                      const OptimizerSpec& optimizer) {
  const std::string file = path.empty() ? default_module_path() : path;
  if (!std::filesystem::exists(file)) {
    return fail("model '" + spec.kind + "' needs the module " + file + ", which is not there" +
                kAdvice);
  }
  void* module =
      dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // loading it twice gives the same handle
  if (!module)
    return fail("cannot load the module " + file + ": " + loader_error() +
                "; this user must be able to read LibTorch where it was when kith was built "
                "(docker/collect.sh makes a folder that needs nothing else)");
  const auto abi = reinterpret_cast<ModelAbiFunction>(dlsym(module, kModelAbiSymbol));
  const auto make = reinterpret_cast<MakeTorchModelFunction>(dlsym(module, kMakeTorchModelSymbol));
  if (!abi || !make)
    return fail("the module " + file + " is not a module of kith: " + loader_error());
  if (abi() != kModelAbi) {
    return fail("the module " + file + " belongs to another build of kith: build both together");
  }
  Error error;
  std::unique_ptr<Model> model(make(&spec, &optimizer, &error));
  if (!model) return fail(std::move(error));
  return model;
}

}  // namespace kith::compute
