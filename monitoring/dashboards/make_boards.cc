// kith_make_boards FOLDER: writes every board to FOLDER/<uid>.json.
#include <cstdio>
#include <fstream>

#include "monitoring/dashboards/board.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: kith_make_boards FOLDER\n");
    return 2;
  }
  for (const auto& board : kith::boards::all_boards()) {
    const std::string path = std::string(argv[1]) + "/" + board.uid + ".json";
    std::ofstream out(path);
    if (!(out << kith::boards::to_text(board) << std::flush)) {
      std::fprintf(stderr, "kith_make_boards: cannot write %s: does the folder exist?\n",
                   path.c_str());
      return 1;
    }
  }
  return 0;
}
