"""Compare `bilateral.compat` with the originals."""
