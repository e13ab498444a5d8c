# kith::gossip: the protocol core. No thread, no clock, no socket, no encoding: messages are plain structs.
add_library(kith_gossip STATIC
  chunk_sender.cc
  exchange.cc
  exchange_context.cc
  exchange_image.cc
  exchange_initiator.cc
  exchange_initiator_time.cc
  exchange_ledger.cc
  exchange_responder.cc
  exchange_rounds.cc
  ledger.cc
  ledger_closed.cc
  method.cc
  state_transfer.cc
  state_transfer_donors.cc
  state_transfer_fetch.cc
  state_transfer_lost.cc
  state_transfer_moments.cc
  state_transfer_serve.cc
  topology.cc
  topology_names.cc
)
add_library(kith::gossip ALIAS kith_gossip)
target_link_libraries(kith_gossip PUBLIC kith::base kith::messages)
