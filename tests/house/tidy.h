// Tidy: the rules of the house as functions from a source tree to a list of violations, so that
// each can be tried on a planted mistake (tidy_rules_test) and is applied to the real tree in every
// test run (layering_test). Rules look at code with comments and string literals blanked out,
// unless they are about comments.
#pragma once

#include <string>
#include <vector>

namespace kith::house {

struct SourceFile {
  std::string path;  // relative to the root, with '/'
  std::string text;
};
using Tree = std::vector<SourceFile>;
using Violations = std::vector<std::string>;  // "path:line: what is wrong"

// Every text file of the project below `root`; build folders, data and version control left out.
Tree read_tree(const std::string& root);

// The same text, same lines, with comments and the insides of literals replaced by blanks.
std::string blank_comments_and_literals(const std::string& text);

// Who may include whom: gossip, compute and monitoring never each other, gossip of schema only the
// plain messages. Inside node and gossip the folders have an order too.
Violations check_include_direction(const Tree& tree);
// A library's headers only where that library belongs (LibTorch, ZeroMQ, Cap'n Proto, Prometheus,
// httplib).
Violations check_library_headers(const Tree& tree);
// gossip/ is a step machine: no clock, no sleep, no thread, no lock, no randomness but kith's own,
// no I/O.
Violations check_step_machine(const Tree& tree);
// Unit tests drive clocks and wait for conditions; they do not sleep.
Violations check_tests_do_not_sleep(const Tree& tree);
// Every .cc is named in a CMake file of its folder or above, every header is included by somebody.
Violations check_dead_files(const Tree& tree);
// A header opens with a comment and has #pragma once.
Violations check_headers_open_with_prose(const Tree& tree);
// No comment line of nothing but dashes: what a formatter leaves of a ruler that was too long.
Violations check_rulers(const Tree& tree);
// At most `lines_max` lines in a C++ file.
Violations check_file_length(const Tree& tree, std::size_t lines_max);
// At most `columns_max` characters in a line of the page's scripts; clang-format keeps C++ narrow.
Violations check_script_width(const Tree& tree, std::size_t columns_max);
// No path of one particular machine, no package mirror, no ticket number.
Violations check_speaks_of_itself_only(const Tree& tree);
// Every room has a README.
Violations check_readmes(const Tree& tree);

}  // namespace kith::house
