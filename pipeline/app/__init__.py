"""The composition root: settings, store, model and application are put together here, and only here."""
