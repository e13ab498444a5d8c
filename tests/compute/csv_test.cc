#include "compute/csv.h"

#include <gtest/gtest.h>

#include <clocale>
#include <locale>

#include "compute/data.h"
#include "test_files.h"

namespace kith::compute {
namespace {

using testing::TestFolder;

const std::string kPlain = "1.5,2,0\n-3e2,4.25,1\n0,.5,2\n";

Result<CsvTable> read_text(const std::string& text) {
  static TestFolder folder;
  return read_csv(folder.write("data.csv", text));
}

void expect_plain(const Result<CsvTable>& table) {
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->columns, 2U);
  EXPECT_EQ(table->values, (std::vector<float>{1.5F, 2, -300, 4.25F, 0, 0.5F}));
  EXPECT_EQ(table->labels, (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(Csv, VariantsOfOneFileAreTheSameData) {
  expect_plain(read_text(kPlain));
  expect_plain(read_text("\xEF\xBB\xBF" + kPlain));                     // byte order mark
  expect_plain(read_text("\xEF\xBB\xBFwidth,height,kind\n" + kPlain));  // and a header
  expect_plain(read_text("1.5,2,0\r\n-3e2,4.25,1\r\n0,.5,2\r\n"));      // CRLF
  expect_plain(read_text("1.5,2,0\n-3e2,4.25,1\n0,.5,2"));              // no last newline
  expect_plain(read_text("1.5,2,0\n\n-3e2,4.25,1\n0,.5,2\n\n\n"));      // blank lines
  expect_plain(read_text(" 1.5 , 2 ,0 \n-3e2,4.25,\t1\n0,.5,2\n"));     // blanks
  expect_plain(read_text("\"a\",\"b\",\"c\"\n\"1.5\",\"2\",\"0\"\n-3e2,4.25,1\n+0,.5,2\n"));
  expect_plain(read_text("1.5,2,0\n-3e2,4.25,1\n0,.5,2.0\n"));  // label as a float
}

struct DecimalComma : std::numpunct<char> {
  [[nodiscard]] char do_decimal_point() const override { return ','; }
  [[nodiscard]] char do_thousands_sep() const override { return '.'; }
};

// Both the C++ locale (always) and the C locale (where a German one is installed) say "decimal
// comma".
TEST(Csv, TheLocaleDoesNotCutNumbers) {
  const std::locale cpp_before =
      std::locale::global(std::locale(std::locale::classic(), new DecimalComma));
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE"}) {
    if (std::setlocale(LC_ALL, name)) break;
  }
  expect_plain(read_text(kPlain));
  std::setlocale(LC_ALL, "C");
  std::locale::global(cpp_before);
}

TEST(BadCsv, EachIsRefusedWithFileAndLine) {
  const struct {
    const char* text;
    const char* reason;
  } kTable[] = {
      {"", "holds no samples"},
      {"a,b,label\n", "holds no samples"},
      {"1,2,0\n1,x,0\n", "data.csv:2: column 2 is 'x': expected a number"},
      {"a,b,c\n1,2,0\n1,,0\n", "data.csv:3: column 2 is ''"},
      {"1,2,0\n1,2\n", "data.csv:2: has 2 columns, the lines before have 3"},
      {"1,2,0\r\n\r\n1,2,3,0\r\n", "data.csv:3: has 4 columns"},
      {"1,2,cat\n", "data.csv:1: the label (last column) is 'cat'"},
      {"1,2,0\n1,2,0.5\n", "data.csv:2: the label (last column) is '0.5'"},
      {"1,2,0\n1,nan,0\n", "data.csv:2: column 2 is 'nan': expected a finite number"},
      {"1,2,0\n1,inf,0\n", "data.csv:2: column 2 is 'inf': expected a finite number"},
      {"1,2,0\n1,1e39,0\n", "data.csv:2: column 2 is '1e39': expected a finite number"},
      {"1;2;0\n1;2;0\n", "data.csv:1: has one column"},
      {"1.5\n2.5\n", "has one column"},
      {"1,2,0\n1,2 3,0\n", "column 2 is '2 3'"},
      {"1,2,0\n1,0x10,0\n", "column 2 is '0x10'"},
  };
  for (const auto& row : kTable) {
    const auto table = read_text(row.text);
    ASSERT_FALSE(table) << row.text;
    EXPECT_EQ(table.error().code, ErrorCode::kDataRefused);
    EXPECT_NE(table.error().message.find(row.reason), std::string::npos)
        << row.text << " -> " << table.error().message;
  }
}

TEST(BadCsv, ANegativeLabelNamesItsLine) {
  TestFolder folder;
  DataSpec spec;
  spec.format = "csv";
  spec.train = {folder.write("t.csv", "x,label\n1,0\n2,-1\n")};
  EXPECT_NE(load_data(spec).error().message.find("t.csv:3: its label is -1"), std::string::npos);
}

TEST(Csv, ALongFileCrossesTheReadersBuffer) {
  std::string text;
  for (int i = 0; i < 200'000; ++i)
    text += std::to_string(i) + ".25," + std::to_string(i % 7) + "\r\n";
  const auto table = read_text(text);
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->labels.size(), 200'000U);
  for (std::size_t i = 0; i < table->labels.size(); ++i) {
    ASSERT_EQ(table->values[i], static_cast<float>(i) + 0.25F);
    ASSERT_EQ(table->labels[i], static_cast<std::int64_t>(i % 7));
  }
  EXPECT_EQ(table->lines.back(), 200'000U);
}

}  // namespace
}  // namespace kith::compute
