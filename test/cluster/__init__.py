"""A real control plane and real container engines for tests. See README.md in this folder."""
