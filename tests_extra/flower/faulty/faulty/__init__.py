"""An app whose clients fail when they are told to."""
