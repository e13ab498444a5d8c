#include "compute/csv.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "compute/data_file.h"

namespace kith::compute {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20;

// Lines of a stream, with their numbers.
class LineReader {
 public:
  explicit LineReader(DataFile& file) : file_(file) {}

  // False at the end. `line` is valid until the next call.
  Result<bool> next(std::string_view& line) {
    for (;;) {
      const std::size_t end = buffer_.find('\n', searched_);
      if (end != std::string::npos) return take(line, end, end + 1);
      searched_ = buffer_.size();
      if (ended_)
        return buffer_.size() == start_ ? Result<bool>(false)
                                        : take(line, buffer_.size(), buffer_.size());
      KITH_TRY(fill());
    }
  }
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  bool take(std::string_view& line, std::size_t end, std::size_t next_start) {
    line = std::string_view(buffer_).substr(start_, end - start_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number_ == 0 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    start_ = searched_ = next_start;
    ++number_;
    return true;
  }

  Status fill() {
    constexpr std::size_t kStep = std::size_t{1} << 20;
    buffer_.erase(0, start_);
    searched_ -= start_;
    start_ = 0;
    if (buffer_.size() > kLongestLine)
      return refuse_data(file_.path(), "has a line of more than 64 MiB: not a CSV file");
    const std::size_t had = buffer_.size();
    buffer_.resize(had + kStep);
    KITH_ASSIGN(const std::size_t got,
                file_.read_some(std::as_writable_bytes(std::span(buffer_)).subspan(had)));
    buffer_.resize(had + got);
    ended_ = got == 0;
    return {};
  }

  DataFile& file_;
  std::string buffer_;
  std::size_t start_ = 0, searched_ = 0;
  std::uint32_t number_ = 0;
  bool ended_ = false;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  return text;
}

std::optional<double> parse_number(std::string_view field) {
  field = trimmed(field);
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (field.empty() || error != std::errc{} || end != field.data() + field.size())
    return std::nullopt;
  return value;
}

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

// A header is a first line without a single number in it.
bool looks_like_header(const std::vector<std::string_view>& fields) {
  for (const auto field : fields) {
    if (parse_number(field)) return false;
  }
  return true;
}

class TableBuilder {
 public:
  explicit TableBuilder(CsvTable& table) : table_(table) {}

  Status add(std::uint32_t line, const std::vector<std::string_view>& fields) {
    line_ = line;
    if (columns_ == 0) KITH_TRY(set_columns(fields.size()));
    if (fields.size() != columns_) {
      return refuse("has " + std::to_string(fields.size()) + " columns, the lines before have " +
                    std::to_string(columns_));
    }
    for (std::size_t i = 0; i + 1 < fields.size(); ++i) KITH_TRY(add_value(i, fields[i]));
    return add_label(fields.back());
  }

 private:
  Status set_columns(std::size_t columns) {
    if (columns < 2)
      return refuse("has one column: expected values and a label, separated by commas");
    columns_ = columns;
    table_.columns = columns - 1;
    return {};
  }

  Status add_value(std::size_t column, std::string_view field) {
    const auto value = parse_number(field);
    if (!value)
      return refuse("column " + std::to_string(column + 1) + " is '" + shown(field) +
                    "': expected a number");
    if (!std::isfinite(static_cast<float>(*value))) {
      return refuse("column " + std::to_string(column + 1) + " is '" + shown(field) +
                    "': expected a finite number");
    }
    table_.values.push_back(static_cast<float>(*value));
    return {};
  }

  Status add_label(std::string_view field) {
    const auto value = parse_number(field);
    if (!value || !(std::abs(*value) < 9e15) || *value != std::floor(*value)) {
      return refuse("the label (last column) is '" + shown(field) + "': expected a whole number");
    }
    table_.labels.push_back(static_cast<std::int64_t>(*value));
    table_.lines.push_back(line_);
    return {};
  }

  static std::string shown(std::string_view field) {
    return field.size() <= 40 ? std::string(field) : std::string(field.substr(0, 40)) + "...";
  }
  [[nodiscard]] tl::unexpected<Error> refuse(const std::string& what) const {
    return fail(ErrorCode::kDataRefused, table_.path + ":" + std::to_string(line_) + ": " + what);
  }

  CsvTable& table_;
  std::size_t columns_ = 0;
  std::uint32_t line_ = 0;
};

}  // namespace

Result<CsvTable> read_csv(const std::string& path) {
  KITH_ASSIGN(DataFile file, DataFile::open(path));
  CsvTable table;
  table.path = path;
  TableBuilder builder(table);
  LineReader reader(file);
  std::string_view line;
  std::vector<std::string_view> fields;
  bool first = true;
  for (;;) {
    KITH_ASSIGN(const bool more, reader.next(line));
    if (!more) break;
    if (trimmed(line).empty()) continue;
    split(line, fields);
    if (std::exchange(first, false) && fields.size() > 1 && looks_like_header(fields)) continue;
    KITH_TRY(builder.add(reader.number(), fields));
  }
  if (table.labels.empty()) return refuse_data(path, "holds no samples");
  return table;
}

}  // namespace kith::compute
