"""Checks of chapter 01: recurrent networks and sequence to sequence."""
