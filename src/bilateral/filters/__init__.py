"""Operations on pixels: filters before and after a solve, label regions, stereo and defocus."""
