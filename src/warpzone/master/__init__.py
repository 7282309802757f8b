"""From the ROM to one policy: explore, train specialists, distil, polish under noise, evaluate."""
