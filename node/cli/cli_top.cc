// kith top: the live table on a terminal, and one line or object per look elsewhere.
#include <langinfo.h>
#include <poll.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "node/cli/cli_context.h"
#include "node/cli/terminal.h"
#include "node/cli/top_poller.h"
#include "node/cli/top_view.h"

namespace kith::node {
namespace {

using Json = nlohmann::ordered_json;

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return text;
}

bool is_utf8() {
  std::setlocale(LC_CTYPE, "");
  return std::string(::nl_langinfo(CODESET)) == "UTF-8";
}

bool wants_colour() {
  const char* no = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no == nullptr || *no == '\0') && (term == nullptr || std::string(term) != "dumb");
}

Json known(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const TopFrame& frame, const TopOptions& options) {
  if (!options.trouble.empty())
    return {{"time", options.time}, {"answers", false}, {"error", options.trouble}};
  Json rows = Json::array();
  for (const TopRow& row : sorted(frame.rows, options.sort, options.reverse))
    rows.push_back({{"name", row.member.name},
                    {"id", row.member.id},
                    {"state", row.member.state},
                    {"run_state", row.member.run_state},
                    {"step", known(row.member.step)},
                    {"steps_per_second", known(row.member.steps_per_second)},
                    {"samples_per_second", known(row.samples_per_second)},
                    {"loss", known(row.member.loss)},
                    {"accuracy", known(row.member.accuracy)},
                    {"lag_steps", known(row.member.lag)},
                    {"rtt_ms", known(row.member.rtt_ms)},
                    {"told_by_itself", row.told},
                    {"bytes_received_per_second", known(row.bytes_in_per_second)},
                    {"bytes_sent_per_second", known(row.bytes_out_per_second)},
                    {"exchanges_per_second", known(row.exchanges_per_second)},
                    {"staleness_steps", known(row.staleness)}});
  Json count = Json::object();
  for (const char* state : {"alive", "suspect", "dead", "left"}) {
    const auto found = frame.count.find(state);
    count[state] = found == frame.count.end() ? 0 : found->second;
  }
  const auto done = frame.fraction();
  return {{"time", options.time},
          {"answers", true},
          {"name", frame.self.name},
          {"run", frame.self.run},
          {"cluster", frame.self.cluster},
          {"state", frame.self.state},
          {"epoch", known(frame.self.epoch)},
          {"fraction", done ? Json(*done) : Json(nullptr)},
          {"accuracy", known(frame.self.accuracy)},
          {"consensus_distance", known(frame.self.consensus)},
          {"steps_per_second", known(frame.steps_per_second)},
          {"samples_per_second", known(frame.samples_per_second)},
          {"count", count},
          {"members", rows}};
}

class Top {
 public:
  Top(CliContext& context, const TopArguments& arguments)
      : context_(context), arguments_(arguments) {
    options_.where = context.at.empty() ? kDefaultAt : context.at;
    options_.unicode = is_utf8();
  }

  Result<int> run() {
    const auto sort =
        std::ranges::find_if(kAllSorts, [&](TopSort s) { return name_of(s) == arguments_.sort; });
    if (sort != std::end(kAllSorts)) options_.sort = *sort;
    if (context_.out_is_terminal && !context_.json && !arguments_.once) return live();
    return arguments_.once ? once() : lines();
  }

 private:
  static constexpr TopSort kAllSorts[] = {TopSort::kName,  TopSort::kState,    TopSort::kStep,
                                          TopSort::kSpeed, TopSort::kLoss,     TopSort::kLag,
                                          TopSort::kBytes, TopSort::kRoundTrip};

  [[nodiscard]] Duration interval() const { return from_seconds(arguments_.interval_seconds); }

  void take(TopLook look) {
    options_.time = time_of_day();
    if (look.sample) {
      model_.take(*look.sample);
      options_.trouble.clear();
      silent_since_.clear();
    } else {
      if (silent_since_.empty()) silent_since_ = options_.time;
      const std::string& state = model_.frame().self.state;
      const bool over = state == "finishing" || state == "complete" || state == "leaving";
      options_.trouble = (over ? "the node was " + state + " and has ended; " : std::string()) +
                         "no answer since " + silent_since_ +
                         ", asked again each time: " + look.trouble;
    }
  }

  // The first look decides whether this is a node at all.
  Status first_look() {
    TopLook look = look_at(options_.where, arguments_.alone, {}, unreachable_);
    if (!look.sample) return fail(look.code, look.trouble);
    take(std::move(look));
    return {};
  }

  // Two looks, because rates need two.
  Result<int> once() {
    KITH_TRY(first_look());
    (void)::poll(nullptr, 0, static_cast<int>(arguments_.interval_seconds * 1000));
    TopLook look = look_at(options_.where, arguments_.alone, {}, unreachable_);
    if (!look.sample) return fail(look.code, look.trouble);
    take(std::move(look));
    if (context_.json)
      context_.out
          << json_of(model_.frame(), options_).dump(2, ' ', false, Json::error_handler_t::replace)
          << "\n";
    else
      context_.out << top_table(model_.frame(), options_);
    return 0;
  }

  // Until the reader goes away.
  Result<int> lines() {
    KITH_TRY(first_look());
    TopPoller poller(options_.where, arguments_.alone, interval());
    while (context_.out) {
      if (context_.json)
        context_.out << json_of(model_.frame(), options_)
                            .dump(-1, ' ', false, Json::error_handler_t::replace);
      else
        context_.out << top_line(model_.frame(), options_);
      context_.out << std::endl;
      pollfd item{poller.fd(), POLLIN, 0};
      (void)::poll(&item, 1, -1);
      for (TopLook& look : poller.take()) take(std::move(look));
    }
    return 0;
  }

  Result<int> live() {
    KITH_TRY(first_look());
    options_.colour = wants_colour();
    KITH_ASSIGN(const auto terminal, Terminal::open());
    TopPoller poller(options_.where, arguments_.alone, interval());
    for (;;) {
      const auto size = Terminal::size();
      options_.width = size.width;
      options_.height = size.height;
      clamp_offset();
      terminal->draw(draw_top(model_.frame(), options_));
      prefer_shown(poller);
      const TerminalEvent event = terminal->wait(poller.fd(), 1000);
      if (event.ended) return 0;
      if (event.other)
        for (TopLook& look : poller.take())
          if (!options_.paused) take(std::move(look));
      for (const KeyPress& press : event.keys)
        if (!press_key(press)) return 0;
    }
  }

  void clamp_offset() {
    const std::size_t rows = model_.frame().rows.size(), room = rows_on_screen(options_);
    options_.offset = std::min(options_.offset, rows - std::min(rows, room));
  }

  void prefer_shown(TopPoller& poller) {
    const auto rows = sorted(model_.frame().rows, options_.sort, options_.reverse);
    std::vector<std::string> shown;
    for (std::size_t i = options_.offset;
         i < std::min(rows.size(), options_.offset + rows_on_screen(options_)); ++i)
      shown.push_back(rows[i].member.id);
    poller.prefer(std::move(shown));
  }

  // False: quit.
  bool press_key(const KeyPress& press) {
    const std::size_t page = std::max<std::size_t>(1, rows_on_screen(options_));
    switch (press.key) {
      case Key::kUp:
        scroll_up(1);
        break;
      case Key::kDown:
        ++options_.offset;
        break;
      case Key::kPageUp:
        scroll_up(page);
        break;
      case Key::kPageDown:
        options_.offset += page;
        break;
      case Key::kHome:
        options_.offset = 0;
        break;
      case Key::kEnd:
        options_.offset = model_.frame().rows.size();
        break;
      case Key::kCharacter:
        return press_character(press.character);
    }
    return true;
  }
  void scroll_up(std::size_t rows) { options_.offset -= std::min(options_.offset, rows); }

  bool press_character(char character) {
    const auto sort = static_cast<std::size_t>(options_.sort);
    switch (character) {
      case 'q':
      case 'Q':
        return false;
      case 's':
        options_.sort = kAllSorts[(sort + 1) % kTopSorts];
        break;
      case 'S':
        options_.sort = kAllSorts[(sort + kTopSorts - 1) % kTopSorts];
        break;
      case 'r':
        options_.reverse = !options_.reverse;
        break;
      case 'p':
      case ' ':
        options_.paused = !options_.paused;
        break;
      case 'h':
      case '?':
        options_.help = !options_.help;
        break;
      case 'k':
        scroll_up(1);
        break;
      case 'j':
        ++options_.offset;
        break;
      default:
        break;
    }
    return true;
  }

  CliContext& context_;
  const TopArguments& arguments_;
  TopModel model_;
  TopOptions options_;
  Unreachable unreachable_;
  std::string silent_since_;
};

}  // namespace

Result<int> top_command(CliContext& context, const TopArguments& arguments) {
  if (!(arguments.interval_seconds >= 0.1 && arguments.interval_seconds <= 3600))
    return fail(ErrorCode::kUsage, "--interval: expected 0.1 to 3600 seconds");
  return Top(context, arguments).run();
}

}  // namespace kith::node
