// Seeds for the fuzzers of data files and checkpoints: one small file of each accepted form.
#pragma once

#include <string>

namespace kith {

void write_file_seeds(const std::string& root);

}  // namespace kith
