// Small text files in a data directory that a person or another program may have put there: read
// without ever waiting for them. Thread: any.
#pragma once

#include <string>

#include "base/result.h"

namespace kith::node {

// The first line of a regular file, without blanks around it, at most 4 KiB; "" when there is no
// such file. kUsage, naming it, for what is no regular file (a FIFO would be waited for, for ever)
// and for what cannot be read.
Result<std::string> first_line_in(const std::string& path);

}  // namespace kith::node
