"""Fixtures for all Python tests."""

pytest_plugins = ["test.cluster.pytest_plugin"]
