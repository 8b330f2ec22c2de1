"""Spillway beside its peers on one control plane: `make bench`."""
