"""What the paper's supplement adds, measured: robust rounds and low rank."""
