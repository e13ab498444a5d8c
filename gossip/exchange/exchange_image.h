// The image of an ExchangeMachine: what must survive a restart so that no exchange is ever applied
// twice.
//
// Format (little endian): "KXLG", u32 version, contents in the order of ImageContents, BLAKE2b-256
// over all before it. Decoding trusts nothing: no allocation from a declared count, every id and
// size checked against the store.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "gossip/exchange/exchange.h"
#include "gossip/exchange/exchange_initiator.h"
#include "gossip/exchange/exchange_responder.h"

namespace kith::gossip {

struct ImageContents {
  NodeId self;
  Incarnation incarnation = 0;
  std::uint64_t round = 0;
  std::vector<ExchangeInitiator::OpenId> open;
  std::vector<ExchangeResponder::ClosedOf> closed;
  std::vector<LedgerEntry> entries;  // result, delta, weight, superseded
};

LedgerImage encode_image(const ImageContents& contents);
// kCorrupt with the reason.
Result<ImageContents> decode_image(std::span<const std::byte> bytes, const FragmentStore& store);

}  // namespace kith::gossip
