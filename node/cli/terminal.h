// Terminal: a full-screen program's hold on the terminal: the alternate screen, keys one by one,
// signals as events. Whatever ends the program in order, also SIGINT and SIGTERM, gives the screen
// and the settings back. A dozen sequences that every terminal since the VT220 has, rather than a
// terminal library: the whole screen is drawn anew once a second in one write, and a node's machine
// needs no more packages for it. Thread: one; make it before any other thread, which then inherit
// the blocked signals.
#pragma once

#include <termios.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace kith::node {

enum class Key { kCharacter, kUp, kDown, kPageUp, kPageDown, kHome, kEnd };
struct KeyPress {
  Key key = Key::kCharacter;
  char character = 0;
};
// The keys in what a terminal sent; sequences that mean nothing here are passed over.
std::vector<KeyPress> parse_keys(const std::string& bytes);

// What draws these lines from the top of the screen; what is left below becomes empty.
std::string screen_text(const std::vector<std::string>& lines);
// Writes all of it, also to a descriptor that does not block: then it sleeps until there is room.
// False when an error ended it, or nothing went out for as long as `patience`.
bool write_patiently(int fd, std::string_view text, Duration patience);

struct TerminalEvent {
  std::vector<KeyPress> keys;
  bool resized = false;
  bool ended = false;  // SIGINT, SIGTERM, SIGHUP, or the terminal is gone
  bool other = false;  // the descriptor that was given is readable
};

class Terminal {
 public:
  static Result<std::unique_ptr<Terminal>> open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    std::size_t width = 80, height = 24;
  };
  [[nodiscard]] static Size size();
  void draw(const std::vector<std::string>& lines) const;
  // Until something happens or `milliseconds` have passed.
  TerminalEvent wait(int other_fd, int milliseconds);

 private:
  Terminal() = default;
  void enter();
  void leave() const;
  void stop_and_go_on();
  termios before_{};
  int signals_ = -1;
  bool entered_ = false;
};

}  // namespace kith::node
