#include "node/config/config_assign.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "node/text/address.h"

namespace kith::node {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::optional<Preset> find_preset(std::string_view name) {
  static const Preset kPresets[] = {
      {"local", milliseconds(200), seconds(2), seconds(1)},
      {"lan", seconds(1), seconds(10), seconds(5)},
      {"wan", seconds(5), seconds(30), seconds(15)},
  };
  const auto found = std::ranges::find(kPresets, name, &Preset::name);
  if (found == std::end(kPresets)) return std::nullopt;
  return *found;
}

namespace {

// One value on its way into one slot.
class Assignment {
 public:
  Assignment(const KeyInfo& key, const ConfigValue& value, const ValueSource& source)
      : key_(key), value_(value), source_(source) {}

  Status operator()(bool* slot) const {
    const auto* v = std::get_if<bool>(&value_.value);
    if (v == nullptr) return unexpected();
    *slot = *v;
    return {};
  }
  Status operator()(double* slot) const {
    double v = 0;
    if (const auto* number = std::get_if<double>(&value_.value)) {
      v = *number;
    } else if (const auto* integer = std::get_if<std::int64_t>(&value_.value)) {
      v = static_cast<double>(*integer);
    } else {
      return unexpected();
    }
    if (!in_range(v)) return unexpected();
    *slot = v;
    return {};
  }
  Status operator()(std::int64_t* slot) const { return integer(slot); }
  Status operator()(std::uint64_t* slot) const { return integer(slot); }
  Status operator()(std::uint32_t* slot) const { return integer(slot); }
  Status operator()(Duration* slot) const {
    const auto* text = std::get_if<std::string>(&value_.value);
    const auto v = parse_duration(text != nullptr ? *text : source_.text);
    if (!v || !in_range(to_seconds(*v))) return unexpected();
    *slot = *v;
    return {};
  }
  Status operator()(Preset* slot) const {
    std::string name;
    KITH_TRY((*this)(&name));
    *slot = *find_preset(name);
    return {};
  }
  Status operator()(std::string* slot) const {
    KITH_ASSIGN(std::string text, this->text());
    KITH_TRY(check_form(text));
    *slot = key_.form == KeyForm::kPath ? resolved(text) : text;
    return {};
  }
  template <typename T>
  Status operator()(std::optional<T>* slot) const {
    T v{};
    KITH_TRY((*this)(&v));
    *slot = std::move(v);
    return {};
  }
  template <typename T>
  Status operator()(std::vector<T>* slot) const {
    KITH_ASSIGN(const std::vector<ConfigValue> items, list<T>());
    std::vector<T> values;
    for (const ConfigValue& item : items) {
      ValueSource element = source_;
      element.textual = false;
      T v{};
      KITH_TRY(Assignment(key_, item, element)(&v));
      if (key_.form == KeyForm::kSeeds && std::ranges::find(values, v) != values.end()) continue;
      values.push_back(std::move(v));
    }
    *slot = std::move(values);
    return {};
  }

 private:
  [[nodiscard]] tl::unexpected<Error> unexpected(const std::string& hint = "") const {
    const bool as_given = source_.textual && !std::holds_alternative<std::string>(value_.value);
    return refuse("expected " + expected_of(key_) + ", got " +
                  (as_given ? in_quotes(source_.text) : describe(value_)) + hint);
  }
  [[nodiscard]] tl::unexpected<Error> refuse(const std::string& what) const {
    return fail(ErrorCode::kUsage, source_.where + ": " + std::string(key_.name) + ": " + what);
  }
  [[nodiscard]] bool in_range(double v) const {
    const KeyRange& r = key_.range;
    if (!std::isfinite(v)) return false;
    return (r.low_excluded ? v > r.low : v >= r.low) &&
           (r.high_excluded ? v < r.high : v <= r.high);
  }
  template <typename T>
  Status integer(T* slot) const {
    const auto* v = std::get_if<std::int64_t>(&value_.value);
    if (v == nullptr || !in_range(static_cast<double>(*v)) || !std::in_range<T>(*v))
      return unexpected();
    *slot = static_cast<T>(*v);
    return {};
  }

  // Text keys: a quoted value is unquoted; from the environment and flags anything else means
  // itself.
  [[nodiscard]] Result<std::string> text() const {
    std::string text;
    if (const auto* v = std::get_if<std::string>(&value_.value)) {
      text = *v;
    } else if (source_.textual) {
      text = source_.text;
    } else if (const auto* n = std::get_if<std::int64_t>(&value_.value);
               n != nullptr && key_.form == KeyForm::kLag) {
      text = std::to_string(*n);
    } else {
      return unexpected();
    }
    const auto is_control = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    };
    if (!is_utf8(text)) return refuse("the text is not valid UTF-8");
    if (std::ranges::any_of(text, is_control))
      return refuse("the text has control characters: " + in_quotes(text));
    return text;
  }

  template <typename T>
  [[nodiscard]] Result<std::vector<ConfigValue>> list() const {
    if (const auto* items = std::get_if<std::vector<ConfigValue>>(&value_.value)) return *items;
    const auto* text = std::get_if<std::string>(&value_.value);
    const bool commas = source_.textual || key_.form == KeyForm::kSeeds;
    if (commas && (text != nullptr || source_.textual)) {
      std::vector<ConfigValue> items;
      for (const std::string& item : split_list(text != nullptr ? *text : source_.text))
        items.push_back(element<T>(item));
      return items;
    }
    if (text != nullptr && std::is_same_v<T, std::string>) return std::vector{value_};
    return unexpected();
  }
  template <typename T>
  static ConfigValue element(const std::string& item) {
    if constexpr (std::is_same_v<T, std::int64_t>)
      if (const auto v = parse_integer(item)) return {*v};
    return {item};
  }

  [[nodiscard]] Status check_form(std::string& text) const {
    if (!key_.choices.empty()) return check_choice(text);
    switch (key_.form) {
      case KeyForm::kName:
        return check_name(text);
      case KeyForm::kPath:
        return check_path(text);
      case KeyForm::kSeeds:
        return check_seed(text);
      case KeyForm::kListen:
        return check_listen(text);
      case KeyForm::kAdvertise:
        return text.empty() ? Status{} : address(text, PortRule::kMayBeAbsent);
      case KeyForm::kLag:
        return check_lag(text);
      case KeyForm::kShard:
        return check_shard(text);
      case KeyForm::kDevice:
        return check_device(text);
      case KeyForm::kPlain:
        break;
    }
    return {};
  }
  [[nodiscard]] Status check_choice(const std::string& text) const {
    const auto known = choice_list(key_.choices);
    if (std::ranges::find(known, text) != known.end()) return {};
    const std::string_view near = nearest(text, known);
    return unexpected(near.empty() ? "" : "; did you mean " + in_quotes(near) + "?");
  }
  [[nodiscard]] Status check_name(const std::string& text) const {
    const bool plain =
        text.find_first_of(" /\\\"") == std::string::npos && text != "." && text != "..";
    if (text.empty() || text.size() > 64 || !plain) return unexpected();
    return {};
  }
  [[nodiscard]] Status check_path(const std::string& text) const {
    const bool is_hex =
        text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    if (key_.name == "cluster.key_file" && is_hex)
      return refuse("this is a key itself; expected the path of a file that holds it, mode 0600");
    return {};
  }
  [[nodiscard]] Status address(const std::string& text, PortRule rule) const {
    if (auto parsed = parse_address(text, rule); !parsed) return refuse(parsed.error().message);
    return {};
  }
  [[nodiscard]] Status check_seed(std::string& text) const {
    text = std::string(trimmed(text));
    auto parsed = parse_address(text, PortRule::kMayBeAbsent);
    if (!parsed) return refuse(parsed.error().message);
    if (parsed->port == 0) parsed->port = kDefaultPort;
    text = parsed->text();
    return {};
  }
  [[nodiscard]] Status check_listen(const std::string& text) const {
    if (text.empty() && key_.name == "node.listen_bulk") return {};
    return address(text, PortRule::kMayBeZero);
  }
  [[nodiscard]] Status check_lag(const std::string& text) const {
    if (text.ends_with('%')) {
      const auto share = parse_number(std::string_view(text).substr(0, text.size() - 1));
      if (share && *share > 0 && *share <= 100) return {};
    } else if (const auto steps = parse_integer(text); steps && *steps > 0) {
      return {};
    }
    return unexpected();
  }
  [[nodiscard]] Status check_shard(const std::string& text) const {
    if (text == "auto" || text == "all") return {};
    const auto slash = text.find('/');
    if (slash == std::string::npos) return unexpected();
    const auto index = parse_integer(std::string_view(text).substr(0, slash));
    const auto count = parse_integer(std::string_view(text).substr(slash + 1));
    if (!index || !count || *index < 1 || *index > *count || *count > 1000000) return unexpected();
    return {};
  }
  [[nodiscard]] Status check_device(const std::string& text) const {
    if (text == "auto" || text == "cpu") return {};
    const auto number =
        text.starts_with("cuda:") ? parse_integer(std::string_view(text).substr(5)) : std::nullopt;
    if (!number || *number < 0 || *number > 1023) return unexpected();
    return {};
  }
  [[nodiscard]] std::string resolved(const std::string& text) const {
    if (text.empty() || source_.folder.empty()) return text;
    // node.data_dir = "auto:PARENT" (data_dir.h): PARENT is the path.
    if (constexpr std::string_view kAutomatic = "auto:";
        key_.name == "node.data_dir" && text.starts_with(kAutomatic))
      return std::string(kAutomatic) + resolved(text.substr(kAutomatic.size()));
    const std::filesystem::path path(text);
    if (path.is_absolute()) return text;
    return (std::filesystem::path(source_.folder) / path).lexically_normal().string();
  }

  const KeyInfo& key_;
  const ConfigValue& value_;
  const ValueSource& source_;
};

}  // namespace

Status assign(Config& config, const KeyInfo& key, const ConfigValue& value,
              const ValueSource& source) {
  KITH_TRY(std::visit(Assignment(key, value, source), key.slot(config)));
  config.origin[std::string(key.name)] = source.origin;
  return {};
}

}  // namespace kith::node
