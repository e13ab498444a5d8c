// What the rules of tidy.h read of a source file: what kind it is, its lines, its includes, words
// in its code. Pure functions of text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/house/tidy.h"

namespace kith::house {

extern const std::vector<std::string> kRooms;

bool is_cpp(const std::string& path);
bool is_cmake(const std::string& path);
std::string folder_of(const std::string& path);
// The first folder of the path.
std::string room_of(const std::string& path);
// Empty or partial headers under a library's own names, for headers of that library that include
// them.
bool stands_in_for_a_library(const std::string& path);

std::vector<std::string> lines_of(const std::string& text);

struct Include {
  std::size_t line = 0;
  std::string target;
};
// Read from the raw text: the names are literals.
std::vector<Include> includes_of(const SourceFile& file);

// `word` in `line`, not as a part of a longer name.
bool has_word(const std::string& line, const std::string& word);
// A violation for each line of code with one of the words.
Violations find_words(const SourceFile& file, const std::vector<std::string>& words,
                      const std::string& why);

// "path:line: what".
std::string at(const SourceFile& file, std::size_t line_index, const std::string& what);
void append(Violations& to, Violations from);

}  // namespace kith::house
