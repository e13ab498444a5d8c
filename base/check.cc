#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace kith {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: invariant broken: %s [%s]; this is a defect in kith\n", file, line,
               message.c_str(), condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace kith
