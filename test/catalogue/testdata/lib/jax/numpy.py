"""Nothing is computed."""
