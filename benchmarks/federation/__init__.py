"""A Flower federation on this machine: SuperLink and SuperNodes with TLS, keys and shaped links."""
