#include "gossip/exchange/exchange_image.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "base/hash.h"
#include "gossip/exchange/chunk_bits.h"

namespace kith::gossip {
namespace {

constexpr std::uint32_t kMagic = 0x474C584B;  // "KXLG"
constexpr std::uint32_t kVersion = 1;

class Writer {
 public:
  void number(std::uint64_t value, int bytes = 8) {
    for (int i = 0; i < bytes; ++i) out_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  void raw(std::span<const std::byte> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void id(const NodeId& id) { raw(std::as_bytes(std::span(id.bytes))); }
  void exchange(const ExchangeId& e) {
    id(e.initiator);
    number(e.incarnation);
    number(e.sequence);
  }
  std::vector<std::byte> finish() {
    const Hash256 hash = hash_bytes(out_);
    raw(std::as_bytes(std::span(hash.bytes)));
    return std::move(out_);
  }

 private:
  std::vector<std::byte> out_;
};

// Reads past the end give zeros and ok() = false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> raw(std::size_t count) {
    if (count > bytes_.size()) ok_ = false;
    if (!ok_) return {};
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  std::uint64_t number(int bytes = 8) {
    std::uint64_t value = 0;
    const auto taken = raw(static_cast<std::size_t>(bytes));
    for (std::size_t i = 0; i < taken.size(); ++i) {
      value |= std::to_integer<std::uint64_t>(taken[i]) << (8 * i);
    }
    return value;
  }
  double real() { return std::bit_cast<double>(number()); }
  NodeId id() {
    NodeId id;
    const auto taken = raw(id.bytes.size());
    if (!taken.empty()) std::memcpy(id.bytes.data(), taken.data(), taken.size());
    return id;
  }
  ExchangeId exchange() {
    ExchangeId e;
    e.initiator = id();
    e.incarnation = number();
    e.sequence = number();
    return e;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

tl::unexpected<Error> corrupt(const std::string& what) {
  return fail(ErrorCode::kCorrupt, "exchange ledger in the checkpoint: " + what);
}

void write_entry(Writer& out, const LedgerEntry& entry) {
  out.exchange(entry.result.e);
  out.number(entry.result.fragment, 4);
  out.number(static_cast<std::uint64_t>(entry.result.codec), 2);
  out.number(entry.result.chunk_bytes, 4);
  out.number(entry.result.depth);
  out.number(entry.result.step);
  out.real(entry.result.distance_squared);
  out.real(entry.result.norm_squared);
  out.real(entry.weight);
  out.number(entry.superseded ? 1 : 0, 1);
  out.number(entry.delta.size());
  out.raw(entry.delta.bytes());
}

bool is_codec(std::uint64_t value) {
  return value == static_cast<std::uint64_t>(CodecId::kFp32) ||
         value == static_cast<std::uint64_t>(CodecId::kBf16);
}

Result<LedgerEntry> read_entry(Reader& in, const FragmentStore& store) {
  LedgerEntry entry;
  entry.result.e = in.exchange();
  entry.result.fragment = static_cast<FragmentIndex>(in.number(4));
  const std::uint64_t codec = in.number(2);
  entry.result.chunk_bytes = static_cast<std::uint32_t>(in.number(4));
  entry.result.depth = in.number();
  entry.result.step = in.number();
  entry.result.distance_squared = in.real();
  entry.result.norm_squared = in.real();
  entry.weight = in.real();
  entry.superseded = in.number(1) != 0;
  const auto delta = in.raw(in.number());
  if (!in.ok()) return corrupt("an entry is cut short");
  if (!is_codec(codec) || entry.result.fragment >= store.fragment_count()) {
    return corrupt("an entry names codec " + std::to_string(codec) + " and fragment " +
                   std::to_string(entry.result.fragment) + ", which this model does not have");
  }
  entry.result.codec = static_cast<CodecId>(codec);
  if (delta.size() != store.payload_bytes(entry.result.fragment, entry.result.codec) ||
      !is_sane_chunking(delta.size(), entry.result.chunk_bytes)) {
    return corrupt("an entry of fragment " + std::to_string(entry.result.fragment) + " has " +
                   std::to_string(delta.size()) + " bytes in chunks of " +
                   std::to_string(entry.result.chunk_bytes));
  }
  if (!std::isfinite(entry.result.distance_squared) || !std::isfinite(entry.weight)) {
    return corrupt("an entry holds a number that is not finite");
  }
  entry.result.payload_bytes = delta.size();
  entry.delta = Slice::copy_of(delta);
  return entry;
}

Status read_open(Reader& in, const FragmentStore& store, ImageContents& contents) {
  std::set<std::pair<NodeId, FragmentIndex>> slots;
  std::set<ExchangeId> ids;
  for (std::uint64_t left = in.number(); left > 0 && in.ok(); --left) {
    ExchangeInitiator::OpenId open;
    open.e = in.exchange();
    open.peer = in.id();
    open.fragment = static_cast<FragmentIndex>(in.number(4));
    const std::uint64_t codec = in.number(2);
    open.codec = static_cast<CodecId>(codec);
    if (!in.ok()) break;
    if (open.e.initiator != contents.self || open.e.sequence == 0 || !is_codec(codec) ||
        open.fragment >= store.fragment_count() || open.e.incarnation > contents.incarnation) {
      return corrupt("an open exchange is not one of this node and model");
    }
    if (!slots.emplace(open.peer, open.fragment).second || !ids.insert(open.e).second) {
      return corrupt("two open exchanges with one peer about one fragment");
    }
    contents.open.push_back(open);
  }
  return {};
}

void read_closed(Reader& in, ImageContents& contents) {
  for (std::uint64_t left = in.number(); left > 0 && in.ok(); --left) {
    ExchangeResponder::ClosedOf of;
    of.initiator = in.id();
    const Incarnation incarnation = in.number();
    of.closed.advance(incarnation);
    of.closed.raise_floor(in.number());
    for (std::uint64_t more = in.number(); more > 0 && in.ok(); --more) {
      of.closed.bury(incarnation, in.number());
    }
    contents.closed.push_back(std::move(of));
  }
}

Status read_entries(Reader& in, const FragmentStore& store, ImageContents& contents) {
  std::set<std::pair<NodeId, FragmentIndex>> slots;
  for (std::uint64_t left = in.number(); left > 0 && in.ok(); --left) {
    KITH_ASSIGN(LedgerEntry entry, read_entry(in, store));
    if (!slots.emplace(entry.result.e.initiator, entry.result.fragment).second) {
      return corrupt("two entries of one initiator for one fragment");
    }
    contents.entries.push_back(std::move(entry));
  }
  return {};
}

}  // namespace

LedgerImage encode_image(const ImageContents& contents) {
  Writer out;
  out.number(kMagic, 4);
  out.number(kVersion, 4);
  out.id(contents.self);
  out.number(contents.incarnation);
  out.number(contents.round);
  out.number(contents.open.size());
  for (const ExchangeInitiator::OpenId& open : contents.open) {
    out.exchange(open.e);
    out.id(open.peer);
    out.number(open.fragment, 4);
    out.number(static_cast<std::uint64_t>(open.codec), 2);
  }
  out.number(contents.closed.size());
  for (const ExchangeResponder::ClosedOf& of : contents.closed) {
    out.id(of.initiator);
    out.number(of.closed.incarnation());
    out.number(of.closed.floor());
    out.number(of.closed.tombstones().size());
    for (const std::uint64_t sequence : of.closed.tombstones()) out.number(sequence);
  }
  out.number(contents.entries.size());
  for (const LedgerEntry& entry : contents.entries) write_entry(out, entry);
  return {out.finish()};
}

Result<ImageContents> decode_image(std::span<const std::byte> bytes, const FragmentStore& store) {
  Hash256 stored;
  if (bytes.size() < 8 + stored.bytes.size()) {
    return corrupt("only " + std::to_string(bytes.size()) + " bytes");
  }
  const auto body = bytes.first(bytes.size() - stored.bytes.size());
  std::memcpy(stored.bytes.data(), bytes.data() + body.size(), stored.bytes.size());
  if (hash_bytes(body) != stored) return corrupt("its check sum does not match");
  Reader in(body);
  if (in.number(4) != kMagic) return corrupt("it does not begin like one");
  if (const std::uint64_t version = in.number(4); version != kVersion) {
    return corrupt("its version is " + std::to_string(version) + ", this program reads " +
                   std::to_string(kVersion));
  }
  ImageContents contents;
  contents.self = in.id();
  contents.incarnation = in.number();
  contents.round = in.number();
  KITH_TRY(read_open(in, store, contents));
  read_closed(in, contents);
  KITH_TRY(read_entries(in, store, contents));
  if (!in.at_end()) return corrupt("its length does not match its contents");
  return contents;
}

}  // namespace kith::gossip
