"""Measurements. A package by name, for a framework beside Agewise brings one called so too."""
