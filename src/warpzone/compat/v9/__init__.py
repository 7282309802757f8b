"""The same two packages with the interface of gym-super-mario-bros 9 and nes-py 9, which is Gymnasium's."""
