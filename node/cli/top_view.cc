#include "node/cli/top_view.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include "node/text/text.h"

namespace kith::node {
namespace {

constexpr std::size_t kHeaderLines = 6;  // and the table's own, and the foot
constexpr std::size_t kSparkWidth = 12;
constexpr std::size_t kNameMax = 24;

constexpr char kPlain[] = "\x1b[0m", kBold[] = "\x1b[1m", kDim[] = "\x1b[2m",
               kInverse[] = "\x1b[7m";
constexpr char kRed[] = "\x1b[31m", kGreen[] = "\x1b[32m", kYellow[] = "\x1b[33m";

std::string format(const char* pattern, double value) {
  if (!std::isfinite(value)) return "-";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

// What a row shows in one column. `keep`: the higher, the earlier it goes when there is no room.
struct Column {
  const char* title;
  int give_up;
  bool right;
  std::string (*cell)(const TopRow& row, bool unicode);
};

const Column kColumns[] = {
    {"NAME", 0, false,
     [](const TopRow& r, bool) {
       std::string name = r.member.name;
       while (shown_width(name) > kNameMax) name.pop_back();
       return name;
     }},
    {"STATE", 0, false, [](const TopRow& r, bool) { return r.shown_state(); }},
    {"STEP", 1, true, [](const TopRow& r, bool) { return format("%.0f", r.member.step); }},
    {"STEP/S", 3, true,
     [](const TopRow& r, bool) { return format("%.1f", r.member.steps_per_second); }},
    {"SAMPLE/S", 10, true,
     [](const TopRow& r, bool) { return format("%.0f", r.samples_per_second); }},
    {"LOSS", 2, true, [](const TopRow& r, bool) { return format("%.4f", r.member.loss); }},
    {"LOSS OVER TIME", 4, false,
     [](const TopRow& r, bool unicode) { return sparkline(r.losses, kSparkWidth, unicode); }},
    {"ACCURACY", 9, true, [](const TopRow& r, bool) { return format("%.3f", r.member.accuracy); }},
    {"IN/S", 6, true, [](const TopRow& r, bool) { return bytes_text(r.bytes_in_per_second); }},
    {"OUT/S", 7, true, [](const TopRow& r, bool) { return bytes_text(r.bytes_out_per_second); }},
    {"EXCH/S", 8, true,
     [](const TopRow& r, bool) { return format("%.1f", r.exchanges_per_second); }},
    {"STALE", 11, true, [](const TopRow& r, bool) { return format("%.1f", r.staleness); }},
    {"LAG", 12, true, [](const TopRow& r, bool) { return format("%.0f", r.member.lag); }},
    {"RTT-MS", 5, true, [](const TopRow& r, bool) { return format("%.2f", r.member.rtt_ms); }},
};

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, shown_width(text)), ' ');
  return right ? blanks + text : text + blanks;
}

// Cuts to `width` shown characters; sequences that colour stay whole, and colour ends with the
// line.
std::string cut(const std::string& text, std::size_t width) {
  std::string out;
  std::size_t shown = 0;
  bool coloured = false;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\x1b') {
      const std::size_t end = std::min(text.find('m', i), text.size() - 1) + 1;
      out.append(text, i, end - i);
      coloured = text.compare(i, end - i, kPlain) != 0;
      i = end;
      continue;
    }
    std::size_t end = i + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    if (++shown > width) break;
    out.append(text, i, end - i);
    i = end;
  }
  if (coloured) out += kPlain;
  return out;
}

class Screen {
 public:
  Screen(const TopFrame& frame, const TopOptions& options) : frame_(frame), options_(options) {}

  std::vector<std::string> lines() {
    if (options_.help) {
      help();
    } else {
      header();
      table(rows_on_screen(options_));
      foot();
    }
    for (std::string& line : lines_) line = cut(line, options_.width);
    if (lines_.size() > options_.height) lines_.resize(options_.height);
    return std::move(lines_);
  }

  std::string all() {
    header();
    table(frame_.rows.size());
    std::string text;
    for (std::string& line : lines_) {
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::string styled(const char* style, const std::string& text) const {
    return options_.colour ? style + text + kPlain : text;
  }
  // Those of the parts, in order, that fit the width as a whole.
  std::string fitted(const std::vector<std::string>& parts) const {
    std::string line;
    for (const std::string& part : parts) {
      const std::string longer = line.empty() ? part : line + "  " + part;
      if (!line.empty() && shown_width(longer) > options_.width) break;
      line = longer;
    }
    return line;
  }
  std::size_t count(const char* state) const {
    const auto found = frame_.count.find(state);
    return found == frame_.count.end() ? 0 : found->second;
  }

  void header() {
    const TopNode& self = frame_.self;
    std::vector<std::string> title = {styled(kBold, "kith top"), options_.time};
    if (options_.paused) title.push_back(styled(kYellow, "paused"));
    // The address may be long, so it is last.
    for (const std::string& part : {"run " + styled(kBold, self.run), "cluster " + self.cluster,
                                    "seen from " + self.name, "at " + options_.where})
      title.push_back(part);
    lines_.push_back(fitted(title));
    lines_.push_back(progress());
    lines_.push_back(members());
    lines_.push_back(this_node());
    lines_.push_back(sources());
    lines_.push_back(
        options_.trouble.empty()
            ? (self.trouble.empty() ? "" : styled(kYellow, self.state + ": " + self.trouble))
            : styled(kRed, options_.trouble));
  }

  std::string progress() const {
    const TopNode& self = frame_.self;
    std::string line = "epoch " + format("%.2f", self.epoch);
    const auto done = frame_.fraction();
    if (!done) return line + "  progress " + format("%.0f", self.progress) + " samples, no end set";
    if (self.progress > 0)
      line += " of " + format("%.3g", self.length_samples * self.epoch / self.progress);
    line += "  " + bar(*done, options_.width < 60 ? 10 : 30) + format(" %.0f %%", 100 * *done);
    const auto left = frame_.seconds_left();
    if (left && *done < 1)
      line += *left < 90 ? format("  %.0f s left", *left) : format("  %.0f min left", *left / 60);
    return line;
  }

  std::string bar(double fraction, std::size_t width) const {
    const auto full = static_cast<std::size_t>(fraction * static_cast<double>(width) + 0.5);
    std::string text;
    for (std::size_t i = 0; i < width; ++i)
      text += options_.unicode ? (i < full ? "█" : "░") : (i < full ? "#" : ".");
    return "[" + styled(kGreen, text) + "]";
  }

  std::string members() const {
    const auto some = [&](const char* style, const char* state) {
      const std::string text = std::to_string(count(state)) + " " + state;
      return count(state) > 0 ? styled(style, text) : text;
    };
    return fitted({"members " + some(kGreen, "alive"), some(kYellow, "suspect"), some(kRed, "dead"),
                   std::to_string(count("left")) + " left",
                   " all " + format("%.1f", frame_.steps_per_second) + " steps/s",
                   format("%.0f", frame_.samples_per_second) + " samples/s"});
  }

  std::string this_node() const {
    const TopNode& self = frame_.self;
    return fitted({"this node", "accuracy " + format("%.3f", self.accuracy),
                   "loss " + format("%.4f", self.loss),
                   "consensus distance " + format("%.1e", self.consensus)});
  }

  std::string sources() const {
    return styled(kDim,
                  fitted({"bytes, exchanges, staleness: told by " + std::to_string(frame_.told) +
                              " of " + std::to_string(frame_.rows.size()) + " themselves",
                          "the rest by gossip", "RTT-MS: this node's"}));
  }

  // The columns that fit, and how wide each is.
  void choose_columns(const std::vector<TopRow>& rows) {
    for (const Column& column : kColumns) {
      std::size_t width = std::string_view(column.title).size();
      for (const TopRow& row : rows)
        width = std::max(width, shown_width(column.cell(row, options_.unicode)));
      chosen_.push_back({&column, width});
    }
    for (;;) {
      std::size_t total = 0;
      for (const auto& [column, width] : chosen_) total += width + 2;
      const auto least = std::ranges::max_element(chosen_, [](const auto& a, const auto& b) {
        return a.first->give_up < b.first->give_up;
      });
      if (total <= options_.width + 2 || least->first->give_up == 0) return;
      chosen_.erase(least);
    }
  }

  std::string row_text(const std::function<std::string(const Column&)>& cell) const {
    std::string line;
    for (const auto& [column, width] : chosen_)
      line += (line.empty() ? "" : "  ") + padded(cell(*column), width, column->right);
    return line;
  }

  void table(std::size_t room) {
    const std::vector<TopRow> rows = sorted(frame_.rows, options_.sort, options_.reverse);
    choose_columns(rows);
    std::string title = row_text([](const Column& column) { return std::string(column.title); });
    title.resize(std::max(title.size(), std::min<std::size_t>(options_.width, 1000)), ' ');
    lines_.push_back(styled(kInverse, title));
    first_ = std::min(options_.offset, rows.size() - std::min(rows.size(), room));
    last_ = std::min(rows.size(), first_ + room);
    for (std::size_t i = first_; i < last_; ++i) {
      const std::string line =
          row_text([&](const Column& column) { return column.cell(rows[i], options_.unicode); });
      const std::string& state = rows[i].member.state;
      lines_.push_back(state == "dead"      ? styled(kRed, line)
                       : state == "suspect" ? styled(kYellow, line)
                       : state == "left"    ? styled(kDim, line)
                                            : line);
    }
  }

  void foot() {
    while (lines_.size() + 1 < options_.height) lines_.emplace_back();
    lines_.push_back(styled(
        kDim, "q quit  s sort: " + std::string(name_of(options_.sort)) +
                  (options_.reverse ? " (reversed)" : "") + "  r reverse  p pause  h help" +
                  (frame_.rows.size() > last_ - first_
                       ? "  arrows: rows " + std::to_string(first_ + 1) + "-" +
                             std::to_string(last_) + " of " + std::to_string(frame_.rows.size())
                       : "")));
  }

  void help() {
    lines_ = {styled(kBold, "kith top: keys"),
              "",
              "  q            quit",
              "  s  S         next, last sort key: name state step speed loss lag bytes rtt",
              "  r            reverse the order",
              "  p  space     pause, go on",
              "  up down      one row;  page up, page down: a screen;  home end",
              "  h  ?         this page, and back",
              "",
              "STEP             optimiser steps that the member itself has made; one that joins "
              "begins at 0",
              "STEP/S SAMPLE/S  optimiser steps and samples of that member a second",
              "IN/S OUT/S       bytes over both planes, as the member counts them itself",
              "EXCH/S           averagings that it completed, proposed by either side",
              "STALE            steps between proposing and merging, median of its last ones",
              "LAG              steps that its model is behind the deepest living one, averaged "
              "steps included",
              "RTT-MS           round trip of this node's last probe",
              "-                not known: the member is gone, or its HTTP address cannot be "
              "reached from here"};
  }

  const TopFrame& frame_;
  const TopOptions& options_;
  std::vector<std::string> lines_;
  std::vector<std::pair<const Column*, std::size_t>> chosen_;
  std::size_t first_ = 0, last_ = 0;
};

}  // namespace

std::size_t rows_on_screen(const TopOptions& options) {
  constexpr std::size_t kAround = kHeaderLines + 2;
  return options.height > kAround ? options.height - kAround : 0;
}

std::vector<std::string> draw_top(const TopFrame& frame, const TopOptions& options) {
  return Screen(frame, options).lines();
}

std::string top_table(const TopFrame& frame, const TopOptions& options) {
  TopOptions plain = options;
  plain.colour = false;
  plain.width = 1000;
  plain.offset = 0;
  return Screen(frame, plain).all();
}

std::string top_line(const TopFrame& frame, const TopOptions& options) {
  if (!options.trouble.empty()) return options.time + "  " + options.trouble;
  const TopNode& self = frame.self;
  double in = 0, out = 0;
  for (const TopRow& row : frame.rows) {
    if (row.bytes_in_per_second > 0) in += row.bytes_in_per_second;
    if (row.bytes_out_per_second > 0) out += row.bytes_out_per_second;
  }
  const auto of = [&](const char* state) {
    const auto found = frame.count.find(state);
    return std::to_string(found == frame.count.end() ? 0 : found->second) + " " + state;
  };
  const auto done = frame.fraction();
  return options.time + "  epoch " + format("%.2f", self.epoch) +
         (done ? format("  %.0f %%", 100 * *done) : "") + "  " + of("alive") + " " + of("suspect") +
         " " + of("dead") + "  step " + format("%.0f", self.step) + "  loss " +
         format("%.4f", self.loss) + "  accuracy " + format("%.3f", self.accuracy) + "  " +
         format("%.1f", frame.steps_per_second) + " steps/s  " +
         format("%.0f", frame.samples_per_second) + " samples/s  in " + bytes_text(in) +
         "/s  out " + bytes_text(out) + "/s  distance " + format("%.1e", self.consensus);
}

std::string sparkline(const std::vector<double>& values, std::size_t width, bool unicode) {
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr const char* kAscii[] = {"_", ".", ",", "-", "~", "=", "*", "#"};
  const std::size_t count = std::min(width, values.size());
  if (count == 0) return "";
  const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
  const auto [low, high] = std::minmax_element(first, values.end());
  const double range = *high - *low;
  std::string line;
  for (auto value = first; value != values.end(); ++value) {
    const double place = range > 0 ? (*value - *low) / range : 0;
    const auto level = static_cast<std::size_t>(std::clamp(place * 7.999, 0.0, 7.0));
    line += unicode ? kBlocks[level] : kAscii[level];
  }
  return line;
}

std::size_t shown_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size() - 1);
      continue;
    }
    width += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 ? 1 : 0;
  }
  return width;
}

}  // namespace kith::node
