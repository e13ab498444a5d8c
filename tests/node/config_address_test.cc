#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/config/config.h"
#include "tests/node/scratch_folder.h"

namespace kith::node {
namespace {

using testing::HasSubstr;

struct AddressCase {
  const char* key;
  const char* text;
  const char* why;  // null: accepted
};
class Addresses : public testing::TestWithParam<AddressCase> {};

TEST_P(Addresses, AreJudgedByTheirForm) {
  const auto& [key, text, why] = GetParam();
  const auto config = load_config("", {{key, text}}, {});
  if (why == nullptr) {
    EXPECT_TRUE(config) << config.error().message;
    return;
  }
  ASSERT_FALSE(config) << text;
  EXPECT_EQ(exit_code(config.error().code), 2);
  EXPECT_THAT(config.error().message, HasSubstr(key));
  EXPECT_THAT(config.error().message, HasSubstr(why));
}

const AddressCase kAddresses[] = {
    {"node.listen", "127.0.0.1:0", nullptr},
    {"node.listen", "[::1]:7400", nullptr},
    {"node.listen", "0.0.0.0:7400", nullptr},
    {"node.listen", "localhost:7400", nullptr},
    {"node.listen", "127.0.0.1", "the port is missing"},
    {"node.listen", "127.0.0.1:", "expected host:port"},
    {"node.listen", "127.0.0.1:65536", "from 0 to 65535"},
    {"node.listen", "127.0.0.1:-1", "from 0 to 65535"},
    {"node.listen", "127.0.0.1:+1", "from 0 to 65535"},
    {"node.listen", "127.0.0.1:74x", "from 0 to 65535"},
    {"node.listen", "127.0.0.1:7400 ", "from 0 to 65535"},
    {"node.listen", "256.0.0.1:7400", "\"256.0.0.1\" is not an IPv4 address"},
    {"node.listen", "1.2.3:7400", "not an IPv4 address"},
    {"node.listen", "::1:7400", "[::1]:7400"},
    {"node.listen", "[::1:7400", "']' is missing"},
    {"node.listen", "[zz]:7400", "not IPv6"},
    {"node.listen", "[::1]7400", "expected host:port"},
    {"node.listen", ":7400", "host is missing"},
    {"node.listen", "tcp://a:7400", "in brackets"},
    {"node.listen", "a b:7400", "not a host name"},
    {"node.listen", "", "empty"},
    {"node.http", "127.0.0.1:http", "from 0 to 65535"},
    {"node.http", "127.0.0.1:0", nullptr},
    {"node.advertise", "", nullptr},
    {"node.advertise", "example.org", nullptr},
    {"node.advertise", "example.org:7400", nullptr},
    {"node.advertise", "example.org:0", "from 1 to 65535"},
    {"cluster.join", "a:1, b:2,", nullptr},
    {"cluster.join", "a:1, b:0", "\"b:0\""},
    {"cluster.join", "a:1, b:99999", "\"b:99999\""},
    {"cluster.join", "a:1,b;c:2", "\"b;c:2\""},
    {"cluster.join", "http://a:1", "in brackets"},
};
INSTANTIATE_TEST_SUITE_P(Table, Addresses, testing::ValuesIn(kAddresses));

std::vector<std::string> joined(const std::string& text) {
  const auto config = load_config("", {{"cluster.join", text}}, {});
  return config ? config->cluster.join : std::vector<std::string>{config.error().message};
}

TEST(Seeds, AreTrimmedAndEmptiesSkippedAndDuplicatesHarmless) {
  using Seeds = std::vector<std::string>;
  EXPECT_EQ(joined("a:1, b:2,"), (Seeds{"a:1", "b:2"}));
  EXPECT_EQ(joined(""), Seeds{});
  EXPECT_EQ(joined(","), Seeds{});
  EXPECT_EQ(joined(" , ,"), Seeds{});
  EXPECT_EQ(joined("a:1,a:1, a:1"), Seeds{"a:1"});
  EXPECT_EQ(joined("[\"a:1\", \" b:2 \"]"), (Seeds{"a:1", "b:2"}));
  EXPECT_EQ(joined("hostA,hostB"), (Seeds{"hostA:7400", "hostB:7400"}));
  EXPECT_EQ(joined("[::1]:5"), Seeds{"[::1]:5"});
}

TEST(Seeds, MayBeAListOrTextInTheFile) {
  const ScratchFolder folder;
  const auto list =
      load_config(folder.write("a.toml", "[cluster]\njoin = [\"a:1\", \"b:2\"]\n"), {}, {});
  const auto text =
      load_config(folder.write("b.toml", "[cluster]\njoin = \"a:1, b:2,\"\n"), {}, {});
  ASSERT_TRUE(list && text);
  EXPECT_EQ(list->cluster.join, text->cluster.join);
}

}  // namespace
}  // namespace kith::node
