#include "node/cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "node/cli/socket_wait.h"

namespace kith::node {
namespace {

// Alternate screen, no cursor, no wrapping; and back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr char kLeave[] = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
// A terminal that takes nothing for so long misses the rest of this screen; the next is whole
// again.
constexpr Duration kPutPatience = std::chrono::seconds(1);

void put(const std::string& text) { (void)write_patiently(STDOUT_FILENO, text, kPutPatience); }

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP}) sigaddset(&set, signal);
  return set;
}

// "\x1b[5~" and its like, after the '['.
bool key_of(const std::string& sequence, Key& key) {
  constexpr std::pair<const char*, Key> kKnown[] = {
      {"A", Key::kUp},        {"B", Key::kDown},  {"H", Key::kHome},  {"F", Key::kEnd},
      {"5~", Key::kPageUp},   {"1~", Key::kHome}, {"7~", Key::kHome}, {"4~", Key::kEnd},
      {"6~", Key::kPageDown}, {"8~", Key::kEnd}};
  for (const auto& [text, meant] : kKnown)
    if (sequence == text) {
      key = meant;
      return true;
    }
  return false;
}

}  // namespace

std::vector<KeyPress> parse_keys(const std::string& bytes) {
  std::vector<KeyPress> keys;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != '\x1b') {
      keys.push_back({Key::kCharacter, bytes[i]});
      continue;
    }
    if (i + 1 >= bytes.size() || (bytes[i + 1] != '[' && bytes[i + 1] != 'O')) continue;
    std::size_t end = i + 2;
    while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~')) ++end;
    KeyPress press;
    if (end < bytes.size() && key_of(bytes.substr(i + 2, end - i - 1), press.key))
      keys.push_back(press);
    i = end;
  }
  return keys;
}

// Emptied before it is written: after a line as wide as the screen the cursor still stands on its
// last character, which would go.
std::string screen_text(const std::vector<std::string>& lines) {
  std::string screen = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i)
    screen +=
        (i > 0 ? "\r\n" : "") + std::string(i + 1 < lines.size() ? "\x1b[K" : "\x1b[J") + lines[i];
  return screen;
}

bool write_patiently(int fd, std::string_view text, Duration patience) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      if (!wait_for_fd(fd, POLLOUT, std::chrono::steady_clock::now() + patience)) return false;
    } else if (written < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

Result<std::unique_ptr<Terminal>> Terminal::open() {
  std::unique_ptr<Terminal> terminal(new Terminal);
  if (::tcgetattr(STDIN_FILENO, &terminal->before_) != 0)
    return fail("the keyboard is not a terminal: use --once, or send the output elsewhere");
  const sigset_t set = watched_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  terminal->signals_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (terminal->signals_ < 0) return fail(std::string("no signalfd: ") + std::strerror(errno));
  terminal->enter();
  return terminal;
}

Terminal::~Terminal() {
  if (entered_) leave();
  if (signals_ >= 0) ::close(signals_);
}

void Terminal::enter() {
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C and Ctrl-Z stay signals
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  put(kEnter);
  entered_ = true;
}

void Terminal::leave() const {
  put(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

// Ctrl-Z: the shell gets its terminal; `fg` brings the screen back.
void Terminal::stop_and_go_on() {
  leave();
  ::raise(SIGSTOP);
  enter();
}

Terminal::Size Terminal::size() {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0)
    return {};
  return {window.ws_col, window.ws_row};
}

void Terminal::draw(const std::vector<std::string>& lines) const { put(screen_text(lines)); }

TerminalEvent Terminal::wait(int other_fd, int milliseconds) {
  TerminalEvent event;
  std::array<pollfd, 3> items{
      {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}, {other_fd, POLLIN, 0}}};
  if (::poll(items.data(), items.size(), milliseconds) <= 0) return event;
  event.other = items[2].revents != 0;
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGTSTP) stop_and_go_on();
    if (signal == SIGWINCH || signal == SIGTSTP)
      event.resized = true;
    else
      event.ended = true;
  }
  if (items[0].revents == 0) return event;
  std::array<char, 256> buffer{};
  const auto bytes = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (bytes > 0)
    event.keys = parse_keys({buffer.data(), static_cast<std::size_t>(bytes)});
  else if ((items[0].revents & (POLLHUP | POLLERR)) != 0)
    event.ended = true;
  return event;
}

}  // namespace kith::node
