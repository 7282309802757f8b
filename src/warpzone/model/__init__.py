"""The policy network: encoder, memory, heads."""
