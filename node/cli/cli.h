// kith: the command line of the operator. Parses, runs one command, turns its error into a line on
// `err` and an exit code (interface: exit codes). Thread: one.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace kith::node {

// `arguments` without the program's name. `environment`: KITH_* variables.
int run_cli(const std::vector<std::string>& arguments,
            const std::map<std::string, std::string>& environment, std::ostream& out,
            std::ostream& err, bool err_is_terminal = false, bool out_is_terminal = false);

}  // namespace kith::node
