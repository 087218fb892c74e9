"""Who says what to whom: messages, the channel, the Guest, the Hosts. Parties hold secrets; channels move bytes."""
