#include "node/cli/doctor.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "node/cli/doctor_net.h"
#include "node/cli/doctor_probe.h"
#include "node/cli/doctor_run.h"
#include "node/config/config_value.h"
#include "node/mesh/cluster_key.h"
#include "node/text/address.h"

namespace kith::node {
namespace {

constexpr Duration kLookupPatience = std::chrono::seconds(10);
constexpr Duration kConnectPatience = std::chrono::seconds(3);
constexpr Duration kGreetPatience = std::chrono::seconds(4);
constexpr Duration kDialBackPatience = std::chrono::seconds(5);
constexpr int kDialBackTries = 5;
constexpr Duration kDialBackPause = std::chrono::milliseconds(100);
constexpr double kSkewMaxSeconds = 5.0;
constexpr std::size_t kAddressesMax = 8;

DoctorCheck ok(std::string name, std::string text) {
  return {std::move(name), CheckResult::kOk, std::move(text), {}};
}
DoctorCheck failed(std::string name, std::string text, std::string remedy) {
  return {std::move(name), CheckResult::kFailed, std::move(text), std::move(remedy)};
}
DoctorCheck skipped(std::string name, std::string why) {
  return {std::move(name), CheckResult::kSkipped, std::move(why), {}};
}

std::string milliseconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", value);
  return text;
}

class Diagnosis {
 public:
  Diagnosis(const DoctorRequest& request, HostPort target)
      : request_(request), target_(std::move(target)) {}

  std::vector<DoctorCheck> run() {
    // Each step needs the one before.
    if (names() && connects() && keys() && greets()) {
      compare_run(request_.config, *welcome_, checks_);
      advertised();
      const double half_way = probe_->welcome_took_seconds() / 2;
      checks_.push_back(judge_clocks(probe_->welcome_wall_seconds() - half_way,
                                     welcome_->about ? welcome_->about->wall_seconds : 0.0));
      dial_back();
    }
    return std::move(checks_);
  }

 private:
  bool add(DoctorCheck check) {
    checks_.push_back(std::move(check));
    return checks_.back().result != CheckResult::kFailed;
  }

  bool names() {
    if (is_numeric_host(target_.host)) {
      hosts_ = {target_.host};
      return true;
    }
    const auto found = lookup_within(target_.host, kLookupPatience);
    if (!found || found->empty())
      return add(
          failed("dns", found ? "'" + target_.host + "' has no address" : found.error().message,
                 "is the name spelt right, and known to this machine's resolver? `getent hosts " +
                     target_.host + "` asks it; a numeric address needs no resolver"));
    hosts_ = *found;
    if (hosts_.size() > kAddressesMax) hosts_.resize(kAddressesMax);
    std::string list;
    for (const std::string& host : hosts_) list += (list.empty() ? "" : ", ") + host;
    return add(ok("dns", target_.host + " is " + list));
  }

  // A name may stand for several nodes: all are tried, the first that answers is looked at closely.
  bool connects() {
    std::string silent;
    for (const std::string& host : hosts_) {
      const HostPort address{host, target_.port};
      auto reached = reach(address, kConnectPatience, false);
      if (!reached) {
        silent += (silent.empty() ? "" : "; ") + address.text() + ": " + reached.error().message;
      } else if (!way_) {
        way_ = std::move(*reached);
        address_ = address;
      }
    }
    if (!way_) return add(failed("tcp", silent, connect_remedy(silent)));
    return add(ok("tcp", address_.text() + " answers in " + milliseconds(way_->milliseconds) +
                             (silent.empty() ? "" : " (but " + silent + ")")));
  }

  std::string connect_remedy(const std::string& why) const {
    const std::string port = std::to_string(target_.port);
    if (why.find("refused") != std::string::npos)
      return "the machine is there, but nothing listens on port " + port +
             ": is kithd running there, and is this its node.listen (kithd prints address=...)? A "
             "node.listen of 127.0.0.1 is reached from its own machine only";
    if (why.find("no answer") != std::string::npos)
      return "packets go unanswered: is the machine up, and do firewalls or security groups let "
             "TCP "
             "port " +
             port + " (and the next one, for the bulk plane) through?";
    return "this machine has no way to that network: look at `ip route get " + hosts_.front() + "`";
  }

  bool keys() {
    const std::string& file = request_.config.cluster.key_file;
    if (!file.empty()) {
      auto loaded = ClusterKey::load(file);
      if (!loaded)
        return add(failed("key", loaded.error().message,
                          "copy the cluster's key file to this machine (mode 0600), or correct "
                          "cluster.key_file"));
      key_.emplace(std::move(*loaded));
    }
    const auto again = reach(address_, kConnectPatience, true);
    switch (again ? read_greeting(again->greeting) : Greeting::kOther) {
      case Greeting::kOther:
        return add(failed("key", address_.text() + " is not a kith node: it does not greet as one",
                          "give the control address (node.listen, port 7400 unless set), not the "
                          "HTTP address; else another program has that port"));
      case Greeting::kCurve:
        if (!key_)
          return add(
              failed("key", "that node wants a cluster key, and this call has none",
                     "give -c FILE with cluster.key_file, or KITH_CLUSTER_KEY_FILE: the same "
                     "file as on that node"));
        return add(ok("key", "both sides use a cluster key"));
      case Greeting::kNull:
        if (key_)
          return add(failed("key", "that node has no cluster key, this side has one",
                            "set cluster.key_file on that node and start it again; a cluster has a "
                            "key everywhere or nowhere"));
        return add(ok("key", "neither side uses a cluster key"));
    }
    return false;
  }

  bool greets() {
    const std::uint16_t port = dial_back_port();
    probe_ = std::make_unique<Probe>(address_.text(), key_ ? &*key_ : nullptr, port);
    auto outcome = probe_->greet(kGreetPatience);
    if (outcome.welcome) {
      welcome_ = std::move(outcome.welcome);
      const auto& r = welcome_->record;
      return add(ok("handshake", "node " + r.name + " (" + r.id.short_hex() + "), " +
                                     schema::name_of(r.run_state) + " at step " +
                                     std::to_string(r.step)));
    }
    if (outcome.reject) return add(refusal(*outcome.reject));
    if (key_)
      return add(failed("handshake",
                        outcome.trouble.empty() ? "no answer to the key exchange" : outcome.trouble,
                        "the two key files differ: copy the one of the cluster to this machine "
                        "(`sha256sum` on both tells)"));
    return add(
        failed("handshake", outcome.trouble.empty() ? "no answer to the greeting" : outcome.trouble,
               "it takes connections but does not answer: is that kithd stopped or overloaded, or "
               "another program that speaks ZeroMQ?"));
  }

  DoctorCheck refusal(const schema::Reject& reject) const {
    if (reject.code == schema::RejectCode::kProtocol &&
        reject.detail.find("plane") != std::string::npos)
      return failed(
          "handshake", "refused: " + reject.detail,
          "this is the bulk port: give the control address, which is usually one port lower");
    if (reject.code == schema::RejectCode::kProtocol)
      return failed("version", "refused: " + reject.detail,
                    "run the same release of kith on both sides (`kithd --version`)");
    return failed("handshake", "refused: " + reject.detail, "see that node's log");
  }

  // What the others will dial: the addresses in that node's record.
  void advertised() {
    const auto& record = welcome_->record;
    const std::string remedy =
        "set node.advertise on that node to a host that others reach, and let node.listen's port "
        "and "
        "the next one through its firewall";
    for (const std::string& text : {record.control_address, record.bulk_address}) {
      const auto address = parse_address(text, PortRule::kRequired);
      if (!address) {
        add(failed("advertised", "it tells others an address that makes no sense: " + text,
                   remedy));
        return;
      }
      if (is_loopback_host(address->host) && !is_loopback_host(address_.host)) {
        add(failed("advertised", "it tells others to dial " + text + ", which is their own machine",
                   remedy));
        return;
      }
      if (!is_numeric_host(address->host)) continue;
      if (const auto reached = reach(*address, kConnectPatience, false); !reached) {
        add(failed("advertised", "it tells others to dial " + text + ": " + reached.error().message,
                   remedy));
        return;
      }
    }
    add(ok("advertised",
           record.control_address + " and " + record.bulk_address + " (bulk) can be dialled"));
  }

  // The port that others would dial, 0: none is to be tried.
  std::uint16_t dial_back_port() {
    if (request_.listen.empty()) {
      dial_back_ =
          skipped("dial-back", "give -c FILE or --listen HOST:PORT to have that node connect back");
      return 0;
    }
    dial_back_ = judge_listen(request_.listen, way_->own_host);
    if (dial_back_.result != CheckResult::kOk) return 0;
    const auto address = parse_mesh_address(request_.listen);
    listener_.emplace(*address);
    listen_port_ = address->port;
    return address->port;
  }

  // A node whose bulk plane cannot be reached joins, and then never averages: both ports are tried.
  void dial_back() {
    if (dial_back_.result != CheckResult::kOk) {
      checks_.push_back(dial_back_);
      return;
    }
    auto answer = probe_->dial_back(kDialBackPatience);
    if (answer && answer->outcome == schema::DialBackOutcome::kBusy)
      answer = ask_dial_back(listen_port_);
    if (add(judge_dial_back("dial-back", answer, !listener_->open()))) dial_back_bulk();
  }

  void dial_back_bulk() {
    auto address = *parse_mesh_address(request_.listen);
    ++address.port;
    const std::string& set = request_.config.node.listen_bulk;
    if (!set.empty()) address = parse_mesh_address(set).value_or(HostPort{});
    DoctorCheck check = judge_listen(address.text(), way_->own_host);
    check.name = "bulk";
    if (check.result == CheckResult::kOk) {
      const BriefListener listener(address);
      check = judge_dial_back("bulk", ask_dial_back(address.port), !listener.open());
    }
    checks_.push_back(std::move(check));
  }

  // With a probe of its own: a greeting names one port. That node takes only so many at a time.
  std::optional<schema::DialBack> ask_dial_back(std::uint16_t port) const {
    std::optional<schema::DialBack> answer;
    for (int i = 0; i < kDialBackTries; ++i) {
      std::this_thread::sleep_for(kDialBackPause);
      Probe probe(address_.text(), key_ ? &*key_ : nullptr, port);
      if (!probe.greet(kGreetPatience).welcome) return std::nullopt;
      answer = probe.dial_back(kDialBackPatience);
      if (!answer || answer->outcome != schema::DialBackOutcome::kBusy) break;
    }
    return answer;
  }

  const DoctorRequest& request_;
  const HostPort target_;
  std::vector<DoctorCheck> checks_;
  std::vector<std::string> hosts_;
  HostPort address_;  // the one that is looked at closely
  std::optional<Reached> way_;
  std::optional<ClusterKey> key_;
  std::unique_ptr<Probe> probe_;
  std::optional<schema::Welcome> welcome_;
  std::optional<BriefListener> listener_;
  std::uint16_t listen_port_ = 0;
  DoctorCheck dial_back_;
};

}  // namespace

Greeting read_greeting(std::string_view bytes) {
  constexpr std::size_t kMechanism = 12;
  if (bytes.size() < kMechanism + 20 || bytes[0] != '\xFF' || bytes[9] != '\x7F')
    return Greeting::kOther;
  const std::string_view mechanism = bytes.substr(kMechanism, 20);
  if (mechanism.starts_with(std::string_view("CURVE\0", 6))) return Greeting::kCurve;
  return mechanism.starts_with(std::string_view("NULL\0", 5)) ? Greeting::kNull : Greeting::kOther;
}

DoctorCheck judge_listen(const std::string& listen, const std::string& own) {
  const auto address = parse_mesh_address(listen);
  if (!address || address->port == 0)
    return skipped("dial-back",
                   "this side listens on any port: give --listen HOST:PORT to try one");
  if (is_any_host(address->host) || address->host == own) return ok("dial-back", "");
  if (is_loopback_host(address->host) && !is_loopback_host(own))
    return failed(
        "dial-back", "node.listen here is " + listen + ", which no other machine reaches",
        "set node.listen = \"0.0.0.0:" + std::to_string(address->port) + "\" and a cluster key");
  return skipped("dial-back", "the way to that node leaves from " + own + ", node.listen is " +
                                  listen + ": the port there cannot be tried this way");
}

DoctorCheck judge_dial_back(const std::string& name, const std::optional<schema::DialBack>& answer,
                            bool by_another) {
  using schema::DialBackOutcome;
  if (!answer || answer->outcome == DialBackOutcome::kUnknown)
    return skipped(name, "that node did not say what came of it");
  if (answer->outcome == DialBackOutcome::kBusy)
    return skipped(name, "that node is asked this by others now: try again in a moment");
  const std::string plane = name == "bulk" ? "this side's bulk plane" : "this side";
  if (answer->outcome == DialBackOutcome::kReached)
    return ok(name, "that node reaches " + plane + " at " + answer->address +
                        (by_another ? " (what listens there now answered)" : ""));
  const bool refused = answer->outcome == DialBackOutcome::kRefused;
  const std::string how = refused                                       ? "refused"
                          : answer->outcome == DialBackOutcome::kSilent ? "no answer"
                                                                        : "no way there";
  return failed(
      name, "that node does not reach " + plane + " at " + answer->address + ": " + how,
      refused
          ? "something on the way answers for this machine (address translation?), or nothing "
            "may listen on that port here: forward it and set node.advertise"
          : "let node.listen's port and the next one in through this machine's firewall; behind "
            "address translation, forward them and set node.advertise");
}

DoctorCheck judge_clocks(double here_seconds, double there_seconds) {
  const double skew = there_seconds - here_seconds;
  char text[96];
  std::snprintf(text, sizeof text, "that machine's clock is %s%.3g s %s",
                std::fabs(skew) < 1 ? "within " : "", std::max(std::fabs(skew), 0.001),
                std::fabs(skew) < 1 ? "of this one's"
                : skew > 0          ? "ahead"
                                    : "behind");
  if (std::fabs(skew) <= kSkewMaxSeconds) return ok("clock", text);
  return failed(
      "clock", text,
      "run an NTP client (systemd-timesyncd, chrony) on both; training does not need it, but logs, "
      "dashboards and alerts of several machines do");
}

bool healthy(const std::vector<DoctorCheck>& checks) {
  return std::ranges::none_of(checks,
                              [](const auto& c) { return c.result == CheckResult::kFailed; });
}

Result<std::vector<DoctorCheck>> diagnose(const DoctorRequest& request) {
  KITH_ASSIGN(HostPort target, parse_address(request.address, PortRule::kMayBeAbsent));
  if (target.port == 0) target.port = kDefaultPort;
  return Diagnosis(request, target).run();
}

}  // namespace kith::node
