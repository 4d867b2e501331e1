"""The application: from a catalogue to a published course. The engine works without it."""
