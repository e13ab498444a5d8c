// kith: sees and steers.
#include <unistd.h>

#include <iostream>

#include "node/cli/cli.h"
#include "node/config/daemon_flags.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return kith::node::run_cli(arguments, kith::node::kith_environment(), std::cout, std::cerr,
                             ::isatty(STDERR_FILENO) == 1, ::isatty(STDOUT_FILENO) == 1);
}
