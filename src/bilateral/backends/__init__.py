"""The operations of a solve, once per kind of device: `cpu` and `cuda`."""
