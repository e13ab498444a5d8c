#include "base/result.h"

namespace kith {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kFailed:
    case ErrorCode::kNotFound:
    case ErrorCode::kCorrupt:
    case ErrorCode::kNonFinite:
    case ErrorCode::kBusy:
      return 1;
    case ErrorCode::kUsage:
      return 2;
    case ErrorCode::kNoDaemon:
      return 3;
    case ErrorCode::kNoSeed:
      return 4;
    case ErrorCode::kIncompatible:
      return 5;
    case ErrorCode::kAddressInUse:
      return 6;
    case ErrorCode::kDataDirInUse:
      return 7;
    case ErrorCode::kDataRefused:
      return 8;
    case ErrorCode::kUnhealthy:
      return 10;
  }
  return 1;
}

}  // namespace kith
