#include "monitoring/request_answerer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/random.h"

namespace kith::monitoring {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Echo final : public HttpHandler {
 public:
  HttpReply get(const std::string& path, const HttpQuery& query) override {
    if (path == "/throw") throw std::runtime_error("planted");
    std::string body = "GET " + path;
    for (const auto& [key, value] : query) body += " " + key + "=" + value;
    return HttpReply::text(body);
  }
  HttpReply post(const std::string& path, const HttpQuery&) override {
    return HttpReply::text("POST " + path);
  }
};

class RequestAnswererTest : public ::testing::Test {
 protected:
  std::string answer(const std::string& request, bool commands = false) {
    return answerer_.answer(request, commands);
  }
  Echo echo_;
  RequestAnswerer answerer_{echo_};
};

TEST_F(RequestAnswererTest, DecodesPathAndQuery) {
  const std::string got = answer("GET /a%20b?x=1&y=%2F&x=2 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(got, HasSubstr("Connection: close"));
  EXPECT_THAT(got, HasSubstr("GET /a b x=2 y=/"));
}

TEST_F(RequestAnswererTest, HeadHasNoBody) {
  const std::string got = answer("HEAD /a HTTP/1.1\r\n\r\n");
  EXPECT_THAT(got, HasSubstr("Content-Length: 6"));
  EXPECT_TRUE(got.ends_with("\r\n\r\n"));
}

TEST_F(RequestAnswererTest, CommandsNeedTheSocketAndNoHeaderForgesIt) {
  const std::string forged =
      "POST /leave HTTP/1.1\r\nX-Kith-Commands: 1\r\nContent-Length: 0\r\n\r\n";
  EXPECT_THAT(answer(forged, false), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(answer(forged, true), HasSubstr("POST /leave"));
}

TEST_F(RequestAnswererTest, OtherMethodsAreRefused) {
  EXPECT_THAT(answer("DELETE /a HTTP/1.1\r\n\r\n", true), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(answer("PUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", true),
              StartsWith("HTTP/1.1 405"));
}

TEST_F(RequestAnswererTest, AnExceptionOfTheHandlerIsItsAnswer) {
  const std::string got = answer("GET /throw HTTP/1.1\r\n\r\n");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(got, HasSubstr("planted"));
}

TEST_F(RequestAnswererTest, RangesDoNotMultiplyTheBody) {
  std::string ranges = "0-";
  for (int i = 0; i < 2000; ++i) ranges += ",0-";
  const std::string got = answer("GET /a HTTP/1.1\r\nRange: bytes=" + ranges + "\r\n\r\n");
  EXPECT_LT(got.size(), 1000U);
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200"));
}

TEST_F(RequestAnswererTest, NothingIsCompressed) {
  EXPECT_THAT(answer("GET /a HTTP/1.1\r\nAccept-Encoding: br, gzip\r\n\r\n"),
              Not(HasSubstr("Content-Encoding")));
}

TEST_F(RequestAnswererTest, AUrlOf16KilobytesIsTooLong) {
  EXPECT_THAT(answer("GET /" + std::string(16 * 1024, '/') + " HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 414"));
}

TEST_F(RequestAnswererTest, MangledRequestsNeverThrowOrGrow) {
  const std::string good =
      "GET /metrics?a=%41&b=c HTTP/1.1\r\nHost: localhost:7480\r\nAccept: */*\r\nRange: "
      "bytes=0-5\r\n"
      "Content-Length: 4\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\nConnection: "
      "keep-alive\r\n\r\nabcd";
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string request = good;
    for (std::uint64_t edits = 1 + random.below(8); edits > 0; --edits) {
      const std::size_t at = random.below(request.size());
      switch (random.below(4)) {
        case 0:
          request[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          request.erase(at, random.below(20));
          break;
        case 2:
          request.insert(at, std::string(random.below(50), static_cast<char>(random.below(256))));
          break;
        default:
          request.resize(at + 1);
          break;
      }
      if (request.empty()) request = "G";
    }
    const std::string got = answer(request, random.chance(0.5));
    ASSERT_LT(got.size(), 4096U) << request;
    ASSERT_THAT(got, AnyOf("", StartsWith("HTTP/1.1 "))) << request;
  }
}

}  // namespace
}  // namespace kith::monitoring
