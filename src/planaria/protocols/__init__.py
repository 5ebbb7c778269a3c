"""The protocols of the five papers as pure state machines. No I/O, no clock, no drivers."""
