"""Let every allocation of the core fail once: always MemoryError, no leak, the next call works."""
