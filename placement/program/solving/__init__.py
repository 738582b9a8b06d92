"""Which arrays of a program go to the device, and what moving them there changes."""
