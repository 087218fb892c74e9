"""What parties send each other, protocol by protocol: messages, the Guest's side, the Host's. Parties hold secrets; channels move bytes."""
