"""A run as OpenTelemetry traces and metrics, from its records alone."""
