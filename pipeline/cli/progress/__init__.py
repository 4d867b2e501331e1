"""How a run is watched: live on a terminal, plain lines elsewhere, JSON lines, or only its end."""
